"""What a saved report is: the dataclasses of the model, and where their JSON differs from them, the layout it has."""

import math
import re
from collections.abc import Mapping
from dataclasses import field
from typing import Annotated, Any

from gpa_lsp.advice.model import Advice, Hotspot, KernelAdvice, Region, Silence, Speedup, UnitUse
from gpa_lsp.basis.errors import Problem
from gpa_lsp.basis.figures import Share, Spread
from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.basis.locations import Frame
from gpa_lsp.basis.prose import Part, Sentence
from gpa_lsp.profile.sampling import Aggregate, Sampling
from gpa_lsp.report.model import (
    CodeFinding,
    DeviceReport,
    FunctionRow,
    KernelReport,
    LaunchConfiguration,
    LaunchReport,
    LineRow,
    LoopRow,
    ReasonCount,
    ReasonCounts,
    RuleNote,
)
from gpa_lsp.report_file.blame_rows import BLAME_LAYOUTS, Amount, Category, Ratio, Resource, Row
from gpa_lsp.report_file.instruction_rows import (
    INSTRUCTION_LAYOUTS,
    Chain,
    File,
    Function,
    InstructionPlace,
    place_instruction,
)
from gpa_lsp.report_file.json_records import WRITTEN_ONLY, Codecs, Derived, Layout, StandIn
from gpa_lsp.report_file.json_values import MAX_COUNT, InScope, MisfitError, Number, Position, Spelled, Whole
from gpa_lsp.report_file.place_rows import PLACE_LAYOUTS, PLACES
from gpa_lsp.report_file.schema import SCHEMA_NAMES
from gpa_lsp.rows.scopes import Scope

_CAPABILITY = re.compile(r"([0-9]{1,4})\.([0-9]{1,4})")
_UNIX_TIME_LIMIT_S = 1 << 53


@dataclass(frozen=True, slots=True, kw_only=True)
class Generator:
    """The program that wrote the report.

    Attributes:
        name: of the program.
        version: of the program.
    """

    name: str
    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedFinding:
    """A hot line of a kernel, or a hot function without lines.

    Attributes:
        kernel: mangled name of the kernel.
        profile_path: the profile it was measured in.
        file: path as compiled; null for a function without lines.
        line: from 1; 0 when the compiler gave none; null as for file.
        shown_file: the same file on the machine that wrote this, where it was found, else as compiled.
        function: mangled name of the function whose body holds the line, or of the function without lines.
        share: inclusive samples in the kernel's samples.
        samples: inclusive samples.
        self_samples: of the inclusive samples, those of the line's own instructions.
        latency_samples: of the inclusive samples, those taken when the scheduler issued nothing.
        called_samples: estimate of samples in functions called from here; not contained in samples.
        by_reason: inclusive samples per stall reason.
        message: the finding as a sentence.
    """

    kernel: str
    profile_path: str | None
    file: str | None
    line: int | None
    shown_file: str | None
    function: str
    share: Share
    samples: int
    self_samples: int
    latency_samples: int | None
    called_samples: Amount
    by_reason: ReasonCounts
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Tables:
    """What many objects of the report have in common.

    Where the schema says so, a whole number is a position in one of these tables, from 0; with --expand there are none.

    Attributes:
        files: paths as compiled.
        functions: mangled names.
        frames: levels of inline chains.
        chains: inline chains, innermost frame first; an empty one stands for no line.
        sentences: the texts of the report that hold numbers, places or code, in parts: words, and values with what they are. Joined they are
            the text as it stands elsewhere.
    """

    files: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()
    frames: tuple[Frame, ...] = ()
    chains: tuple[Any, ...] = ()
    sentences: Mapping[str, Sentence] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedReport:
    """What was found in one or more GPU profiles: stall samples of kernels by function, source line, loop and instruction.

    A sample is one look of the profiler at one warp, filed under the instruction the warp was about to issue and the reason it had not issued
    it yet. Later writers may add properties; readers pass over those they do not know. Numbers are finite; null means unknown.

    Attributes:
        schema: name and version of this format; always the first property.
        generator: the program that wrote the report.
        problems: what could not be read or is in doubt, in the order it was met.
        findings: places worth a reader's attention, written by gpa-lsp check only; derived from the kernels and not read back.
        kernels: one per kernel and profile, longest total time first.
        tables: what many objects have in common; missing where everything is written in place.
    """

    schema: Annotated[str, Spelled({name: name for name in SCHEMA_NAMES})]
    generator: Annotated[Generator | None, WRITTEN_ONLY] = None
    problems: tuple[Problem, ...]
    findings: Annotated[tuple[SavedFinding, ...], WRITTEN_ONLY] = ()
    kernels: tuple[KernelReport, ...]
    tables: Tables = Tables()


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


_Capability = Annotated[
    tuple[int, int], StandIn(str, lambda capability, kernel: f"{capability[0]}.{capability[1]}", _read_capability)
]
"""A text, since 12.1 and 12.10 are the same number."""


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
            "share": Derived(hint=Share, make=lambda line, kernel: kernel.share_of(line.samples)),
            "inclusive_share": Derived(hint=Share, make=lambda line, kernel: kernel.share_of(line.inclusive_samples)),
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
    Scope: Layout(
        hints={
            "function": Function,
            "row": Annotated[int, Position("instructions", may_be_empty=True)],
            "file": File | None,
        },
        derived={"pc_offset": Derived(hint=int | None, make=_find_offset)},
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
            "def": Derived(
                hint=InstructionPlace, make=lambda hotspot, kernel: place_instruction(hotspot.def_row, kernel)
            ),
            "use": Derived(
                hint=InstructionPlace | None, make=lambda hotspot, kernel: place_instruction(hotspot.use_row, kernel)
            ),
        },
    ),
    Region: Layout(hints={"matched_samples": Amount, "matched_latency_samples": Amount | None, "density": Ratio}),
    Advice: Layout(
        hints={"matched_samples": Amount, "matched_latency_samples": Amount | None},
        derived={"hotspots": Derived(hint=tuple[Hotspot, ...], make=lambda advice, kernel: advice.hotspots)},
    ),
    KernelAdvice: Layout(
        names={
            "silences": "advice_silences",
            "memory": "advice_memory/words",
            "is_bandwidth_bound": "advice_memory/is_bandwidth_bound",
            "units": "advice_memory/units",
        },
    ),
}

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
"""How each type of value in a report is written and read."""
