"""A native profile → :class:`Profile`. The format's rules are in the package's docstring."""

from pathlib import Path

from gpa_lsp.basis.errors import InputError, Problem, ProblemSeverity
from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.profile.model import Launch, Module, Profile
from gpa_lsp.profile.native import DURATION_METRIC, VERSIONS
from gpa_lsp.profile.native.context import read_call_stack, read_device, read_dim3, read_metrics, read_sampling
from gpa_lsp.profile.native.document import read_document
from gpa_lsp.profile.native.elements import Element
from gpa_lsp.profile.native.layout import ModuleDraft, assign_addresses, read_modules
from gpa_lsp.profile.native.rules import read_rules
from gpa_lsp.profile.native.samples import SampleRow, build_samples, read_rows
from gpa_lsp.profile.sampling import Aggregate

_PROFILE_MEMBERS = ("format", "tool_version", "modules", "launches", "problems")
_LAUNCH_MEMBERS = (
    "kernel",
    "plain_name",
    "demangled_name",
    "module",
    "grid",
    "block",
    "device",
    "created_unix_s",
    "context_id",
    "stream_id",
    "duration_ns",
    "metrics",
    "samples",
    "stall_reasons",
    "samples_truncated",
    "function_addresses",
    "nvtx_ranges",
    "call_stack",
    "rules",
    "failure",
)
_NEW_PROFILE_MEMBERS = ("sampling", "samples_truncated")
_NEW_LAUNCH_MEMBERS = ("sampling", "aggregate")
"""Of version 2."""


def read_native(path: Path) -> Profile:
    """Read a native profile.

    Raises:
        InputError: it breaks the format; names the JSON pointer.
        UnsupportedInputError: it is of another version.
    """
    try:
        return _read_profile(read_document(path), path)
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror or error})", path=path, remedy="check the disk") from None
    except InputError as error:
        raise error.at(path) from None


def _read_profile(root: Element, path: Path) -> Profile:
    format_name = str(root.value["format"])
    version = VERSIONS[format_name]
    known = _PROFILE_MEMBERS if version == 1 else _PROFILE_MEMBERS + _NEW_PROFILE_MEMBERS
    members = root.read_members(known, ("format", "launches"))
    modules = read_modules(members.get("modules"), path.parent)
    drafts = [_LaunchDraft.read(item, modules, version) for item in members["launches"].read_items()]
    assign_addresses(modules)
    built: dict[int, Module] = {module_id: draft.build() for module_id, draft in modules.items()}
    problems = members["problems"].read_items() if "problems" in members else []
    return Profile(
        path=path,
        format_name=format_name,
        tool_version=members["tool_version"].read_text() if "tool_version" in members else None,
        modules=built,
        launches=tuple(draft.build(index) for index, draft in enumerate(drafts)),
        problems=tuple(_read_problem(item, path) for item in problems),
        other_files=tuple(draft.image_file for draft in modules.values() if draft.image_file is not None),
        sampling=read_sampling(members.get("sampling")),
        samples_truncated=_read_flag(members, "samples_truncated"),
    )


def _find_module(element: Element, members: dict[str, Element], modules: dict[int, ModuleDraft]) -> ModuleDraft | None:
    named = members.get("module")
    if named is not None and named.value is None:
        return None
    if named is not None:
        module_id = named.read_integer()
        if module_id not in modules:
            raise named.fail(f"is {module_id}, which is not a module of this profile")
        return modules[module_id]
    if len(modules) > 1:
        raise element.fail("needs a 'module', because the profile has several")
    if not modules:
        modules[0] = ModuleDraft(0)
    return next(iter(modules.values()))


@dataclass(frozen=True, slots=True)
class _LaunchDraft:
    """A launch whose samples still wait for their functions' addresses."""

    element: Element
    members: dict[str, Element]
    module: ModuleDraft | None
    rows: list[SampleRow] | None

    @classmethod
    def read(cls, element: Element, modules: dict[int, ModuleDraft], version: int) -> "_LaunchDraft":
        if version == 1:
            members = element.read_members(_LAUNCH_MEMBERS, ("kernel", "grid", "block"))
        else:
            members = element.read_members(_LAUNCH_MEMBERS + _NEW_LAUNCH_MEMBERS, ("kernel",))
        module = _find_module(element, members, modules)
        rows = read_rows(members["samples"], module, modules, version) if "samples" in members else None
        names_functions = any(row.function is not None and row.is_own for row in rows or ())
        if module is not None and names_functions and not module.has_given_addresses:
            module.find_function(members["kernel"])
        return cls(element, members, module, rows)

    def build(self, index: int) -> Launch:
        """The launch, once addresses are assigned."""
        members = self.members

        def text(name: str) -> str:
            return members[name].read_text() if name in members else ""

        def integer(name: str) -> int | None:
            return members[name].read_integer() if name in members else None

        def texts(name: str) -> list[str]:
            return [item.read_text() for item in members[name].read_items()] if name in members else []

        reasons = texts("stall_reasons")
        if reasons and self.rows is None:
            raise members["stall_reasons"].fail("is given without 'samples'")
        metrics = read_metrics(members.get("metrics"), members.get("duration_ns"))
        aggregate = _read_aggregate(members["aggregate"]) if "aggregate" in members else None
        if aggregate is not None and aggregate.launches is None and DURATION_METRIC in metrics:
            message = "lacks 'launches', though a duration is given, which is the mean over them"
            raise members["aggregate"].fail(message)
        return Launch(
            index=index,
            mangled_name=text("kernel"),
            plain_name=text("plain_name"),
            demangled_name=text("demangled_name"),
            module_id=None if self.module is None else self.module.module_id,
            grid=read_dim3(members["grid"]) if "grid" in members else None,
            block=read_dim3(members["block"]) if "block" in members else None,
            device=read_device(members.get("device")),
            created_unix_s=integer("created_unix_s"),
            context_id=integer("context_id"),
            stream_id=integer("stream_id"),
            metrics=metrics,
            samples=None if self.rows is None else build_samples(self.rows, reasons),
            samples_truncated=_read_flag(members, "samples_truncated"),
            function_addresses=self._find_function_addresses(),
            nvtx_ranges=tuple(texts("nvtx_ranges")),
            call_stack=read_call_stack(members.get("call_stack")),
            rules=read_rules(members.get("rules")),
            failure=text("failure") if "failure" in members else None,
            sampling=read_sampling(members.get("sampling")),
            aggregate=aggregate,
        )

    def _find_function_addresses(self) -> tuple[int, ...]:
        if "function_addresses" in self.members:
            given = [item.read_address() for item in self.members["function_addresses"].read_items()]
            return tuple(sorted(set(given)))
        if self.module is None:
            return ()
        named = [row.function for row in self.rows or () if row.function is not None and row.is_own]
        kernel = self.module.by_name.get(self.members["kernel"].read_text())
        drafts = [*named, kernel] if kernel is not None else named
        return tuple(sorted({draft.address for draft in drafts if draft.address is not None}))


def _read_aggregate(element: Element) -> Aggregate:
    members = element.read_members(("launches",))
    if "launches" not in members:
        return Aggregate(launches=None)
    launches = members["launches"].read_integer()
    if launches == 0:
        raise members["launches"].fail("is 0, but an aggregate is of at least one launch")
    return Aggregate(launches=launches)


def _read_flag(members: dict[str, Element], name: str) -> bool:
    return members[name].read_flag() if name in members else False


def _read_problem(element: Element, path: Path) -> Problem:
    names = ("severity", "message", "place", "remedy", "kernel")
    members = element.read_members(names, ("severity", "message"))
    place, remedy, kernel = (members[name].read_text() if name in members else None for name in names[2:])
    severity = ProblemSeverity(members["severity"].read_choice([kind.value for kind in ProblemSeverity]))
    message = members["message"].read_text()
    return Problem(severity=severity, message=message, path=path, place=place, remedy=remedy, kernel=kernel)
