"""A native profile → :class:`Profile`. The format's rules are in the package's docstring."""

import json
from pathlib import Path
from typing import Any

from msgspec import Struct

from gpa_lsp.foundation.errors import InputError, Problem, ProblemSeverity, UnsupportedInputError
from gpa_lsp.foundation.numbers import format_bytes
from gpa_lsp.foundation.regular_files import open_regular_file
from gpa_lsp.profile.model import (
    Device,
    Dim3,
    FocusMetric,
    HostFrame,
    Launch,
    Metric,
    Module,
    Profile,
    RuleMessage,
    RuleResult,
    RuleSpeedup,
    RuleTable,
    RuleTableColumn,
    SourceMarker,
)
from gpa_lsp.profile.native import DURATION_METRIC, FORMAT, FORMAT_FAMILY, VERSIONS
from gpa_lsp.profile.native.elements import Element, check_text
from gpa_lsp.profile.native.layout import ModuleDraft, assign_addresses, read_modules
from gpa_lsp.profile.native.samples import SampleRow, build_samples, read_rows
from gpa_lsp.profile.sampling import Aggregate, Sampling

KINDS = ("ok", "info", "warning", "error", "optimization")
_MEMBERS = (
    "identifier",
    "name",
    "section",
    "messages",
    "speedups",
    "focus_metrics",
    "markers",
    "source_metrics",
    "tables",
)


def read_rules(element: Element | None) -> tuple[RuleResult, ...]:
    """The ``rules`` member."""
    return tuple(_read_rule(item) for item in element.read_items()) if element is not None else ()


def _read_rule(element: Element) -> RuleResult:
    members = element.read_members(_MEMBERS, ("identifier",))

    def items(name: str) -> list[Element]:
        return members[name].read_items() if name in members else []

    return RuleResult(
        identifier=members["identifier"].read_text(),
        name=members["name"].read_text() if "name" in members else "",
        section=members["section"].read_text() if "section" in members else "",
        messages=tuple(_read_message(item) for item in items("messages")),
        speedups=tuple(_read_speedup(item) for item in items("speedups")),
        focus_metrics=tuple(_read_focus(item) for item in items("focus_metrics")),
        markers=tuple(_read_marker(item) for item in items("markers")),
        source_metrics=tuple(item.read_text() for item in items("source_metrics")),
        tables=tuple(_read_table(item) for item in items("tables")),
    )


def _read_message(element: Element) -> RuleMessage:
    members = element.read_members(("kind", "title", "text"), ("kind", "text"))
    return RuleMessage(
        kind=members["kind"].read_choice(KINDS),
        title=members["title"].read_text() if "title" in members else "",
        text=members["text"].read_text(),
    )


def _read_speedup(element: Element) -> RuleSpeedup:
    members = element.read_members(("percent", "is_global"), ("percent", "is_global"))
    return RuleSpeedup(percent=members["percent"].read_float(), is_global=members["is_global"].read_flag())


def _read_focus(element: Element) -> FocusMetric:
    members = element.read_members(("name", "value", "severity", "advice"), ("name", "value"))
    return FocusMetric(
        name=members["name"].read_text(),
        value=members["value"].read_float(),
        severity=members["severity"].read_integer() if "severity" in members else 0,
        advice=members["advice"].read_text() if "advice" in members else "",
    )


def _read_marker(element: Element) -> SourceMarker:
    members = element.read_members(("address", "file", "line", "text", "kind"), ("text", "kind"))
    return SourceMarker(
        address=members["address"].read_address() if "address" in members else None,
        file=members["file"].read_text() if "file" in members else None,
        line=members["line"].read_integer() if "line" in members else None,
        text=members["text"].read_text(),
        kind=members["kind"].read_choice(KINDS),
    )


def _read_table(element: Element) -> RuleTable:
    members = element.read_members(("title", "description", "columns"), ("columns",))
    columns = [item.read_members(("name", "values"), ("name", "values")) for item in members["columns"].read_items()]
    return RuleTable(
        title=members["title"].read_text() if "title" in members else "",
        description=members["description"].read_text() if "description" in members else "",
        columns=tuple(
            RuleTableColumn(
                name=column["name"].read_text(),
                values=tuple(_read_cell(item) for item in column["values"].read_items()),
            )
            for column in columns
        ),
    )


def _read_cell(element: Element) -> float | str:
    return element.read_text() if isinstance(element.value, str) else element.read_float()


_UNKNOWN_DEVICE = Device(name=None, compute_capability=None, sm_count=None, sm_clock_hz=None)
_MAX_DIMENSION = (1 << 31) - 1
_MAX_PERIOD_CYCLES = (1 << 53) - 1
_MAX_SAMPLES = (1 << 53) - 1


def read_dim3(element: Element) -> Dim3:
    """Blocks or threads in x, y, z."""
    x, y, z = (item.read_integer(_MAX_DIMENSION) for item in element.read_items(3))
    return x, y, z


def read_device(element: Element | None) -> Device:
    """The ``device`` member; everything unknown when there is none."""
    if element is None:
        return _UNKNOWN_DEVICE
    members = element.read_members(("name", "compute_capability", "sm_count", "sm_clock_hz", "attributes"))
    attributes = members["attributes"].read_map() if "attributes" in members else {}
    return Device(
        name=members["name"].read_text() if "name" in members else None,
        compute_capability=members["compute_capability"].read_capability() if "compute_capability" in members else None,
        sm_count=members["sm_count"].read_integer() if "sm_count" in members else None,
        sm_clock_hz=members["sm_clock_hz"].read_float() if "sm_clock_hz" in members else None,
        attributes={check_text(name, value): value.read_scalar() for name, value in attributes.items()},
    )


def read_metrics(element: Element | None, duration_ns: Element | None) -> dict[str, Metric]:
    """The ``metrics`` member, with ``duration_ns`` as the metric it stands for.

    Raises:
        InputError: the duration is given both ways.
    """
    members = element.read_map() if element is not None else {}
    metrics = {check_text(name, value): _read_metric(name, value) for name, value in members.items()}
    if duration_ns is not None:
        if DURATION_METRIC in metrics:
            raise duration_ns.fail(f"is given a second time, by the metric {DURATION_METRIC}")
        metrics[DURATION_METRIC] = Metric(name=DURATION_METRIC, value=duration_ns.read_float())
    return metrics


def read_call_stack(element: Element | None) -> tuple[HostFrame, ...]:
    """The ``call_stack`` member, innermost frame first."""
    return tuple(_read_frame(item) for item in element.read_items()) if element is not None else ()


def read_sampling(element: Element | None) -> Sampling:
    """A ``sampling`` member, of a launch or of the run; everything unknown when there is none."""
    if element is None:
        return Sampling()
    names = ("dropped_samples", "foreign_samples", "total_samples")
    members = element.read_members(("period_cycles", "is_simulated", "unchecked", *names))
    period = members["period_cycles"].read_integer(_MAX_PERIOD_CYCLES) if "period_cycles" in members else None
    if period == 0:
        raise members["period_cycles"].fail("is 0, but samples are at least one cycle apart")
    counts = {name: members[name].read_integer(_MAX_SAMPLES) for name in names if name in members}
    is_simulated = "is_simulated" in members and members["is_simulated"].read_flag()
    unchecked = members["unchecked"].read_text() if "unchecked" in members else ""
    return Sampling(period_cycles=period, is_simulated=is_simulated, unchecked=unchecked, **counts)


def _read_metric(name: str, element: Element) -> Metric:
    if not isinstance(element.value, dict) or "number" in element.value:
        return Metric(name=name, value=element.read_scalar())
    members = element.read_members(("value", "instances", "over_time"))
    pairs = [item.read_items(2) for item in members["instances"].read_items()] if "instances" in members else []
    return Metric(
        name=name,
        value=members["value"].read_scalar() if "value" in members else None,
        instance_ids=tuple(_read_instance_id(identifier) for identifier, _ in pairs),
        instance_values=tuple(value.read_scalar() for _, value in pairs),
        over_time=members["over_time"].read_flag() if "over_time" in members else False,
    )


def _read_instance_id(element: Element) -> int | str:
    return element.read_text() if isinstance(element.value, str) else element.read_integer((1 << 64) - 1)


def _read_frame(element: Element) -> HostFrame:
    members = element.read_members(("function", "module", "file", "line", "address"))
    return HostFrame(
        function=members["function"].read_text() if "function" in members else None,
        module=members["module"].read_text() if "module" in members else None,
        file=members["file"].read_text() if "file" in members else None,
        line=members["line"].read_integer() if "line" in members else None,
        address=members["address"].read_address() if "address" in members else None,
    )


_MAX_BYTES = 128 << 20  # A parsed document takes some ten times its text in memory


def read_document(path: Path) -> Element:
    """Parse a file and check that it is of a version of this format that is read.

    Raises:
        InputError: not JSON, not UTF-8, too large, nested too deeply, or not this format; names line and column.
        UnsupportedInputError: another version of this format.
    """
    stream, size_bytes = open_regular_file(path)
    with stream:
        if size_bytes > _MAX_BYTES:
            message = f"is larger than {format_bytes(_MAX_BYTES)}, the limit for profiles in JSON"
            raise InputError(message, path=path, remedy="split it into several profiles")
        data = stream.read(size_bytes)
    root = Element(_parse(data))
    if not isinstance(root.value, dict):
        raise root.fail("is not a JSON object")
    name = root.value.get("format")
    if isinstance(name, str) and name in VERSIONS:
        return root
    if isinstance(name, str) and name.startswith(FORMAT_FAMILY):
        message = f"is of format {name[:40]!r}; this version reads {' and '.join(map(repr, VERSIONS))}"
        raise UnsupportedInputError(message, place="/format", remedy="update gpa-lsp or write the profile again")
    raise Element(name, "/format").fail(f"does not say {FORMAT!r}")


def _parse(data: bytes) -> Any:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError("is not UTF-8 text", place=f"offset {error.start:#x}", remedy="save it as UTF-8") from None
    try:
        return json.loads(text, object_pairs_hook=_build_object, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise InputError(
            f"is not JSON ({error.msg})", place=place, remedy="correct it there or write it again"
        ) from None
    except RecursionError:
        raise InputError("is nested too deeply for this format", remedy="write it again") from None
    except ValueError as error:
        raise InputError(f"is not JSON this format allows ({error})", remedy="correct it or write it again") from None


def _build_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        names = [name for name, _ in pairs]
        repeated = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the member {repeated!r} occurs twice in one object")
    return members


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number; write {{'number': 'nan'}} and its like")


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
_NEW_LAUNCH_MEMBERS = ("sampling", "aggregate")  # Of version 2


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


class _LaunchDraft(Struct, frozen=True):
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
