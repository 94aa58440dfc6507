"""Layout of a saved report: structs of the model, and where their JSON differs from them."""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import numpy as np
from msgspec import Struct, field

from gpa_lsp.diagnosis.advice.model import Advice, Hotspot, KernelAdvice, Refusal, Region, Silence, Speedup, UnitUse
from gpa_lsp.foundation.errors import Problem
from gpa_lsp.foundation.figures import Share, Spread
from gpa_lsp.foundation.json_records import WRITTEN_ONLY, Codecs, Layout, RowsOf, StandIn
from gpa_lsp.foundation.json_values import MAX_COUNT, InScope, MisfitError, Number, Position, Spelled, Whole
from gpa_lsp.foundation.locations import Frame
from gpa_lsp.foundation.prose import Part, Sentence
from gpa_lsp.foundation.records import ColumnRecord
from gpa_lsp.kernel.scopes import Scope
from gpa_lsp.profile.launch_configuration import LaunchConfiguration
from gpa_lsp.profile.model import Aggregate, PlaceSamples, Sampling
from gpa_lsp.report.changes import ReasonCount, ReasonCounts
from gpa_lsp.report.model import (
    CodeFinding,
    DeviceReport,
    FunctionRow,
    InstructionColumns,
    KernelReport,
    LaunchReport,
    LineRow,
    LoopRow,
    RuleNote,
)
from gpa_lsp.report.saved import SCHEMA_NAMES
from gpa_lsp.report.saved.instruction_rows import (
    BLAME_LAYOUTS,
    INSTRUCTION_LAYOUTS,
    Amount,
    Category,
    Chain,
    Columns,
    File,
    Function,
    InstructionPlace,
    Ratio,
    Reason,
    Resource,
    Row,
    place_instruction,
)


class PlaceRow(Struct, frozen=True, kw_only=True):
    """Samples of one place, instruction and reason."""

    place: Annotated[int, Position("call_stacks")]  # whose launches, by its position in ``call_stacks``
    row: Row  # the instruction
    reason: Reason  # stall reason
    all_samples: int  # samples


class Places(ColumnRecord, frozen=True, kw_only=True):
    """Samples by the place of the host program that launched the kernel."""

    call_stacks: tuple[tuple[str, ...], ...]  # each place's frames, innermost first; empty where they are not known
    rows: Annotated[Columns, RowsOf(PlaceRow)]  # samples by place, instruction and reason, without zeros


def _make_places(places: Sequence[PlaceSamples], kernel: KernelReport) -> Places | None:
    if not places:
        return None
    names = kernel.instructions.reasons
    table: dict[str, list[Any]] = {"place": [], "row": [], "reason": [], "all_samples": []}
    for number, place in enumerate(places):
        rows, reasons = np.nonzero(place.all_samples)
        table["place"] += [number] * len(rows)
        table["row"] += place.rows[rows].tolist()
        table["reason"] += [names[one] for one in reasons.tolist()]
        table["all_samples"] += place.all_samples[rows, reasons].tolist()
    return Places(call_stacks=tuple(place.call_stack for place in places), rows=table)


def _restore_places(found: Places | None, scope: InScope) -> tuple[PlaceSamples, ...]:
    if found is None:
        return ()
    columns: InstructionColumns = scope["instructions"]
    numbers = {reason: number for number, reason in enumerate(columns.reasons)}
    counts, total = found.rows["all_samples"], scope["total_samples"]
    if sum(counts) > total:  # before sums overflow
        raise MisfitError(f"has more samples than the kernel's {total}").within("rows")
    owners, rows, samples = (np.array(found.rows[name], dtype=np.int64) for name in ("place", "row", "all_samples"))
    reasons = np.array([numbers[reason] for reason in found.rows["reason"]], dtype=np.int64)
    sums = np.zeros_like(columns.all_samples)
    np.add.at(sums, (rows, reasons), samples)
    _check_sums(sums, columns)
    order = np.argsort(owners, kind="stable")
    ends = np.searchsorted(owners[order], np.arange(len(found.call_stacks) + 1))
    parts = [order[first:last] for first, last in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)]
    return tuple(
        _restore_place(stack, rows[part], reasons[part], samples[part], len(numbers))
        for stack, part in zip(found.call_stacks, parts, strict=True)
    )


def _check_sums(sums: Any, columns: InstructionColumns) -> None:
    """An instruction has at least the samples of all places together."""
    wrong = np.argwhere(sums > columns.all_samples)
    if len(wrong):
        row, reason = wrong[0].tolist()
        more = f"{sums[row, reason]} samples of {columns.reasons[reason][:40]}"
        raise MisfitError(f"has {more} at instruction {row}, which has {columns.all_samples[row, reason]}").within(
            "rows"
        )


def _restore_place(stack: tuple[str, ...], rows: Any, reasons: Any, samples: Any, reason_count: int) -> PlaceSamples:
    sampled, at = np.unique(rows, return_inverse=True)
    sums = np.zeros((len(sampled), reason_count), dtype=np.int64)
    np.add.at(sums, (at.reshape(-1), reasons), samples)
    return PlaceSamples(call_stack=stack, rows=sampled, all_samples=sums)


# Of a kernel; null where it was launched from one place, or nobody knows
PLACES = Annotated[tuple[PlaceSamples, ...], StandIn(Places | None, _make_places, _restore_places)]

PLACE_LAYOUTS: Mapping[Any, Layout | StandIn] = {
    PlaceRow: Layout(names={"all_samples": "samples"}),
    Places: Layout(scoped=("call_stacks",)),
}


_CAPABILITY = re.compile(r"([0-9]{1,4})\.([0-9]{1,4})")
_UNIX_TIME_LIMIT_S = 1 << 53


class Generator(Struct, frozen=True, kw_only=True):
    """The program that wrote the report."""

    name: str  # of the program
    version: str  # of the program


class SavedFinding(Struct, frozen=True, kw_only=True):
    """A hot line of a kernel, or a hot function without lines."""

    kernel: str  # mangled name of the kernel
    profile_path: str | None  # the profile it was measured in
    file: str | None  # path as compiled; null for a function without lines
    line: int | None  # from 1; 0 when the compiler gave none; null as for file
    shown_file: str | None  # the same file on the machine that wrote this, where it was found, else as compiled
    function: str  # mangled name of the function whose body holds the line, or of the function without lines
    share: Share  # inclusive samples in the kernel's samples
    samples: int  # inclusive samples
    self_samples: int  # of the inclusive samples, those of the line's own instructions
    latency_samples: int | None  # of the inclusive samples, those taken when the scheduler issued nothing
    called_samples: Amount  # estimate of samples in functions called from here; not contained in samples
    by_reason: ReasonCounts  # inclusive samples per stall reason
    message: str  # the finding as a sentence


class Tables(Struct, frozen=True, kw_only=True):
    """Values shared by many objects of the report.

    Where the schema says so, a whole number is a position in one of these tables, from 0; with --expand there are none.
    """

    files: tuple[str, ...] = ()  # paths as compiled
    functions: tuple[str, ...] = ()  # mangled names
    frames: tuple[Frame, ...] = ()  # levels of inline chains
    chains: tuple[Any, ...] = ()  # inline chains, innermost frame first; an empty one stands for no line
    # the texts of the report that hold numbers, places or code, in parts: words, and values with what they are. Joined they are the text as it stands
    # elsewhere.
    sentences: Mapping[str, Sentence] = field(default_factory=dict)


class SavedReport(Struct, frozen=True, kw_only=True):
    """Findings in one or more GPU profiles: stall samples of kernels by function, source line, loop and instruction.

    A sample is one look of the profiler at one warp, filed under the instruction the warp was about to issue and the reason it had not issued
    it yet. Later writers may add properties; readers pass over those they do not know. Numbers are finite; null means unknown.
    """

    # name and version of this format; always the first property
    schema: Annotated[str, Spelled({name: name for name in SCHEMA_NAMES})]
    generator: Annotated[Generator | None, WRITTEN_ONLY] = None  # the program that wrote the report
    problems: tuple[Problem, ...]  # what could not be read or is in doubt, in the order it was met
    # places worth a reader's attention, written by gpa-lsp check only; derived from the kernels and not read back
    findings: Annotated[tuple[SavedFinding, ...], WRITTEN_ONLY] = ()
    kernels: tuple[KernelReport, ...]  # one per kernel and profile, longest total time first
    tables: Tables = Tables()  # what many objects have in common; missing where everything is written in place


_Sentences = Annotated[
    Mapping[str, Sentence],
    StandIn(
        hint=tuple[tuple[Part, ...], ...],
        make=lambda sentences, _: tuple(sentence.parts for sentence in sentences.values()),
        restore=lambda rows, _: {str(sentence): sentence for sentence in map(Sentence, rows)},
    ),
]
_Limit = Annotated[float, Number(0, null=math.inf)]
_AtLeastOne = Annotated[int, Whole(1, MAX_COUNT)]
_UnixTime = Annotated[int, Whole(-_UNIX_TIME_LIMIT_S, _UNIX_TIME_LIMIT_S)]
_SAMPLES = {
    "total_samples": "samples/total",
    "latency_samples": "samples/latency",
    "by_reason": "samples/by_reason",
    "samples_truncated": "samples/truncated",
}
_WITHIN_TOTAL = {"latency_samples": "total_samples", "by_reason": "total_samples"}
_WITHIN_SAMPLES = {"latency_samples": "samples", "by_reason": "samples"}


def _read_capability(text: str, scope: InScope) -> tuple[int, int]:
    del scope
    found = _CAPABILITY.fullmatch(text)
    if found is None:
        raise MisfitError('is not a compute capability such as "8.6"')
    return int(found[1]), int(found[2])


# A text, since 12.1 and 12.10 are the same number
_Capability = Annotated[
    tuple[int, int], StandIn(str, lambda capability, kernel: f"{capability[0]}.{capability[1]}", _read_capability)
]


def _check_speedup(speedup: Speedup, scope: InScope) -> None:
    del scope
    if not speedup.low <= speedup.estimate <= speedup.high <= speedup.bound:
        raise MisfitError("has low, estimate, high and bound in another order")


def _check_kernel(kernel: KernelReport, scope: InScope) -> None:
    del scope
    found = sum(sum(row) for row in kernel.instructions.all_samples.tolist())
    if len(kernel.instructions) and found != kernel.total_samples:
        raise MisfitError(f"has {found} samples, not the kernel's {kernel.total_samples}").within("instructions")


def _find_offset(scope: Scope, kernel: KernelReport) -> int | None:
    columns = kernel.instructions
    return int(columns.pc_offsets[scope.row]) if scope.row < len(columns) else None


_ROW_LAYOUTS: Mapping[Any, Layout | StandIn] = {
    Frame: Layout(hints={"file": File, "function": Function | None}),
    ReasonCount: Layout(
        names={"all_samples": "all", "latency_samples": "latency"}, at_most={"latency_samples": "all_samples"}
    ),
    FunctionRow: Layout(
        hints={"mangled_name": Function, "section": Function | None},
        at_most={"samples": "total_samples", **_WITHIN_SAMPLES},
    ),
    LineRow: Layout(
        hints={"file": File | None, "function": Function, "called_samples": Amount},
        derived={
            "share": (Share, lambda line, kernel: kernel.share_of(line.samples)),
            "inclusive_share": (Share, lambda line, kernel: kernel.share_of(line.inclusive_samples)),
        },
        at_most={
            "inclusive_samples": "total_samples",
            "samples": "inclusive_samples",
            **_WITHIN_SAMPLES,
            "inclusive_latency_samples": "inclusive_samples",
            "inclusive_by_reason": "inclusive_samples",
        },
    ),
    LoopRow: Layout(
        hints={"function": Function, "file": File | None, "depth": _AtLeastOne},
        at_most={"samples": "total_samples", "latency_samples": "samples"},
    ),
}

_ADVICE_LAYOUTS: Mapping[Any, Layout | StandIn] = {
    Speedup: Layout(
        hints={"estimate": Amount, "low": Amount, **dict.fromkeys(("high", "bound", "uncapped"), _Limit)},
        check=_check_speedup,
    ),
    UnitUse: Layout(hints={"achieved_ratio": Amount, "ceiling_ratio": Amount}),
    Silence: Layout(),
    Refusal: Layout(),
    Scope: Layout(
        hints={
            "function": Function,
            "row": Annotated[int, Position("instructions", may_be_empty=True)],
            "file": File | None,
        },
        derived={"pc_offset": (int | None, _find_offset)},
    ),
    Hotspot: Layout(
        names={
            "def_row": "def/row",
            "def_loop": "def/loop",
            "use_row": "use/row",
            "use_loop": "use/loop",
            "resource": "operand",
        },
        hints={
            "def_row": Row,
            "use_row": Row | None,
            "category": Category | None,
            "samples": Amount,
            "latency_samples": Amount | None,
            "resource": Resource | None,
        },
        derived={
            "def": (InstructionPlace, lambda hotspot, kernel: place_instruction(hotspot.def_row, kernel)),
            "use": (InstructionPlace | None, lambda hotspot, kernel: place_instruction(hotspot.use_row, kernel)),
        },
    ),
    Region: Layout(hints={"matched_samples": Amount, "matched_latency_samples": Amount | None, "density": Ratio}),
    Advice: Layout(
        hints={"matched_samples": Amount, "matched_latency_samples": Amount | None},
        derived={"hotspots": (tuple[Hotspot, ...], lambda advice, kernel: advice.hotspots)},
    ),
    KernelAdvice: Layout(
        names={
            "silences": "advice_silences",
            "refusals": "advice_refusals",
            "memory": "advice_memory/words",
            "is_bandwidth_bound": "advice_memory/is_bandwidth_bound",
            "units": "advice_memory/units",
        },
    ),
}

# How each type of value in a report is written and read
REPORT = Codecs(
    {
        **INSTRUCTION_LAYOUTS,
        **BLAME_LAYOUTS,
        **PLACE_LAYOUTS,
        **_ROW_LAYOUTS,
        **_ADVICE_LAYOUTS,
        Share: Layout(
            hints=dict.fromkeys(("ratio", "low_ratio", "high_ratio"), Ratio),
            at_most={"part_samples": "whole_samples"},
        ),
        Spread: Layout(hints={"count": _AtLeastOne, "mean": Annotated[float, Number()]}),
        Aggregate: Layout(hints={"launches": _AtLeastOne | None}),
        Sampling: Layout(hints={"period_cycles": _AtLeastOne | None}),
        RuleNote: Layout(),
        CodeFinding: Layout(hints={"file": File | None}),
        LaunchConfiguration: Layout(),
        DeviceReport: Layout(hints={"compute_capability": _Capability | None}),
        LaunchReport: Layout(names={"configuration": "launch", **_SAMPLES}, at_most=_WITHIN_TOTAL),
        KernelReport: Layout(
            names={"configuration": "launch", **_SAMPLES, "instructions": "", "advice": ""},
            hints={"measured_unix_s": _UnixTime | None, "places": PLACES},
            scoped=("total_samples", "latency_samples", "instructions"),
            at_most=_WITHIN_TOTAL,
            check=_check_kernel,
        ),
        SavedFinding: Layout(),
        Tables: Layout(
            hints={"chains": tuple[Chain, ...], "sentences": _Sentences},
            scoped=("files", "functions", "frames", "chains", "sentences"),
        ),
        SavedReport: Layout(scoped=("tables",)),
    }
)
