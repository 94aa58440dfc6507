"""Reports made from what a test reader can see: a kernel as a few lines of text, one instruction per line.

    kernel = build_kernel('''
        saxpy.cu:4  LDG.E R2, [R4.64]        ; long_scoreboard=60/50 selected=4
        saxpy.cu:5  FFMA R2, R2, R3, R6      ; wait=20/10
        -           EXIT                     ;
    ''')

Each line is *place*, *instruction text* and, behind a semicolon, *samples* (``reason=all`` or ``reason=all/latency``). A place is
``file:line``, several with `` < `` between them for an inline chain (innermost first), or ``-`` for no line; ``name@file:line`` names the
function whose body holds the line. ``[function]`` on a line of its own starts the section of another function, ``[function!]`` one whose role
is a local function. Whatever follows from the instructions (totals, rows per function and line) is computed, so a built report always adds up.

Blame and advice are texts of their own::

    build_kernel(listing, blame='''
        1 <- 0   long_scoreboard          memory_global R2 6c 1i
        1 <- ?   wait=5/2                 no_producer
    ''', advice='''
        loop_unrolling code 1.5x 1.3-1.7 <=2 uncapped=1.6
            group: memory latency
            hint: Unroll the loop by four.
            caveat: Needs registers.
            reason: Equations 4 and 5
            region loop 0 1.4x to=5 density=0.9
                here: Unroll this one.
                1 <- 0   long_scoreboard
        block_increase parallel 1.1x samples=90/60
            hint: Launch more blocks.
        silence fast_math not_matched: No slow division here.
    ''')

An instruction is its number in the listing from 0 (``3``), its offset in the kernel (``0x30``), or that in another section
(``helper+0x10``). A line of blame is *use* ``<-`` *def* (``?`` for samples nobody is blamed for), then the reason with samples (``reason``
alone takes all the use has of it, ``reason=all`` latency samples in proportion, ``reason=all/latency``), then in any order: category
(``memory_global``; by default what the reason usually means), ``/dependency`` (``/guard``, also ``memory_global/guard``), resource (``R2``),
distance in cycles (``6c``) and instructions (``1i``), and the group (``g3``; by default one of its own); behind ``?`` the cause. Samples no line
mentions stay with their instruction, so blame always adds up.

Advice opens with the optimizer's name; behind it, each optional: category, estimate (``1.5x``), interval (``1.3-1.7``), bound (``<=2``), the
formula's own value (``uncapped=1.6``), matched samples (``samples=all/latency``; by default the sum of its hotspots). ``title:``,
``group:``, ``hint:``, ``bound:`` (its reason), and any number of ``caveat:`` and ``reason:`` follow. ``region`` *kind* *instruction* opens a
region (also with ``line=``, ``to=`` last line, and ``density=``); ``here:`` is its hint. Its hotspots are written like blame, and take from the blame
what they do not say; a hotspot of one instruction is ``2  reason``; ``shared`` says it is not separable, and what follows ``#`` is its note.
Edges and advice beyond the notation: ``msgspec.structs.replace`` on ``kernel.blame`` and ``kernel.advice``.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from gpa_lsp.diagnosis.advice.model import KernelAdvice
from gpa_lsp.diagnosis.blame.model import KernelBlame
from gpa_lsp.foundation.errors import Problem
from gpa_lsp.foundation.figures import measure_spread
from gpa_lsp.foundation.locations import Frame, InlineChain
from gpa_lsp.profile.launch_configuration import LaunchConfiguration
from gpa_lsp.report.changes import ReasonCount, ReasonCounts
from gpa_lsp.report.model import (
    DeviceReport,
    FunctionRole,
    FunctionRow,
    InstructionColumns,
    KernelReport,
    LaunchReport,
    LineRow,
    LoopRow,
    Report,
    RuleNote,
)
from tests.advice_notation import parse_advice
from tests.blame_notation import parse_blame

INSTRUCTION_BYTES = 16
OUTSIDE = "<outside this module>"

_FRAME = re.compile(r"(?:(?P<function>[^@\s]+)@)?(?P<file>.+):(?P<line>\d+)")
_SAMPLE = re.compile(r"(?P<reason>\w+)=(?P<all>\d+)(?:/(?P<latency>\d+))?")


class Row(Struct, kw_only=True):
    """One instruction of a built kernel."""

    function: str
    pc_offset: int
    text: str
    chain: InlineChain | None
    samples: dict[str, tuple[int, int]] = field(default_factory=dict)
    control: tuple[int, int, int, int, int] | None = (1, 0, 7, 7, 0)
    """Stall cycles, yield, write barrier, read barrier, wait mask."""
    executions: int = -1


def parse_rows(listing: str, kernel: str = "kernel") -> list[Row]:
    """The instructions of a listing in this module's notation."""
    rows: list[Row] = []
    function, pc_offset = kernel, 0
    for line in (stripped for raw in listing.splitlines() if (stripped := raw.strip())):
        if line.startswith("[") and line.endswith("]"):
            function, pc_offset = line[1:-1].removesuffix("!"), 0
            continue
        code, _, samples = line.partition(";")
        place, text = re.split(r"\s{2,}|\t", code.strip(), maxsplit=1) if code.strip() != "-" else ("-", "")
        rows.append(
            Row(
                function=function,
                pc_offset=pc_offset,
                text=text,
                chain=_parse_chain(place),
                samples={
                    found["reason"]: (int(found["all"]), int(found["latency"] or 0))
                    for found in _SAMPLE.finditer(samples)
                },
            )
        )
        pc_offset += INSTRUCTION_BYTES
    return rows


def build_kernel(
    listing: str | Sequence[Row] = "",
    *,
    name: str = "kernel",
    mangled_name: str | None = None,
    profile_path: str | None = "profile.ncu-rep",
    durations_ns: Sequence[float | None] = (6_190_000.0,),
    grid: tuple[int, int, int] = (128, 1, 1),
    block: tuple[int, int, int] = (256, 1, 1),
    called_samples: Mapping[tuple[str, int], float] | None = None,
    loops: Sequence[LoopRow] = (),
    rules: Sequence[RuleNote] = (),
    failure: str | None = None,
    truncated: bool = False,
    sources: Mapping[str, str] | None = None,
    measured_unix_s: int | None = 1_700_000_000,
    device: DeviceReport | None = None,
    blame: str | KernelBlame | None = None,
    advice: str | KernelAdvice | None = None,
) -> KernelReport:
    """A kernel whose totals follow from its instructions. With several durations the samples belong to the first launch.

    Args:
        listing: text in this module's notation, or rows.
        name: readable name.
        mangled_name: defaults to ``name``; also the section of the instructions before the first ``[function]``.
        profile_path: where it was measured.
        durations_ns: one per launch.
        grid: blocks.
        block: threads.
        called_samples: (file, line) → estimate of samples of functions called there.
        loops: as they are; their samples are computed.
        rules: of the first launch.
        failure: of the first launch.
        truncated: the sampling buffer was full in the first launch.
        sources: embedded sources.
        measured_unix_s: when.
        device: defaults to an RTX 3070.
        blame: in this module's notation, or ready; the empty text leaves every sample with its instruction.
        advice: in this module's notation, or ready; the empty text is an advisor that says nothing.
    """
    mangled = mangled_name or name
    rows = parse_rows(listing, mangled) if isinstance(listing, str) else list(listing)
    local = set(re.findall(r"\[(\S+)!\]", listing)) if isinstance(listing, str) else set()
    configuration = LaunchConfiguration(
        grid=grid, block=block, registers_per_thread=32, shared_static_bytes=0, shared_dynamic_bytes=0
    )
    by_reason = count(rows)
    total, latency = _totals(by_reason)
    launches = tuple(
        LaunchReport(
            index=index,
            configuration=configuration,
            duration_ns=duration,
            total_samples=0 if index else total,
            latency_samples=0 if index else latency,
            by_reason={} if index else by_reason,
            samples_truncated=truncated and not index,
            failure=None if index else failure,
            rules=() if index else tuple(rules),
        )
        for index, duration in enumerate(durations_ns)
    )
    spread = measure_spread([duration for duration in durations_ns if duration is not None])
    columns = build_columns(rows, loops)
    if isinstance(blame, str):
        blame = parse_blame(blame, columns, mangled)
    if isinstance(advice, str):
        advice = parse_advice(advice, columns, mangled, blame)
    return KernelReport(
        name=name,
        mangled_name=mangled,
        profile_path=None if profile_path is None else Path(profile_path),
        measured_unix_s=measured_unix_s,
        configuration=configuration,
        device=device
        or DeviceReport(
            name="NVIDIA GeForce RTX 3070", compute_capability=(8, 6), sm_count=46, sm_clock_hz=1_725_000_000.0
        ),
        duration_ns=spread.mean if spread else None,
        duration_spread_ns=spread,
        samples_spread=measure_spread([total]) if total else None,
        total_samples=total,
        latency_samples=latency,
        by_reason=by_reason,
        samples_truncated=truncated,
        launches=launches,
        functions=_function_rows(rows, mangled, name, local),
        lines=_line_rows(rows, called_samples or {}),
        loops=tuple(_fill_loop(loop, rows) for loop in loops),
        instructions=columns,
        embedded_sources=sources or {},
        blame=blame,
        advice=advice,
    )


def build_report(*kernels: KernelReport, problems: Sequence[Problem] = ()) -> Report:
    """A report of some kernels, in the order given."""
    return Report(problems=tuple(problems), kernels=kernels)


def build_columns(rows: Sequence[Row], loops: Sequence[LoopRow] = ()) -> InstructionColumns:
    """The columns of some instructions; functions, chains and reasons numbered as they occur, reasons sorted."""
    functions = list(dict.fromkeys(row.function for row in rows))
    chains = list(dict.fromkeys(row.chain for row in rows if row.chain))
    reasons = sorted({reason for row in rows for reason in row.samples})
    every = np.zeros((len(rows), len(reasons)), dtype=np.int64)
    latency = np.zeros_like(every)
    for position, row in enumerate(rows):
        for reason, (samples, quiet) in row.samples.items():
            every[position, reasons.index(reason)] = samples
            latency[position, reasons.index(reason)] = quiet
    control = np.array([row.control or (0, 0, 7, 7, 0) for row in rows], dtype=np.uint8).reshape(len(rows), 5)
    return InstructionColumns(
        functions=tuple(functions),
        function_index=np.array([functions.index(row.function) for row in rows], dtype=np.int32),
        pc_offsets=np.array([row.pc_offset for row in rows], dtype=np.int64),
        texts=tuple(row.text for row in rows),
        chains=tuple(chains),
        chain_index=np.array([chains.index(row.chain) if row.chain else -1 for row in rows], dtype=np.int32),
        reasons=tuple(reasons),
        all_samples=every,
        latency_samples=latency,
        executions=np.array([row.executions for row in rows], dtype=np.int64),
        stall_cycles=control[:, 0].copy(),
        yield_flag=control[:, 1].copy(),
        write_barrier=control[:, 2].copy(),
        read_barrier=control[:, 3].copy(),
        wait_mask=control[:, 4].copy(),
        loop_depths=np.array([sum(_is_inside(row, loop) for loop in loops) for row in rows], dtype=np.uint16),
        has_control=np.array([row.control is not None for row in rows], dtype=np.bool_),
    )


def count(rows: Sequence[Row]) -> ReasonCounts:
    """Samples of some rows by reason, most first."""
    every: Counter[str] = Counter()
    latency: Counter[str] = Counter()
    for row in rows:
        for reason, (samples, quiet) in row.samples.items():
            every[reason] += samples
            latency[reason] += quiet
    return {
        reason: ReasonCount(all_samples=samples, latency_samples=latency[reason])
        for reason, samples in sorted(every.items(), key=lambda item: (-item[1], item[0]))
        if samples
    }


def _parse_chain(place: str) -> InlineChain | None:
    if place == "-":
        return None
    frames = []
    for part in place.split(" < "):
        found = _FRAME.fullmatch(part.strip())
        if found is None:
            raise ValueError(f"{part!r} is no place")
        frames.append(Frame(file=found["file"], line=int(found["line"]), function=found["function"]))
    return tuple(frames)


def _totals(counts: ReasonCounts) -> tuple[int, int]:
    return sum(count.all_samples for count in counts.values()), sum(count.latency_samples for count in counts.values())


def _function_rows(rows: Sequence[Row], mangled: str, name: str, local: set[str]) -> tuple[FunctionRow, ...]:
    found = []
    for function in dict.fromkeys([mangled, *(row.function for row in rows)]):
        own = [row for row in rows if row.function == function]
        counts = count(own)
        total, latency = _totals(counts)
        role = FunctionRole.DEVICE_FUNCTION
        if function in (mangled, OUTSIDE):
            role = FunctionRole.KERNEL if function == mangled else FunctionRole.OUTSIDE_MODULE
        elif function in local:
            role = FunctionRole.SUB_FUNCTION
        found.append(
            FunctionRow(
                mangled_name=function,
                name=name if function == mangled else function,
                role=role,
                instruction_count=0 if function == OUTSIDE else len(own),
                has_lines=any(row.chain for row in own),
                samples=total,
                latency_samples=latency,
                by_reason=counts,
                registers=32,
                section=function,
            )
        )
    return tuple(sorted(found, key=lambda row: -row.samples))


def _line_rows(rows: Sequence[Row], called: Mapping[tuple[str, int], float]) -> tuple[LineRow, ...]:
    places = dict.fromkeys((frame.file, frame.line) for row in rows for frame in row.chain or ())
    found = [_line_row(rows, file, line, called.get((file, line), 0.0)) for file, line in places]
    for function in dict.fromkeys(row.function for row in rows):
        lost = [row for row in rows if row.function == function and not row.chain]
        found.append(_make_line((None, None), function, lost, lost, 0.0))
    kept = (row for row in found if row.inclusive_samples or row.called_samples)
    return tuple(sorted(kept, key=lambda row: (-row.inclusive_samples, -row.samples, row.file or "", row.line or 0)))


def _line_row(rows: Sequence[Row], file: str, line: int, called: float) -> LineRow:
    own = [row for row in rows if row.chain and (row.chain[0].file, row.chain[0].line) == (file, line)]
    under = [row for row in rows if any((frame.file, frame.line) == (file, line) for frame in row.chain or ())]
    frames = [frame for row in under for frame in row.chain or () if (frame.file, frame.line) == (file, line)]
    return _make_line((file, line), frames[0].function or under[0].function, own, under, called)


def _make_line(
    place: tuple[str | None, int | None], function: str, own: Sequence[Row], under: Sequence[Row], called: float
) -> LineRow:
    file, line = place
    self_counts, counts = count(own), count(under)
    return LineRow(
        file=file,
        line=line,
        function=function,
        samples=_totals(self_counts)[0],
        latency_samples=_totals(self_counts)[1],
        inclusive_samples=_totals(counts)[0],
        inclusive_latency_samples=_totals(counts)[1],
        called_samples=called,
        by_reason=self_counts,
        inclusive_by_reason=counts,
    )


def _fill_loop(loop: LoopRow, rows: Sequence[Row]) -> LoopRow:
    inside = count([row for row in rows if _is_inside(row, loop)])
    total, latency = _totals(inside)
    return replace(loop, samples=total, latency_samples=latency)


def _is_inside(row: Row, loop: LoopRow) -> bool:
    return row.function == loop.function and loop.header_pc_offset <= row.pc_offset <= loop.last_pc_offset
