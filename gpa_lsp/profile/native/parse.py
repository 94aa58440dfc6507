"""A native profile → :class:`Profile`. The format's rules are in the package's docstring."""

import base64
import binascii
from itertools import pairwise
from pathlib import Path, PurePosixPath, PureWindowsPath

import numpy as np
from msgspec import Struct, field
from msgspec.structs import fields

from gpa_lsp.foundation.errors import InputError, Problem, UnsupportedInputError
from gpa_lsp.foundation.files import open_regular_file
from gpa_lsp.foundation.json_elements import Address, Capability, Element, read_json
from gpa_lsp.foundation.numbers import format_bytes
from gpa_lsp.profile.model import (
    Aggregate,
    Launch,
    LoadedFunction,
    Metric,
    MetricScalar,
    Module,
    Profile,
    Sampling,
    StallSamples,
)
from gpa_lsp.profile.native import DURATION_METRIC, FORMAT, FORMAT_FAMILY, VERSIONS

_REMEDY = "compare it with native_schema.json in the package gpa_lsp.profile"
_MAX_BYTES = 128 << 20  # A parsed document takes some ten times its text in memory
_ELF_MAGIC = b"\x7fELF"
_MAX_IMAGE_BYTES = 256 << 20
_FIRST_MODULE_ADDRESS = 0x5000_0000_0000
_MODULE_ALIGNMENT = 0x1_0000_0000
_FUNCTION_ALIGNMENT = 0x1000
_INSTRUCTION_BYTES = 16
MAX_OFFSET = (1 << 32) - 1  # No function is larger, and no pc_offset
_MAX_COUNT = (1 << 53) - 1
_MAX_ADDRESS = (1 << 64) - 1

_PROFILE_MEMBERS = ("format", "tool_version", "modules", "launches", "problems")
_NEW_PROFILE_MEMBERS = ("sampling", "samples_truncated")  # Of version 2
_NEW_LAUNCH_MEMBERS = ("sampling", "aggregate")  # Of version 2
# Members of a launch that are read by functions of their own, and those that are read as its field of the same name
_OWN_MEMBERS = ("metrics", "samples", "function_addresses", "aggregate")
_LAUNCH_FIELDS = {
    found.name: found.type
    for found in fields(Launch)
    if found.name not in ("index", "mangled_name", "module_id", *_OWN_MEMBERS)
}
_LAUNCH_MEMBERS = {*_LAUNCH_FIELDS, *_OWN_MEMBERS, "kernel", "module", "duration_ns", "stall_reasons"}


def read_native(path: Path) -> Profile:
    """Read a native profile.

    Raises:
        InputError: it breaks the format; names the JSON pointer.
        UnsupportedInputError: it is of another version.
    """
    try:
        return _read_profile(_read_document(path), path)
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror or error})", path=path, remedy="check the disk") from None
    except InputError as error:
        raise error.at(path) from None


def _read_document(path: Path) -> Element:
    """The JSON document, of a supported version."""
    root = read_json(path, most_bytes=_MAX_BYTES, what="profiles in JSON", remedy=_REMEDY)
    name = root.value.get("format")
    if isinstance(name, str) and name in VERSIONS:
        return root
    if isinstance(name, str) and name.startswith(FORMAT_FAMILY):
        message = f"is of format {name[:40]!r}; this version reads {' and '.join(map(repr, VERSIONS))}"
        raise UnsupportedInputError(message, place="/format", remedy="update gpa-lsp or write the profile again")
    raise root.at("format", name).fail(f"does not say {FORMAT!r}")


def _read_profile(root: Element, path: Path) -> Profile:
    format_name = str(root.value["format"])
    version = VERSIONS[format_name]
    known = _PROFILE_MEMBERS if version == 1 else _PROFILE_MEMBERS + _NEW_PROFILE_MEMBERS
    members = root.read_members(known, ("format", "launches"))
    modules = _read_modules(members.get("modules"), path.parent)
    drafts = [_LaunchDraft.read(item, modules, version) for item in members["launches"].read_items()]
    _assign_addresses(modules)
    built: dict[int, Module] = {module_id: draft.build() for module_id, draft in modules.items()}
    problems = members["problems"].read_items() if "problems" in members else []
    return Profile(
        path=path,
        format_name=format_name,
        tool_version=members["tool_version"].read_text() if "tool_version" in members else None,
        modules=built,
        launches=tuple(draft.build(index) for index, draft in enumerate(drafts)),
        problems=tuple(
            Problem(path=path, **item.read_fields(Problem, without=("path", "is_passing"))) for item in problems
        ),
        other_files=tuple(draft.image_file for draft in modules.values() if draft.image_file is not None),
        sampling=members["sampling"].read(Sampling) if "sampling" in members else Sampling(),
        samples_truncated="samples_truncated" in members and members["samples_truncated"].read_flag(),
    )


class FunctionDraft(Struct):
    """A function while samples still extend it."""

    name: str  # mangled name
    address: Address | None = None  # as given; None when it is to be made up
    symbol_index: int | None = None  # as given
    # as given, so that no sample may lie beyond it, or as far as samples reach
    size_bytes: int = 0
    is_sized: bool = False  # the size was given


class ModuleDraft(Struct):
    """A module while launches still add functions to it."""

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
        """Function that a sample names, added if new; it extends at least beyond ``pc_offset``.

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
        """Finished module, once every function has its address."""
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


def _read_modules(element: Element | None, folder: Path) -> dict[int, ModuleDraft]:
    drafts: dict[int, ModuleDraft] = {}
    for item in element.read_items() if element is not None else []:
        draft = _read_module(item, folder)
        if draft.module_id in drafts:
            raise item.fail(f"is a second module {draft.module_id}")
        drafts[draft.module_id] = draft
    return drafts


def _read_module(element: Element, folder: Path) -> ModuleDraft:
    members = element.read_members(("id", "compute_capability", "cubin", "functions", "sources"), ("id",))
    draft = ModuleDraft(members["id"].read_integer())
    if "compute_capability" in members:
        draft.compute_capability = members["compute_capability"].read(Capability)
    if "cubin" in members:
        draft.image, draft.image_file = _read_image(members["cubin"], folder)
    if "sources" in members:
        draft.sources = members["sources"].read(dict[str, str])
    for item in members["functions"].read_items() if "functions" in members else []:
        function = FunctionDraft(**item.read_fields(FunctionDraft, without=("is_sized",)))
        function.is_sized = "size_bytes" in item.value
        if function.size_bytes > MAX_OFFSET:
            raise item.at("size_bytes", function.size_bytes).fail(f"is not between 0 and {MAX_OFFSET}")
        if draft.functions and draft.has_given_addresses != (function.address is not None):
            raise item.fail("breaks the rule that all functions of a module have an address or none has")
        draft.add(function)
    return draft


def _read_image(element: Element, folder: Path) -> tuple[bytes, str | None]:
    """Bytes of a ``cubin`` member, and the path of their file; None if they are embedded.

    A path must stay inside the profile's folder, links followed, so that a profile from a stranger cannot make us read other files.
    """
    members = element.read_members(("base64", "path"))
    if len(members) != 1:
        raise element.fail("needs exactly one of 'base64' and 'path'")
    (source,) = members.values()
    text = source.read_text()
    image = _decode(source, text) if "base64" in members else _read_file(source, text, folder)
    if not image.startswith(_ELF_MAGIC):
        raise source.fail("does not hold an ELF image")
    return image, text if "path" in members else None


def _decode(element: Element, text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise element.fail(f"is not base64 ({error})") from None


def _read_file(element: Element, name: str, folder: Path) -> bytes:
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
        raise element.fail(f"names {name}, which cannot be read: {error.message}") from None
    with stream:
        if size_bytes > _MAX_IMAGE_BYTES:
            raise element.fail(f"names a file of {format_bytes(size_bytes)}, more than any cubin has")
        return stream.read(size_bytes)


def _assign_addresses(drafts: dict[int, ModuleDraft]) -> None:
    """Give every function without an address its synthetic one (the rule is in the package's docstring)."""
    address = _FIRST_MODULE_ADDRESS
    for draft in drafts.values():
        for function in draft.functions:
            if function.address is None:
                function.address = address
                address += (function.size_bytes // _FUNCTION_ALIGNMENT + 1) * _FUNCTION_ALIGNMENT
        address = (address // _MODULE_ALIGNMENT + 1) * _MODULE_ALIGNMENT


class _LaunchDraft(Struct, frozen=True):
    """A launch whose samples still lack their functions' addresses."""

    members: dict[str, Element]
    module: ModuleDraft | None
    rows: "list[_SampleRow] | None"

    @classmethod
    def read(cls, element: Element, modules: dict[int, ModuleDraft], version: int) -> "_LaunchDraft":
        if version == 1:
            known = _LAUNCH_MEMBERS.difference(_NEW_LAUNCH_MEMBERS)
            members = element.read_members(known, ("kernel", "grid", "block"))
        else:
            members = element.read_members(_LAUNCH_MEMBERS, ("kernel",))
        module = _find_module(element, members, modules)
        rows = _read_rows(members["samples"], module, modules, version) if "samples" in members else None
        names_functions = any(row.function is not None and row.is_own for row in rows or ())
        if module is not None and names_functions and not module.has_given_addresses:
            module.find_function(members["kernel"])
        return cls(members, module, rows)

    def build(self, index: int) -> Launch:
        """Launch, once addresses are assigned."""
        members = self.members
        reasons = members["stall_reasons"].read(tuple[str, ...]) if "stall_reasons" in members else ()
        if reasons and self.rows is None:
            raise members["stall_reasons"].fail("is given without 'samples'")
        metrics = _read_metrics(members.get("metrics"), members.get("duration_ns"))
        read = {name: members[name].read(kind) for name, kind in _LAUNCH_FIELDS.items() if name in members}
        aggregate = None
        if "aggregate" in members:
            given = members["aggregate"].read_fields(Aggregate, optional=("launches",))
            aggregate = Aggregate(**{"launches": None, **given})
        if aggregate is not None and aggregate.launches is None and DURATION_METRIC in metrics:
            message = "lacks 'launches', though a duration is given, which is the mean over them"
            raise members["aggregate"].fail(message)
        return Launch(
            index=index,
            mangled_name=members["kernel"].read_text(),
            module_id=None if self.module is None else self.module.module_id,
            metrics=metrics,
            samples=None if self.rows is None else _build_samples(self.rows, reasons),
            function_addresses=self._find_function_addresses(),
            aggregate=aggregate,
            **read,
        )

    def _find_function_addresses(self) -> tuple[int, ...]:
        if "function_addresses" in self.members:
            return tuple(sorted(set(self.members["function_addresses"].read(tuple[Address, ...]))))
        if self.module is None:
            return ()
        named = [row.function for row in self.rows or () if row.function is not None and row.is_own]
        kernel = self.module.by_name.get(self.members["kernel"].read_text())
        drafts = [*named, kernel] if kernel is not None else named
        return tuple(sorted({draft.address for draft in drafts if draft.address is not None}))


def _find_module(element: Element, members: dict[str, Element], modules: dict[int, ModuleDraft]) -> ModuleDraft | None:
    named = members.get("module")
    if named is not None:
        return None if named.value is None else _find_named(named, modules)
    if len(modules) > 1:
        raise element.fail("needs a 'module', because the profile has several")
    if not modules:
        modules[0] = ModuleDraft(0)
    return next(iter(modules.values()))


def _find_named(element: Element, modules: dict[int, ModuleDraft]) -> ModuleDraft:
    module_id = element.read_integer()
    if module_id not in modules:
        raise element.fail(f"is {module_id}, which is not a module of this profile")
    return modules[module_id]


def _read_metrics(element: Element | None, duration_ns: Element | None) -> dict[str, Metric]:
    """The ``metrics`` member, including ``duration_ns`` as a metric."""
    members = element.read_map() if element is not None else {}
    metrics = {value.check_text(name): _read_metric(name, value) for name, value in members.items()}
    if duration_ns is not None:
        if DURATION_METRIC in metrics:
            raise duration_ns.fail(f"is given a second time, by the metric {DURATION_METRIC}")
        metrics[DURATION_METRIC] = Metric(name=DURATION_METRIC, value=duration_ns.read(float))
    return metrics


def _read_metric(name: str, element: Element) -> Metric:
    if not isinstance(element.value, dict) or "number" in element.value:
        return Metric(name=name, value=element.read(MetricScalar))
    members = element.read_members(("value", "instances", "over_time"))
    pairs = [item.read_items(2) for item in members["instances"].read_items()] if "instances" in members else []
    return Metric(
        name=name,
        value=members["value"].read(MetricScalar) if "value" in members else None,
        instance_ids=tuple(
            one.read_text() if isinstance(one.value, str) else one.read_integer(_MAX_ADDRESS) for one, _ in pairs
        ),
        instance_values=tuple(value.read(MetricScalar) for _, value in pairs),
        over_time="over_time" in members and members["over_time"].read_flag(),
    )


class _SampleRow(Struct, frozen=True):
    """Samples of one instruction before addresses are assigned."""

    element: Element  # the row, for errors
    function: FunctionDraft | None  # the function ``offset`` counts from; None when ``offset`` is the absolute address
    offset: int  # in bytes
    # reason → (all, latency); latency is None where it is not told from the others
    counts: dict[str, tuple[int, int | None]]
    is_own: bool = True  # the function is of the launch's own module

    @property
    def address(self) -> int:
        """Absolute address, once functions have theirs."""
        return self.offset if self.function is None else (self.function.address or 0) + self.offset


def _read_rows(
    element: Element, module: ModuleDraft | None, modules: dict[int, ModuleDraft], version: int
) -> list[_SampleRow]:
    rows = [_read_row(item, module, modules, version) for item in element.read_items()]
    known = [latency is not None for row in rows for _, latency in row.counts.values()]
    if any(known) and not all(known):
        _refuse_mixture(rows)
    return rows


def _build_samples(rows: list[_SampleRow], extra_reasons: tuple[str, ...]) -> StallSamples:
    """Columns of the rows, in ascending order of address."""
    rows = sorted(rows, key=lambda row: row.address)
    if rows and rows[-1].address > _MAX_ADDRESS:
        raise rows[-1].element.fail("lies behind the end of the address space")
    for before, row in pairwise(rows):
        if before.address == row.address:
            raise row.element.fail(f"is about the same instruction as {before.element.pointer}")
    reasons = tuple(sorted({reason for row in rows for reason in row.counts}.union(extra_reasons)))
    columns = {reason: column for column, reason in enumerate(reasons)}
    all_samples = np.zeros((len(rows), len(reasons)), np.int64)
    latency_samples = np.zeros((len(rows), len(reasons)), np.int64)
    is_split = True
    for index, row in enumerate(rows):
        for reason, (all_count, latency_count) in row.counts.items():
            all_samples[index, columns[reason]] = all_count
            latency_samples[index, columns[reason]] = latency_count or 0
            is_split &= latency_count is not None
    return StallSamples(
        addresses=np.array([row.address for row in rows], np.uint64),
        reasons=reasons,
        all_samples=all_samples,
        latency_samples=latency_samples if is_split else None,
    )


def _read_row(
    element: Element, module: ModuleDraft | None, modules: dict[int, ModuleDraft], version: int
) -> _SampleRow:
    new = () if version == 1 else ("module",)
    members = element.read_members(("function", "pc_offset", "address", "by_reason", *new), ("by_reason",))
    counts = {
        count.check_text(reason): _read_count(count, version)
        for reason, count in members["by_reason"].read_map().items()
    }
    if members.keys() >= {"address"} and not members.keys() & {"function", "pc_offset", "module"}:
        return _SampleRow(element, None, members["address"].read(Address), counts)
    if not members.keys() >= {"function", "pc_offset"} or "address" in members:
        raise element.fail("needs either 'function' and 'pc_offset' or 'address'")
    offset = members["pc_offset"].read_integer(MAX_OFFSET)
    holder = _find_named(members["module"], modules) if "module" in members else module
    if holder is None:
        raise members["function"].fail("is a function of a launch whose module is null; give the row an 'address'")
    return _SampleRow(element, holder.find_function(members["function"], offset), offset, counts, holder is module)


def _refuse_mixture(rows: list[_SampleRow]) -> None:
    """Report the count that lacks latency samples although others have them."""
    for row in rows:
        for reason, count in row.element.read_map()["by_reason"].read_map().items():
            if row.counts[reason][1] is None:
                message = "lacks the member 'latency', which other counts of this launch have; give it to all of them or to none"
                raise count.fail(message)


def _read_count(element: Element, version: int) -> tuple[int, int | None]:
    members = element.read_members(("all", "latency"), ("all", "latency") if version == 1 else ("all",))
    all_count = members["all"].read_integer(_MAX_COUNT)
    if "latency" not in members:
        return all_count, None
    latency_count = members["latency"].read_integer(_MAX_COUNT)
    if latency_count > all_count:
        raise members["latency"].fail(f"counts {latency_count} not-issued samples among {all_count} in all")
    return all_count, latency_count
