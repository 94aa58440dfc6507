"""VIEW: predictions of a source, of a kept trace and of address expressions."""

from collections.abc import Iterator, Sequence
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from gpa_lsp.diagnosis.analyses.answers import Answer, Weight
from gpa_lsp.document.answer_view import build_answer, build_findings
from gpa_lsp.document.blocks import Block, Paragraph, Part, Table, tabulate
from gpa_lsp.document.layout import Column, Span, Style, flexible, left, right
from gpa_lsp.document.places import show_line
from gpa_lsp.execution.launches.read_launches import explain_undescribed
from gpa_lsp.execution.prediction.model import Execution, KernelPrediction, SourcePrediction
from gpa_lsp.execution.traces.line_facts import AccessLineFact
from gpa_lsp.foundation.errors import Problem
from gpa_lsp.foundation.numbers import (
    format_bytes,
    format_count,
    format_count_of,
    format_dim3,
    format_duration_ns,
    format_launches,
    format_number,
    format_percent,
)
from gpa_lsp.foundation.ownership import find_frame_in
from gpa_lsp.foundation.prose import NOTHING
from gpa_lsp.kernel.line_waits import HIDDEN_RATIO, find_wait
from gpa_lsp.kernel.names import demangle, shorten_name
from gpa_lsp.report.line_map import split_lines

if TYPE_CHECKING:
    from gpa_lsp.execution.prediction.predict import ExpressionPrediction
    from gpa_lsp.execution.prediction.trace_files import SavedTrace

MOST_LINES = 12  # Of the table of accesses where the reader set no limit
_MOST_SOURCE_LINES = 20_000
_FAULTS = "faults"
_VERDICTS = (_FAULTS, "measured", "volumes", "measured_volumes")  # Answers whose summary stands on a short screen
_MUCH_RATIO = 0.5  # Of sectors or wavefronts beyond the fewest: such a line is marked


def build_prediction(
    prediction: SourcePrediction, folder: Path | None = None, *, has_source: bool = False, is_brief: bool = False
) -> list[Block]:
    """Launches of a source one by one, then side by side, then kernels without a described launch.

    Args:
        prediction: what to show.
        folder: paths below it are shown relative to it.
        has_source: with the text of the source beside what its lines do.
        is_brief: of each launch one screen: faults, the limit, what was found to change, and what its lines do.
    """
    blocks: list[Block] = []
    for kernel in prediction.kernels:
        listing = build_listing(kernel, str(prediction.path), prediction.statics.text) if has_source else None
        blocks.append(build_launch(kernel, folder, listing, is_brief=is_brief))
    for one in prediction.comparisons:
        title = f"{shorten_name(one.name)}: {format_launches(one.launches)}"
        blocks.append(Part(title=title, style=Style.TITLE, blocks=[build_answer(one.answer)]))
    return [*blocks, *explain_missing(prediction, folder)]


def build_prediction_page(prediction: SourcePrediction, folder: Path | None = None) -> tuple[str, str, list[Block]]:
    """Title, lead and blocks of a page: problems, predictions and the source."""
    blocks = [*build_remarks(prediction.problems), *build_prediction(prediction, folder, has_source=True)]
    return f"Predictions for {prediction.path.name}", describe_origin(prediction), blocks


def describe_origin(prediction: SourcePrediction) -> str:
    """Number of launches, and the compiler."""
    counted = format_launches(len(prediction.kernels))
    return f"{counted}, compiled by {prediction.statics.unit.compiler}; emulated and predicted, not measured"


def explain_missing(prediction: SourcePrediction, folder: Path | None) -> list[Paragraph]:
    """Kernels without a described launch, and the remedy."""
    names = [shorten_name(demangle(name)) for name in prediction.undescribed]
    if not names:
        return []
    missing = explain_undescribed(prediction.path, names, prediction.launches_path, folder=folder)
    return [Paragraph(text=((missing.message, Style.PLAIN),))]


def build_launch(
    kernel: KernelPrediction, folder: Path | None = None, listing: Table | None = None, *, is_brief: bool = False
) -> Part:
    """One launch: what was emulated, answers, lines, its source where a listing is given, and its printed output."""
    blocks: list[Block] = [
        *build_launch_head(kernel),
        *(_choose_briefly(kernel.answers) if is_brief else map(build_answer, kernel.answers)),
        *_build_lines(kernel.accesses, folder),
        *_build_waits(kernel, folder),
        *([_name_rest(kernel)] if is_brief else ()),
    ]
    if listing is not None and listing.rows:
        blocks.append(Part(title="Source (emulated)", blocks=[listing], name="source"))
    if kernel.execution.printed:
        lines = kernel.execution.printed.expandtabs().removesuffix("\n").split("\n")
        printed = Table(columns=[Column(title="")], rows=[[(line, Style.CODE)] for line in lines], is_listing=True)
        blocks.append(Part(title="What the kernel printed", blocks=[printed], name="printed"))
    return _name_part(kernel.short_name, kernel.name, blocks)


def _choose_briefly(answers: Sequence[Answer]) -> Iterator[Block]:
    """Faults, limits, and the findings of most weight."""
    verdicts = [one for one in answers if one.analysis in _VERDICTS]
    yield from (build_answer(one, brief=True) for one in verdicts if one.analysis == _FAULTS)
    yield from (build_answer(replace(one, findings=()), brief=True) for one in verdicts if one.analysis != _FAULTS)
    heavy = [
        finding
        for answer in answers
        for finding in answer.findings
        if answer.analysis != _FAULTS and finding.weight is Weight.HIGH
    ]
    if heavy:
        told: set[str] = set()
        once = [one if _is_new(one.remedy, told) else replace(one, remedy=NOTHING) for one in heavy]
        yield Part(title="What to change", blocks=[build_findings(once)], name="change")


def _is_new(remedy: str, told: set[str]) -> bool:
    """Whether a remedy is new to *told*, to which it is added."""
    known = remedy in told
    told.add(remedy)
    return not known


def _name_rest(kernel: KernelPrediction) -> Paragraph:
    left = sum(one.analysis not in _VERDICTS for one in kernel.answers)
    listed = f"left out: {format_count(left)} other analyses; " if left else ""
    return Paragraph(text=f"{listed}everything: --details, --format json, --format html", style=Style.DIM)


def build_launch_head(kernel: KernelPrediction) -> list[Paragraph]:
    """Launch, extent of the emulation, and problems."""
    return [
        Paragraph(text=((describe_launch(kernel), Style.PLAIN),)),
        Paragraph(text=((describe_execution(kernel.execution), Style.DIM),)),
        *build_remarks(kernel.problems),
    ]


def build_remarks(problems: Sequence[Problem]) -> list[Paragraph]:
    """Problems with their severity."""
    return [
        Paragraph(text=((f"{problem.severity.value}: {problem}", Style.WARNING),), style=Style.WARNING)
        for problem in problems
    ]


def _name_part(short_name: str, name: str, blocks: Sequence[Block]) -> Part:
    """Part of a launch; its first block is followed by the whole name of the kernel."""
    whole = [] if short_name == name else [Paragraph(text=((name, Style.DIM),))]
    return Part(title=short_name, style=Style.TITLE, blocks=[*blocks[:1], *whole, *blocks[1:]])


def describe_launch(kernel: KernelPrediction) -> str:
    """The launch and its warps per SM."""
    parts = [
        f"grid {format_dim3(kernel.launch.grid)}, block {format_dim3(kernel.launch.block)}",
        *(() if kernel.registers is None else (format_count_of(kernel.registers, "register"),)),
        *((f"{format_bytes(kernel.shared_bytes)} of shared memory",) if kernel.shared_bytes else ()),
        *(() if kernel.warps_per_sm is None else (f"{format_count_of(kernel.warps_per_sm, 'warp')} per SM",)),
    ]
    title = f"“{kernel.launch.title}”: " if kernel.launch.title else ""
    machine = f"; predicted for the {kernel.machine}" if kernel.machine else ""
    return f"{title}{', '.join(parts)}{machine}"


_TOLD_SHARE = 0.05  # Analyses that took less than this part of the time are not told of


def describe_execution(execution: Execution) -> str:
    """Extent of the emulation, in one sentence.

    >>> describe_execution(Execution(grid_blocks=8, executed_blocks=8, is_complete=True, warp_instructions=1000, lane_instructions=32000,
    ...     seconds=0.002, peak_bytes=0, why="all blocks"))
    'emulated: all blocks (8), 1,000 warp instructions with 32 active lanes on average, in 2.00 ms'
    """
    counted = format_count(execution.executed_blocks)
    if not execution.is_complete:
        counted = f"{counted} of {format_count_of(execution.grid_blocks, 'block')}, and no further"
    elif execution.executed_blocks == execution.grid_blocks:
        counted = f"{execution.why} ({counted})"
    else:
        counted = f"{execution.why} ({counted} of {format_count(execution.grid_blocks)})"
    lanes = execution.lane_instructions / max(1, execution.warp_instructions)
    text = (
        f"emulated: {counted}, {format_count(execution.warp_instructions)} warp instructions with "
        f"{format_number(lanes)} active lanes on average, in {format_duration_ns(execution.seconds * 1e9)}"
    )
    if execution.analysis_seconds >= _TOLD_SHARE * execution.seconds:
        text += f"; analysed in {format_duration_ns(execution.analysis_seconds * 1e9)}"
    return text


def build_access_table(facts: Sequence[AccessLineFact], folder: Path | None = None) -> Table:
    """Memory accesses by line, those with most sectors or wavefronts first; calling lines are left out."""
    own = [fact for fact in facts if not fact.is_nested]
    own.sort(key=lambda one: (-_count_traffic(one), one.file, one.line))

    def show_place(fact: AccessLineFact) -> Span:
        return show_line(fact.file, fact.line, folder), Style.PATH

    def mark(fact: AccessLineFact, number: float, *, is_told: bool) -> Span:
        is_much = fact.excess_ratio >= _MUCH_RATIO
        return format_number(number) if is_told else "", Style.WARM if is_much else Style.PLAIN

    def show_hits(ratio: float | None) -> str:
        return "" if ratio is None else format_percent(ratio)

    return tabulate(
        own,
        [
            (flexible("line", keeps_end=True), show_place),
            (left("access"), lambda one: f"{one.space.name.lower()} {one.kind.value}"),
            (flexible("array", 6), lambda one: ", ".join(one.arrays)),
            (right("requests"), lambda one: format_count(one.requests)),
            (right("lines/req", drop_order=2), lambda one: mark(one, one.lines_per_request, is_told=not one.is_shared)),
            (right("sectors/req"), lambda one: mark(one, one.sectors_per_request, is_told=not one.is_shared)),
            (right("ideal", drop_order=4), lambda one: (format_number(one.ideal), Style.DIM)),
            (right("wavefronts/req"), lambda one: mark(one, one.wavefronts_per_request, is_told=one.is_shared)),
            (right("L1 hits", drop_order=3), lambda one: show_hits(one.l1_hit_ratio)),
            (right("L2 hits", drop_order=1), lambda one: show_hits(one.l2_hit_ratio)),
            (flexible("pattern", 10), lambda one: (one.pattern_words, Style.DIM)),
        ],
        most_rows=MOST_LINES,
    )


def _build_lines(facts: Sequence[AccessLineFact], folder: Path | None) -> list[Part]:
    table = build_access_table(facts, folder)
    return [Part(title="Lines (emulated)", blocks=[table], name="lines")] if table.rows else []


def _build_waits(kernel: KernelPrediction, folder: Path | None) -> list[Part]:
    """Stalls caused by lines with costly accesses or divergence; stalls below a limit are marked as hidden."""
    costs: dict[tuple[str, int], list[str]] = {}
    for access in sorted((one for one in kernel.accesses if not one.is_nested), key=lambda one: -one.excess_ratio):
        costs.setdefault((access.file, access.line), []).append(access.words)
    for branch in (one for one in kernel.branches if not one.is_nested and one.divergent):
        costs.setdefault((branch.file, branch.line), []).append(branch.words)
    known = (find_wait(kernel.waits or (), *place) for place in costs)
    waits = sorted((one for one in known if one is not None), key=lambda one: -one.ratio)
    if not waits:
        return []
    table = tabulate(
        waits,
        [
            (
                flexible("line", keeps_end=True),
                lambda one: (show_line(one.file, one.line, folder), Style.PATH),
            ),
            (
                right("stalled on"),
                lambda one: (
                    f"{format_percent(one.ratio)}{', hidden' if one.is_hidden else ''}",
                    Style.DIM if one.is_hidden else Style.PLAIN,
                ),
            ),
            (flexible("what it does", 20), lambda one: "; ".join(costs[one.file, one.line])),
        ],
        most_rows=MOST_LINES,
    )
    how = "simulated" if waits[0].is_simulated else "measured"
    note = f"Of the samples of the kernel, the stalls that the line causes; below {format_percent(HIDDEN_RATIO)}, other work hides what it costs."
    return [
        Part(
            title=f"What the kernel is stalled on ({how})",
            blocks=[table, Paragraph(text=((note, Style.DIM),))],
            name="waits",
        )
    ]


def _count_traffic(fact: AccessLineFact) -> float:
    return fact.requests * fact.cost if fact.is_shared else fact.sectors


def build_listing(kernel: KernelPrediction, file: str, text: str) -> Table:
    """Source of a kernel with what each line does; no rows where nothing is known."""
    said: dict[int, list[str]] = {}
    hot: set[int] = set()
    for fault in kernel.faults:
        frame = find_frame_in(fault.chain, file.__eq__)
        if frame is not None:
            said.setdefault(frame.line, []).append(f"{fault.kind.value}: {fault.message}")
            hot.add(frame.line)
    for access in (one for one in kernel.accesses if one.file == file):
        said.setdefault(access.line, []).append(access.words)
        hot |= {access.line} if access.excess_ratio >= _MUCH_RATIO else set()
    for branch in (one for one in kernel.branches if one.file == file and not one.is_nested):
        said.setdefault(branch.line, []).extend([branch.words] if branch.divergent else [])
    return tabulate(
        enumerate(split_lines(text)[:_MOST_SOURCE_LINES] if said else (), start=1),
        [
            (right("line"), lambda row: (str(row[0]), Style.DIM)),
            (
                left("what it does"),
                lambda row: ("; ".join(said.get(row[0], ())), Style.HOT if row[0] in hot else Style.PLAIN),
            ),
            (left("source"), lambda row: (row[1], Style.CODE)),
        ],
        "The source with what each line does",
        is_listing=True,
    )


def build_saved_trace(saved: "SavedTrace", folder: Path | None = None) -> list[Block]:
    """Answers and lines of a kept trace; paths below the folder are shown relative to it."""
    blocks: list[Block] = [
        Paragraph(text=((describe_saved_trace(saved), Style.PLAIN),)),
        *build_remarks(saved.problems),
        *map(build_answer, saved.answers),
        *_build_lines(saved.accesses, folder),
    ]
    return [_name_part(saved.short_name, saved.name, blocks)]


def describe_saved_trace(saved: "SavedTrace") -> str:
    """Launch, extent and GPU of a kept trace."""
    text = (
        f"grid {format_dim3(saved.grid)}, block {format_dim3(saved.block)}; {'a' if saved.is_complete else 'an incomplete'} trace ({saved.origin}) "
        f"of {format_count(saved.traced_blocks)} of {format_count_of(prod(saved.grid), 'block')}"
    )
    return f"{text}; predicted for the {saved.machine}" if saved.machine else text


def build_expression_prediction(prediction: "ExpressionPrediction") -> list[Block]:
    """A prediction from address expressions."""
    blocks: list[Block] = [
        Paragraph(text=describe_expressions(prediction)),
        *build_remarks(prediction.problems),
        build_answer(prediction.answer),
    ]
    return [Part(title=prediction.volumes.kernel, style=Style.TITLE, blocks=blocks)]


def describe_expressions(prediction: "ExpressionPrediction") -> str:
    """Launch, resources and GPU of a prediction from address expressions."""
    written, volumes = prediction.written, prediction.volumes
    launch = written.launch
    parts = [
        f"grid {format_dim3(launch.grid)}, block {format_dim3(launch.block)}",
        *((f"{format_dim3(launch.fold)} updates per thread",) if launch.updates_per_thread > 1 else ()),
        format_count_of(written.registers, "register"),
        *((f"{format_bytes(written.shared_bytes)} of shared memory",) if written.shared_bytes else ()),
        f"{format_count_of(len(written.accesses.accesses), 'access')} per thread",
        f"{format_count_of(volumes.blocks_per_sm, 'block')} per SM",
    ]
    return f"{', '.join(parts)}; predicted for the {volumes.device.name}"
