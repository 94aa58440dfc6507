"""Modules of a native profile, and the load addresses of their functions: given, or made up in one fixed way."""

from dataclasses import field
from pathlib import Path

from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.profile.model import LoadedFunction, Module
from gpa_lsp.profile.native.elements import Element, check_text
from gpa_lsp.profile.native.images import read_image

_FIRST_MODULE_ADDRESS = 0x5000_0000_0000
_MODULE_ALIGNMENT = 0x1_0000_0000
_FUNCTION_ALIGNMENT = 0x1000
_INSTRUCTION_BYTES = 16
MAX_OFFSET = (1 << 32) - 1
"""No function is larger, and no pc_offset."""


@dataclass(slots=True)
class FunctionDraft:
    """A function while samples are still adding to what is known of it.

    Attributes:
        name: mangled name.
        address: as given; None when it is to be made up.
        symbol_index: as given.
        size_bytes: as given, or as far as samples reach.
        is_sized: the size was given, so no sample may lie beyond it.
    """

    name: str
    address: int | None = None
    symbol_index: int | None = None
    size_bytes: int = 0
    is_sized: bool = False


@dataclass(slots=True)
class ModuleDraft:
    """A module while launches are still adding functions to it."""

    module_id: int
    image: bytes | None = None
    image_file: str | None = None
    compute_capability: tuple[int, int] | None = None
    functions: list[FunctionDraft] = field(default_factory=list)
    sources: dict[str, str] = field(default_factory=dict)
    by_name: dict[str, FunctionDraft] = field(default_factory=dict)

    @property
    def has_given_addresses(self) -> bool:
        """Whether the file gives the load addresses of this module."""
        return bool(self.functions) and self.functions[0].address is not None

    def add(self, draft: FunctionDraft) -> FunctionDraft:
        """Append a function; its name finds the first one of that name."""
        self.functions.append(draft)
        return self.by_name.setdefault(draft.name, draft)

    def find_function(self, name: Element, pc_offset: int = 0) -> FunctionDraft:
        """The function a sample names, added if it is new; it reaches at least behind ``pc_offset``.

        Raises:
            InputError: the module gives addresses, but none for this function; or the offset lies behind the function's given size.
        """
        text = name.read_text()
        draft = self.by_name.get(text)
        if draft is None:
            if self.has_given_addresses:
                raise name.fail(
                    f"is not a function of module {self.module_id}, which gives the addresses of all it has"
                )
            draft = self.add(FunctionDraft(text))
        if draft.is_sized and pc_offset >= max(draft.size_bytes, 1):
            raise name.fail(f"has {draft.size_bytes} bytes; offset {pc_offset} lies behind its end")
        if not draft.is_sized:
            draft.size_bytes = max(draft.size_bytes, pc_offset + _INSTRUCTION_BYTES)
        return draft

    def build(self) -> Module:
        """The finished module, once every function has its address."""
        functions = [
            LoadedFunction(name=draft.name, address=draft.address or 0, symbol_index=draft.symbol_index)
            for draft in self.functions
        ]
        return Module(
            module_id=self.module_id,
            image=self.image,
            compute_capability=self.compute_capability,
            functions=tuple(sorted(functions, key=lambda function: (function.address, function.name))),
            sources=self.sources,
        )


def read_modules(element: Element | None, folder: Path) -> dict[int, ModuleDraft]:
    """The ``modules`` member, in file order; empty when the file has none."""
    drafts: dict[int, ModuleDraft] = {}
    for item in element.read_items() if element is not None else []:
        draft = _read_module(item, folder)
        if draft.module_id in drafts:
            raise item.fail(f"is a second module {draft.module_id}")
        drafts[draft.module_id] = draft
    return drafts


def assign_addresses(drafts: dict[int, ModuleDraft]) -> None:
    """Give every function without an address its synthetic one (the rule is in the package's docstring)."""
    address = _FIRST_MODULE_ADDRESS
    for draft in drafts.values():
        for function in draft.functions:
            if function.address is None:
                function.address = address
                address += (function.size_bytes // _FUNCTION_ALIGNMENT + 1) * _FUNCTION_ALIGNMENT
        address = (address // _MODULE_ALIGNMENT + 1) * _MODULE_ALIGNMENT


def _read_module(element: Element, folder: Path) -> ModuleDraft:
    members = element.read_members(("id", "compute_capability", "cubin", "functions", "sources"), ("id",))
    draft = ModuleDraft(members["id"].read_integer())
    if "compute_capability" in members:
        draft.compute_capability = members["compute_capability"].read_capability()
    if "cubin" in members:
        draft.image, draft.image_file = read_image(members["cubin"], folder)
    if "sources" in members:
        sources = members["sources"].read_map()
        draft.sources = {check_text(path, text): text.read_text() for path, text in sources.items()}
    for item in members["functions"].read_items() if "functions" in members else []:
        function = _read_function(item)
        if draft.functions and draft.has_given_addresses != (function.address is not None):
            raise item.fail("breaks the rule that all functions of a module have an address or none has")
        draft.add(function)
    return draft


def _read_function(element: Element) -> FunctionDraft:
    members = element.read_members(("name", "address", "symbol_index", "size_bytes"), ("name",))
    draft = FunctionDraft(members["name"].read_text())
    if "address" in members:
        draft.address = members["address"].read_address()
    if "symbol_index" in members:
        draft.symbol_index = members["symbol_index"].read_integer()
    if "size_bytes" in members:
        draft.size_bytes = members["size_bytes"].read_integer(MAX_OFFSET)
        draft.is_sized = True
    return draft
