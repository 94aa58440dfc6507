"""One kernel's section of the page, and the data its script needs: packed together, opened when the kernel is chosen."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from gpa_lsp.code.binary.model import name_resource
from gpa_lsp.diagnosis.analyses.model import Roofline
from gpa_lsp.diagnosis.blame.model import BlameCategory
from gpa_lsp.document.advice_screen import build_rows, list_run_facts
from gpa_lsp.document.advice_view import ALTERNATIVES, build_basis, build_estimate_table, build_piece, list_silences
from gpa_lsp.document.advice_words import count_silences, describe_cause
from gpa_lsp.document.answer_view import build_answers, build_bars, describe_mark, list_missing
from gpa_lsp.document.blame_words import describe_stalls
from gpa_lsp.document.blocks import Block, Figure, Items, Paragraph, Part
from gpa_lsp.document.charts.roofline_chart import ChartLook, RooflineView, build_roofline_chart
from gpa_lsp.document.context_words import build_context_table, count_contexts, list_context_lines, name_shape
from gpa_lsp.document.html_report.changes_section import ChangeSection, build_history_section
from gpa_lsp.document.html_report.code_columns import KernelAddresses, SourceTexts, TextPool, build_code
from gpa_lsp.document.html_report.flame_frames import build_flame_chart, build_flame_frames
from gpa_lsp.document.kernel_view import (
    build_cause_table,
    build_function_table,
    build_launch_places,
    build_launch_table,
    build_loop_table,
    build_rules,
    build_state_table,
    describe_configuration,
    describe_samples,
    name_reasons,
)
from gpa_lsp.document.layout import Style, join_facts
from gpa_lsp.document.page import make_environment
from gpa_lsp.document.page.writer import PageWriter
from gpa_lsp.document.places import PageNames, PlaceNames
from gpa_lsp.document.roofline_text import describe_line, list_bars
from gpa_lsp.document.roofline_view import (
    build_amount_table,
    build_instruction_table,
    build_point_table,
    describe_clocks,
    list_movements,
)
from gpa_lsp.document.sampling_words import describe_device
from gpa_lsp.foundation.locations import SourceLine, shorten_paths
from gpa_lsp.foundation.numbers import (
    format_bytes,
    format_count,
    format_count_of,
    format_dim3,
    format_duration_spread,
    format_percent,
    format_share,
)
from gpa_lsp.foundation.prose import Sentence, capitalize, count, join, say
from gpa_lsp.report.history.model import TimeCourse
from gpa_lsp.report.model import KernelReport, LineRow
from gpa_lsp.report.pairs import build_pair_index

CONTEXT_LINES = 4  # Shown before and after a line with code

MOST_LINES = 4_000  # With code, of one kernel; those with most samples are kept

_LONGEST_LINE = 400  # Characters; what is longer was written by a program

_CALLED_SHOWN_FROM = 0.005


def build_sources(
    kernel: KernelReport, addresses: KernelAddresses, pool: TextPool, texts: SourceTexts
) -> list[dict[str, Any]]:
    """Columns of source lines, one entry per file, the one with most samples of its own first."""
    return _SourceColumns(kernel, addresses, pool, texts).build()


class _SourceColumns:
    def __init__(self, kernel: KernelReport, addresses: KernelAddresses, pool: TextPool, texts: SourceTexts) -> None:
        self._kernel = kernel
        self._addresses = addresses
        self._pool = pool
        self._texts = texts
        self._rows = {place: row for row in kernel.lines if (place := row.source_line) is not None and place.line}

    def build(self) -> list[dict[str, Any]]:
        """One entry per file."""
        frames = {frame for chain in self._kernel.instructions.chains for frame in chain if frame.line}
        coded = {frame.source_line for frame in frames}
        every = sorted(coded | self._rows.keys(), key=self._rank)
        by_file: dict[str, list[int]] = {}
        for place in every[:MOST_LINES]:
            by_file.setdefault(place.file, []).append(place.line)
        names = shorten_paths(by_file)
        left_out = len(every) - len(every[:MOST_LINES])
        own = Counter[str]()
        for place, row in self._rows.items():
            own[place.file] += row.samples
        ordered = sorted(by_file, key=lambda file: -own[file])
        files = [self._build_file(file, sorted(by_file[file])) for file in ordered]
        return [{**file, "name": names[file["path"]], "leftOut": _describe_left_out(left_out)} for file in files]

    def _rank(self, place: SourceLine) -> tuple[float, str, int]:
        row = self._rows.get(place)
        weight = row.inclusive_samples + row.called_samples if row is not None else 0.0
        return (-weight, place.file, place.line)

    def _build_file(self, file: str, coded: Sequence[int]) -> dict[str, Any]:
        kernel, pool = self._kernel, self._pool
        known, why = self._texts.read(kernel, file)
        lines = list(coded) if known is None else _add_context(coded, len(known))
        found = [self._rows.get(SourceLine(file=file, line=line)) for line in lines]
        own = sum(row.samples for row in found if row is not None)
        has_code = set(coded)
        return {
            "number": self._addresses.number_file(file),
            "path": file,
            "share": format_percent(own / kernel.total_samples) if kernel.total_samples else "",
            "why": why,
            "line": lines,
            "text": None if known is None else pool.add_all(_read(known, line) for line in lines),
            "hasCode": [int(line in has_code) for line in lines],
            "samples": [0 if row is None else row.inclusive_samples for row in found],
            "shares": pool.add_all(
                format_share(kernel.share_of(row.inclusive_samples))
                if row is not None and row.inclusive_samples
                else ""
                for row in found
            ),
            "own": pool.add_all("" if row is None else _describe_own(kernel, row) for row in found),
            "reasons": pool.add_all("" if row is None else name_reasons(row.inclusive_by_reason, 2) for row in found),
        }


def _add_context(coded: Sequence[int], count: int) -> list[int]:
    """Lines with code and those around them, ascending, none beyond the end of the text.

    >>> _add_context([6], 8)
    [2, 3, 4, 5, 6, 7, 8]
    """
    near = {other for line in coded for other in range(line - CONTEXT_LINES, line + CONTEXT_LINES + 1)}
    return sorted(line for line in near if 0 < line <= count) or list(coded)


def _describe_own(kernel: KernelReport, row: LineRow) -> str:
    """A line's own share, and the share of the functions it calls."""
    total = kernel.total_samples or 1
    parts = (
        [] if row.samples == row.inclusive_samples else [f"{format_percent(row.samples / total)} in the line itself"]
    )
    if row.called_samples / total >= _CALLED_SHOWN_FROM:
        parts.append(f"about {format_percent(row.called_samples / total)} more in functions it calls")
    return ", ".join(parts)


def _describe_left_out(count: int) -> str:
    return f"{format_count_of(count, 'line')} with the fewest samples are not shown, over all files." if count else ""


def _read(known: Sequence[str], line: int) -> str:
    text = known[line - 1] if line <= len(known) else ""
    return text if len(text) <= _LONGEST_LINE else text[: _LONGEST_LINE - 1] + "…"


_MOST_EDGES = 2_000
_MOST_LINES = 100
_MOST_PAIRS = 4
_LEAST_RATIO = 0.003  # Of the kernel's samples; smaller pairs are noise


def link_rows(kernel: KernelReport, pool: TextPool) -> list[list[int]]:
    """``[use row, def row, words]``, heaviest first."""
    if kernel.blame is None or not kernel.total_samples:
        return []
    edges = kernel.blame.edges
    heavy = np.flatnonzero(edges.is_moved & (edges.all_samples >= _LEAST_RATIO * kernel.total_samples))
    heavy = heavy[np.argsort(-edges.all_samples[heavy], kind="stable")][:_MOST_EDGES]
    links = []
    for edge in heavy.tolist():
        reason = kernel.instructions.reasons[int(edges.reason[edge])]
        facts = [f"{reason}, {describe_cause(BlameCategory(int(edges.category[edge])))}"]
        if edges.resource[edge] >= 0:
            facts.append(f"in {name_resource(int(edges.resource[edge]))}")
        if edges.distance_cycles[edge] >= 0:
            facts.append(f"{format_count_of(int(edges.distance_cycles[edge]), 'cycle')} apart")
        share = format_percent(float(edges.all_samples[edge]) / kernel.total_samples)
        links.append([int(edges.use_row[edge]), int(edges.def_row[edge]), pool.add(f"{share} {', '.join(facts)}")])
    return links


def link_lines(kernel: KernelReport, addresses: KernelAddresses, pool: TextPool) -> list[list[int]]:
    """``[file, line, 1 where it is stalled and 0 where it is the cause, other file, other line, words]``; the file is -1 for code without lines."""
    index = build_pair_index(kernel)
    if index is None or not kernel.total_samples:
        return []
    least = _LEAST_RATIO * kernel.total_samples
    hot = [row.source_line for row in kernel.lines[:_MOST_LINES] if row.source_line and row.inclusive_samples >= least]
    waits = {place: index.list_waits(place)[:_MOST_PAIRS] for place in hot}
    blamed = [pair.place for pairs in waits.values() for pair in pairs if pair.place and pair.samples >= least]
    links: list[list[int]] = []
    for place in dict.fromkeys((*hot, *blamed)):  # a line that causes stalls may have no samples of its own
        own = _address(place, addresses)
        for is_wait, pairs in ((1, waits.get(place, ())), (0, index.list_waiters(place)[:_MOST_PAIRS])):
            for pair in (one for one in pairs if one.samples >= least):
                share = format_percent(pair.samples / kernel.total_samples)
                words = f"{share} {pair.reason}, {describe_cause(pair.category)}"
                links.append([*own, is_wait, *_address(pair.place, addresses), pool.add(words)])
    return links


def _address(place: SourceLine | None, addresses: KernelAddresses) -> tuple[int, int]:
    return (-1, 0) if place is None else (addresses.number_file(place.file), place.line)


def link_marks(kernel: KernelReport, addresses: KernelAddresses, pool: TextPool) -> list[list[int]]:
    """``[row or -1, file or -1, line, words]`` for what the analyses say of lines and instructions."""
    if kernel.analyses is None:
        return []
    columns = kernel.instructions
    functions = {name: number for number, name in enumerate(columns.functions)}
    rows = {
        place: row
        for row, place in enumerate(zip(columns.function_index.tolist(), columns.pc_offsets.tolist(), strict=True))
    }
    return [
        [
            rows.get((functions.get(mark.function, -1), mark.pc_offset), -1),
            -1 if mark.file is None else addresses.number_file(mark.file),
            mark.line or 0,
            pool.add(describe_mark(mark)),
        ]
        for answer in kernel.analyses.answers
        for mark in answer.marks
    ]


_ROOFLINE_LOOK = ChartLook(width=None, height=440, title="")
_AT_ROOF_RATIO = 0.95  # From here on a ceiling is taken for reached

ROOFLINE = "roofline"  # The analysis whose answer stands under the chart


class KernelPlace(Struct, frozen=True, kw_only=True):
    """Context of a kernel in the page: number, names, limits, and what is compared with it."""

    number: int  # position in the report
    name: str  # short, different for different kernels
    profile: str  # how its profile is called
    measured: str  # when, for people; may be empty
    most_rows: int  # instructions to show at most
    change: ChangeSection | None = None  # since an earlier profile; None without one
    before: KernelReport | None = None  # the kernel in that profile; None without one
    problems: tuple[str, ...] = ()  # messages about this kernel
    course: TimeCourse | None = None  # its runs up to this one; None where no earlier one is known


def build_kernel_data(kernel: KernelReport, place: KernelPlace, texts: SourceTexts) -> dict[str, Any]:
    """Data of one kernel's section: ``html`` (escaped), ``charts`` (number → Vega-Lite), columns of code and sources."""
    chains = kernel.instructions.chains
    coded_files = frozenset(frame.file for chain in chains for frame in chain)
    addresses = KernelAddresses(kernel=place.number, coded_files=coded_files)
    page = PageWriter(addresses.link)
    pool = TextPool()
    has_code = bool(len(kernel.instructions))
    html = _render(kernel, place, texts, addresses, page)
    data: dict[str, Any] = {"name": place.name, "mangled": kernel.mangled_name, "html": html, "charts": page.charts}
    if has_code:
        data["code"] = build_code(kernel, addresses, pool, place.most_rows)
        data["sources"] = build_sources(kernel, addresses, pool, texts)
        data["rowCauses"] = link_rows(kernel, pool)
        data["lineCauses"] = link_lines(kernel, addresses, pool)
        data["marks"] = link_marks(kernel, addresses, pool)
    data["files"] = list(addresses.files)
    data["pool"] = pool.texts
    return data


def _render(
    kernel: KernelReport, place: KernelPlace, texts: SourceTexts, addresses: KernelAddresses, page: PageWriter
) -> str:
    names = PageNames(texts.read_line)
    answers = build_answers(kernel, names)
    of_roofline = next((part for part in answers if part.name == ROOFLINE), None)
    roofline = _build_roofline(kernel, place.before, of_roofline)
    flame = _build_flame(kernel, place, texts, addresses)
    values = {
        "page": page,
        "place": place,
        "kernel": kernel,
        "key": f"k{place.number}",
        "run": join_facts([*list_run_facts(kernel), *_list_launch_facts(kernel)]),
        "verdict": [build_rows(kernel, names, has_code=True)],
        "facts": _list_facts(kernel, place.profile, place.measured),
        "flame": flame,
        "history": None if place.course is None else build_history_section(place.course),
        "bases": _describe_bases(kernel),
        "stalls_summary": capitalize(describe_stalls(kernel)),
        "stalls": [build_state_table(kernel, names), build_cause_table(kernel, names)],
        "tables": [build_function_table(kernel, names), build_loop_table(kernel, names)],
        "tables_summary": _summarise_tables(kernel),
        "advice": _list_advice(kernel, names),
        "advice_summary": _summarise_advice(kernel),
        "roofline": roofline,
        "answers": [part for part in answers if roofline is None or part is not of_roofline],
        "has_code": bool(len(kernel.instructions)),
        "launches": [
            build_context_table(kernel, names),
            build_launch_table(kernel, names),
            *(part for part in (build_launch_places(kernel), build_rules(kernel)) if part.blocks),
        ],
        "measured_summary": join_facts([fact for fact in (place.profile, place.measured) if fact])
        or ("One launch" if kernel.launches else "Not measured"),
    }
    return make_environment().get_template("gpa_lsp.document.html_report/kernel.html.jinja").render(values)


def _list_launch_facts(kernel: KernelReport) -> list[str]:
    shape = [*describe_configuration(kernel.configuration), name_shape(kernel)] if kernel.launches else []
    samples = [format_count_of(kernel.total_samples, "sample")] if kernel.total_samples else []
    return [fact for fact in (*shape, *samples) if fact]


def _list_facts(kernel: KernelReport, profile: str, measured: str) -> list[tuple[str, str]]:
    """Names and values of known facts of a kernel."""
    configuration = kernel.configuration
    shared_bytes = (configuration.shared_static_bytes or 0) + (configuration.shared_dynamic_bytes or 0)
    facts = [("GPU", describe_device(kernel.device))]
    if kernel.launches:
        facts.append(("Time", format_duration_spread(kernel.duration_spread_ns)))
        facts.append(("Launches", "unknown" if kernel.launch_count is None else format_count(kernel.launch_count)))
        shape = f"{format_dim3(configuration.grid)} × {format_dim3(configuration.block)}"
        facts.append(("Grid × block", " ".join(filter(None, (shape, name_shape(kernel))))))
    else:
        facts.append(("Time", "not measured"))
    if configuration.registers_per_thread is not None:
        facts.append(("Registers", f"{format_count(configuration.registers_per_thread)} per thread"))
    if shared_bytes:
        facts.append(("Shared memory", f"{format_bytes(shared_bytes)} per block"))
    facts.append(("Samples", describe_samples(kernel)))
    facts.append(("Profile", join_facts([profile, measured]) if measured else profile))
    return [(name, value) for name, value in facts if value]


def _describe_bases(kernel: KernelReport) -> Sentence:
    """A sentence on the bases of the page's shares, and how shares of different bases relate."""
    return say(
        "Shares are of all {samples} of the kernel, issued ones included. A stall reason says how warps wait, a cause what they wait for: one cause "
        "can hold several reasons. Two bases are named where they stand: issue slots, of which only the empty ones have a reason, and the warps' "
        "time, which is by counters of the longest launch; the same stall therefore has another share of each. Cycles each time are of one stall; "
        "cycles per execution are spread over every execution of a load, most of which need not stall.",
        samples=count(kernel.total_samples, "sample"),
    )


def _build_flame(
    kernel: KernelReport, place: KernelPlace, texts: SourceTexts, addresses: KernelAddresses
) -> Figure | None:
    """A flame graph, described by its widest line; None where all samples are at one place."""
    frames = build_flame_frames(kernel, place.name, addresses, texts)
    if not frames:
        return None
    widest = next((frame.words for frame in frames[1:] if frame.link), frames[0].words)
    chart = build_flame_chart(frames, f"Flame graph of the samples of {place.name}")
    return Figure(title="Flame graph", words=widest, chart=chart)


def _build_roofline(kernel: KernelReport, before: KernelReport | None, answer: Part | None) -> dict[str, Any] | None:
    """Values of the template for the roofline of all launches together and its analysis. None where machine or time is unknown."""
    roofline = kernel.analyses.roofline if kernel.analyses is not None else None
    if roofline is None or roofline.whole is None:
        return None
    whole = roofline.whole
    bars = list_bars(whole, most=None, with_headroom=True)
    ceilings = build_bars(bars, "Ceilings, nearest first", hot_ratio=_AT_ROOF_RATIO)
    if answer is None:
        findings: list[Block] = []
        title, evidence = (
            "Points, operations and bytes",
            [*_tabulate_points(kernel, whole), list_missing(whole.missing)],
        )
    else:
        findings = [block for block in answer.blocks if isinstance(block, Items) and block.are_findings]
        title = "Points, operations, bytes and peaks, and the counters they come from"
        evidence = [block for block in answer.blocks[1:] if block not in findings]  # its bars stand above
    views = (
        (RooflineView.TIME, "Operations", bool(whole.points)),
        (RooflineView.INSTRUCTIONS, "Warp instructions", bool(whole.instruction_points)),
    )
    return {
        "summary": answer.summary if answer is not None else describe_line(whole, roofline.machine)[0],
        "machine": f"{roofline.machine.name}, {describe_clocks(roofline.machine)}",
        "doubts": roofline.machine.doubts,
        "charts": [
            Figure(
                title=name,
                words=f"Roofline chart of {name.lower()}; the table below lists its points.",
                chart=build_roofline_chart(
                    [kernel], before=() if before is None else (before,), view=view, look=_ROOFLINE_LOOK
                ),
            )
            for view, name, has_points in views
            if has_points
        ],
        "has_movements": bool(list_movements(kernel)),
        "blocks": [ceilings, *findings, Part(title=title, blocks=evidence, folds=True)],
    }


def _tabulate_points(kernel: KernelReport, whole: Roofline) -> Iterator[Block]:
    """Points of all launches together and of each context's longest launch, then operations and bytes."""
    contexts = list_context_lines(kernel)
    yield build_point_table(whole, f"Points, sum of {count_contexts(kernel)}" if contexts else "Points")
    yield from (build_point_table(line, f"Points, {name}") for name, line in contexts)
    yield build_instruction_table(whole, "Warp instructions per transaction")
    yield build_amount_table(whole, "Operations and bytes")


def _list_advice(kernel: KernelReport, names: PlaceNames) -> list[Block]:
    """All advice, why there is no more, the profiler's own estimates, and the basis of the attribution."""
    every = () if kernel.advice is None else kernel.advice.advice
    blocks: list[Block] = [Paragraph(text=ALTERNATIVES, style=Style.DIM)] if every else []
    blocks += [build_piece(one, every, kernel, names) for one in every]
    if not every:
        blocks.append(Part(title="No advice", blocks=list_silences(kernel)))
    elif counted := count_silences(kernel):
        blocks.append(Part(title=counted, blocks=list_silences(kernel), folds=True))
    estimates = replace(build_estimate_table(kernel), title="The profiler's own estimates")
    return [*blocks, estimates, *build_basis(kernel)]


def _summarise_advice(kernel: KernelReport) -> Sentence:
    if kernel.advice is None or not kernel.advice.advice:
        return say("Why nothing is suggested")
    suggestions = count(len(kernel.advice.advice), "suggestion")
    return say("{suggestions}: places, bounds and the basis of each estimate", suggestions=suggestions)


def _summarise_tables(kernel: KernelReport) -> Sentence:
    parts = [
        format_count_of(len(rows), noun)
        for rows, noun in ((kernel.functions, "function"), (kernel.loops, "loop"))
        if rows
    ]
    return join(parts, ", ")
