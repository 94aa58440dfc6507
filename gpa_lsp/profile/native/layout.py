"""Modules of a native profile, and the load addresses of their functions: given, or made up in one fixed way."""

import base64
import binascii
from pathlib import Path, PurePosixPath, PureWindowsPath

from msgspec import Struct, field

from gpa_lsp.foundation.errors import InputError
from gpa_lsp.foundation.numbers import format_bytes
from gpa_lsp.foundation.regular_files import open_regular_file
from gpa_lsp.profile.model import LoadedFunction, Module
from gpa_lsp.profile.native.elements import Element, check_text

_ELF_MAGIC = b"\x7fELF"
_MAX_IMAGE_BYTES = 256 << 20


def read_image(element: Element, folder: Path) -> tuple[bytes, str | None]:
    """The bytes of a ``cubin`` member, and the path of the file they come from; None where they are embedded.

    Args:
        element: ``{"base64": …}`` or ``{"path": …}``.
        folder: of the profile; a path must stay inside it, links followed, so that a profile from a stranger cannot make us read other files.

    Raises:
        InputError: neither or both are given, the path leads elsewhere, or what is found is no ELF image.
    """
    members = element.read_members(("base64", "path"))
    if len(members) != 1:
        raise element.fail("needs exactly one of 'base64' and 'path'")
    if "base64" in members:
        image = _decode(members["base64"])
        source = members["base64"]
    else:
        image = _read_file(members["path"], folder)
        source = members["path"]
    if not image.startswith(_ELF_MAGIC):
        raise source.fail("does not hold an ELF image")
    return image, source.read_text() if "path" in members else None


def _decode(element: Element) -> bytes:
    try:
        return base64.b64decode(element.read_text(), validate=True)
    except (binascii.Error, ValueError) as error:
        raise element.fail(f"is not base64 ({error})") from None


def _read_file(element: Element, folder: Path) -> bytes:
    name = element.read_text()
    parts = PurePosixPath(name).parts
    is_elsewhere = PurePosixPath(name).is_absolute() or PureWindowsPath(name).drive or PureWindowsPath(name).root
    if not parts or is_elsewhere or "\\" in name or "\0" in name or ".." in parts:
        raise element.fail("is not a relative path with forward slashes and without '..'")
    try:
        target = folder.joinpath(*parts).resolve()
        is_inside = target.is_relative_to(folder.resolve())
    except (OSError, RuntimeError):
        raise element.fail("leads nowhere") from None
    if not is_inside:
        raise element.fail("leads out of the profile's folder")
    try:
        stream, size_bytes = open_regular_file(target)
    except InputError as error:
        raise element.fail(f"names a file that cannot be used: {error.message}") from None
    with stream:
        if size_bytes > _MAX_IMAGE_BYTES:
            raise element.fail(f"names a file of {format_bytes(size_bytes)}, more than any cubin has")
        return stream.read(size_bytes)


_FIRST_MODULE_ADDRESS = 0x5000_0000_0000
_MODULE_ALIGNMENT = 0x1_0000_0000
_FUNCTION_ALIGNMENT = 0x1000
_INSTRUCTION_BYTES = 16
MAX_OFFSET = (1 << 32) - 1  # No function is larger, and no pc_offset


class FunctionDraft(Struct):
    """A function while samples are still adding to what is known of it."""

    name: str  # mangled name
    address: int | None = None  # as given; None when it is to be made up
    symbol_index: int | None = None  # as given
    size_bytes: int = 0  # as given, or as far as samples reach
    is_sized: bool = False  # the size was given, so no sample may lie beyond it


class ModuleDraft(Struct):
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
