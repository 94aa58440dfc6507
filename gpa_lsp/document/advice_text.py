"""Advice as text for a terminal or a file: kernels by time; per kernel what bounds it, what to change and on what basis."""

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from gpa_lsp.diagnosis.advice.model import Advice, Hotspot, Region
from gpa_lsp.document.advice_words import (
    NO_SASS,
    SECTION_TITLES,
    describe_hotspot,
    describe_matched,
    describe_region,
    describe_rivals,
    describe_scope,
    describe_small_regions,
    describe_speedup,
    find_best_advice,
    name_best_advice,
    render_silences,
    show_estimate,
    show_gain,
    summarise_advice,
)
from gpa_lsp.document.blame_words import describe_basis, describe_bounds
from gpa_lsp.document.blocks import Table
from gpa_lsp.document.check_text import describe_code_finding, name_code_place, render_problems
from gpa_lsp.document.context_words import build_context_table
from gpa_lsp.document.findings import name_kernels
from gpa_lsp.document.layout import (
    EMPTY_LINE,
    Align,
    Column,
    Line,
    Span,
    Style,
    count_cells,
    cut,
    hang,
    join_facts,
    lay_out_table,
    style_of_share,
    text_line,
    wrap,
)
from gpa_lsp.document.places import InstructionPlaces, PlaceNames
from gpa_lsp.document.sampling_words import describe_dropped, describe_time
from gpa_lsp.document.terminal import write_terminal
from gpa_lsp.foundation.numbers import (
    UNKNOWN,
    format_count,
    format_count_of,
    format_duration_ns,
    format_launches,
    format_percent,
    format_speedup,
)
from gpa_lsp.kernel.scopes import Scope
from gpa_lsp.report.model import KernelReport, Report, RuleNote

_REMARK_CELLS = 120  # Of a remark of the profiler; ``gpa-lsp report`` shows all of it

BY_CODE = "By the code alone, where nothing was counted"

ALTERNATIVES = "Estimates are alternatives: several may count the same samples. Do not add or multiply them."


def render_advice(
    report: Report, places: PlaceNames, width: int | None = None, *, max_kernels: int | None, max_advice: int | None
) -> Iterator[Line]:
    """Everything there is to advise: an overview where there are several kernels, then kernel by kernel, then the problems.

    Args:
        report: what to show.
        places: how sources are shown.
        width: characters per line; None for as many as it takes.
        max_kernels: kernels shown, of most time first; None shows all.
        max_advice: pieces of advice shown per kernel and category; None shows all.
    """
    names = name_kernels(report.kernels)
    shown = report.kernels[:max_kernels]
    if len(shown) > 1:
        whole = sum(kernel.total_duration_ns for kernel in report.kernels)
        yield from _render_overview(shown, names, whole, width)
    for position, kernel in enumerate(shown):
        if position or len(shown) > 1:
            yield EMPTY_LINE
            yield EMPTY_LINE
        yield from _render_kernel(kernel, names[kernel.name], places, width, max_advice)
    rest = len(report.kernels) - len(shown)
    if rest:
        yield EMPTY_LINE
        yield text_line(f"and {format_count_of(rest, 'more kernel')}", Style.DIM)
    if not report.kernels:
        yield text_line("no kernel was found", Style.DIM)
    yield from render_problems(report.problems, places, width)


def _render_overview(
    kernels: Sequence[KernelReport], names: Mapping[str, str], whole_ns: float, width: int | None
) -> Iterator[Line]:
    yield text_line("Kernels", Style.HEADING)
    columns = (
        Column(title="time", align=Align.RIGHT),
        Column(title="share", align=Align.RIGHT),
        Column(title="best", align=Align.RIGHT),
        Column(title="advice", can_shrink=True, min_chars=16),
        Column(title="kernel", can_shrink=True, min_chars=16),
    )
    rows = []
    for kernel in kernels:
        total, best = kernel.total_duration_ns, find_best_advice(kernel)
        ratio = total / whole_ns if whole_ns else 0.0
        rows.append(
            (
                (format_duration_ns(total or None), Style.PLAIN),
                (format_percent(ratio) if total else "", style_of_share(ratio)),
                ("" if best is None else show_estimate(best.speedup), Style.PLAIN),
                (name_best_advice(kernel), Style.DIM if best is None else Style.PLAIN),
                (names[kernel.name], Style.TITLE),
            )
        )
    yield from lay_out_table(columns, rows, width=width)


def _render_kernel(
    kernel: KernelReport, name: str, places: PlaceNames, width: int | None, max_advice: int | None
) -> Iterator[Line]:
    yield text_line(name, Style.TITLE)
    yield from wrap(join_facts(describe_run(kernel)), width, style=Style.DIM)
    bounds = describe_bounds(kernel)
    if bounds:
        yield from wrap(bounds, width)
    best = find_best_advice(kernel)
    if best is not None:
        yield from wrap(f"best: {summarise_advice(best)}", width)
    contexts = build_context_table(kernel, places)
    if contexts.rows:
        yield EMPTY_LINE
        yield text_line(contexts.title, Style.HEADING)
        yield from lay_out_table(contexts.columns, contexts.rows, width=width)
    advice = kernel.advice.advice if kernel.advice is not None else ()
    for category, title in SECTION_TITLES.items():
        found = [one for one in advice if one.category is category]
        if not found:
            continue
        yield EMPTY_LINE
        yield text_line(title, Style.HEADING)
        for position, one in enumerate(found[:max_advice]):
            if position:
                yield EMPTY_LINE
            yield from AdviceText(kernel, places, width).render(one, advice)
        yield from count_rest(len(found) - len(found[:max_advice]), indent=2)
    if advice:
        yield EMPTY_LINE
        yield from wrap(ALTERNATIVES, width, style=Style.DIM)
    yield from _render_by_code(kernel, places, width)
    yield from render_silences(kernel, width)
    yield from _render_estimates(kernel, width)
    yield from _render_basis(kernel, width)


def _render_by_code(kernel: KernelReport, places: PlaceNames, width: int | None) -> Iterator[Line]:
    if not kernel.code_findings:
        return
    yield EMPTY_LINE
    yield text_line(BY_CODE, Style.HEADING)
    for finding in kernel.code_findings:
        place = name_code_place(kernel, finding, places)
        spans = ((f"  {place}  ", Style.PATH), (describe_code_finding(finding), Style.PLAIN))
        yield from hang(spans, width, indent=4)


def describe_run(kernel: KernelReport) -> list[str]:
    """Device, time, launches and samples of a kernel."""
    facts = [kernel.device.name] if kernel.device.name is not None else []
    if not kernel.launches:
        return [*facts, "not measured"]
    time = describe_time(kernel, kernel.total_duration_ns) if kernel.total_duration_ns else "unknown time"
    facts.append(f"{time} in {format_launches(kernel.launch_count)}")
    facts.append(format_count_of(kernel.total_samples, "sample") if kernel.total_samples else "no samples")
    if kernel.total_samples and kernel.latency_samples is None:
        facts.append("how many were not issued is unknown")
    if dropped := describe_dropped(kernel):
        facts.append(dropped)
    if kernel.samples_truncated:
        facts.append("the sampling buffer was full")
    if kernel.lacks_sass:
        facts.append(NO_SASS)
    return facts


def _render_estimates(kernel: KernelReport, width: int | None) -> Iterator[Line]:
    table = build_estimate_table(kernel)
    if table.rows:
        yield from (EMPTY_LINE, text_line("The profiler's own estimates", Style.HEADING))
        yield from write_terminal([table], width)


def _render_basis(kernel: KernelReport, width: int | None) -> Iterator[Line]:
    basis = list(describe_basis(kernel))
    if not basis:
        return
    yield EMPTY_LINE
    yield text_line("Basis", Style.HEADING)
    for name, sentence in basis:
        yield from hang((("  ", Style.PLAIN), (f"{name}: ", Style.DIM), (sentence, Style.PLAIN)), width)


_INSTRUCTION_CELLS = 64
_SOURCE_CELLS = 60
_LEAST_SOURCE_CELLS = 12
_BODY = 9  # Where the text of a piece of advice starts, behind its estimate

_MAX_HOTSPOTS = 3  # Pairs shown per region; what is cut is counted


class AdviceText:
    """Pieces of advice of one kernel.

    Args:
        kernel: the kernel.
        places: how sources are shown.
        width: characters per line; None for as many as it takes.
    """

    def __init__(self, kernel: KernelReport, places: PlaceNames, width: int | None) -> None:
        self._kernel = kernel
        self._places = places
        self._width = width
        self._instructions = InstructionPlaces(kernel, places)

    def render(self, advice: Advice, every: Sequence[Advice]) -> Iterator[Line]:
        """One piece of advice, with those that share its samples named."""
        head = f"  {show_estimate(advice.speedup)}"
        yield (
            (head.ljust(_BODY), style_of_share(1 - 1 / max(1.0, advice.speedup.estimate))),
            (advice.title, Style.TITLE),
            (f"  {advice.optimizer}", Style.DIM),
        )
        yield from self._write(describe_speedup(advice.speedup))
        if advice.witness:
            yield from self._write(advice.witness)
        matched = describe_matched(advice)
        if matched:
            yield from self._write(matched)
        rivals = describe_rivals(advice, every)
        if rivals:
            yield from self._write(f"alternative to: {rivals}", Style.DIM)
        if advice.hint:
            yield from self._write(advice.hint)
        shown = advice.worthy_regions
        for number, region in enumerate(shown, start=1):
            hint = "" if region.hint == advice.hint else region.hint
            yield from self._render_region(advice, region, hint, number)
        rest = len(advice.regions) - len(shown)
        if rest:
            yield from self._write(f"and {describe_small_regions(rest)}", Style.DIM)
        for caveat in advice.caveats:
            yield from self._mark("caution: ", caveat, Style.WARNING)
        if advice.reasons:
            yield from self._mark("basis: ", "; ".join(advice.reasons), Style.DIM)

    def _render_region(self, advice: Advice, region: Region, hint: str, number: int) -> Iterator[Line]:
        yield self._head_region(region, number)
        facts = [describe_region(advice, region)]
        if len(advice.regions) > 1:
            facts.append(f"alone {show_gain(region.speedup)}")
        shown = region.hotspots[:_MAX_HOTSPOTS]
        if region.hotspots:
            hold = (
                f"the {format_count(len(region.hotspots))} hottest pairs hold"
                if len(region.hotspots) > 1
                else "the hottest pair holds"
            )
            facts.append(f"{hold} {format_percent(region.density)}")
        yield from wrap(join_facts(facts), self._width, indent=_BODY + 3)
        if hint:
            yield from wrap(hint, self._width, indent=_BODY + 3)
        for hotspot in shown:
            yield from self._render_hotspot(hotspot, region.scope)
        yield from count_rest(len(region.hotspots) - len(shown), indent=_BODY + 3)

    def _head_region(self, region: Region, number: int) -> Line:
        words, place = describe_scope(region.scope, self._kernel, self._places)
        spans: list[Span] = [
            (" " * _BODY + f"{number}. {words}" + (" " if place else ""), Style.PLAIN),
            (place, Style.PATH),
        ]
        scope = region.scope
        source = (
            None
            if scope.file is None or not scope.line
            else self._places.read_line(self._kernel, scope.file, scope.line)
        )
        room = _SOURCE_CELLS if self._width is None else self._width - sum(count_cells(text) for text, _ in spans) - 2
        if source and room >= _LEAST_SOURCE_CELLS:
            spans.append(("  " + cut(source, min(room, _SOURCE_CELLS)), Style.CODE))
        return tuple(spans)

    def _render_hotspot(self, hotspot: Hotspot, region: Scope) -> Iterator[Line]:
        ratio = hotspot.samples / self._kernel.total_samples if self._kernel.total_samples else 0.0
        percent = format_percent(ratio)
        lead = " " * (_BODY + 3)
        pieces: list[list[Span]] = [
            [(lead, Style.PLAIN), (f"{percent:>7}  ", style_of_share(ratio)), *self._show_instruction(hotspot.def_row)]
        ]
        if hotspot.use_row is not None:
            pieces.append([("→ ", Style.DIM), *self._show_instruction(hotspot.use_row)])
        facts = " · ".join(describe_hotspot(hotspot, region))
        indent = count_cells(lead) + 9
        lines = _pack(pieces, self._width, indent)
        yield from lines
        if facts:
            yield from wrap(facts, self._width, indent=indent, style=Style.DIM)

    def _show_instruction(self, row: int) -> list[Span]:
        text = self._kernel.instructions.texts[row]
        spans: list[Span] = []
        for part in self._instructions.show(row):
            spans += [(" < ", Style.DIM), (part, Style.PATH)] if spans else [(part, Style.PATH)]
        if text:
            spans.append(("  " + cut(text, _INSTRUCTION_CELLS), Style.CODE))
        return spans

    def _write(self, text: str, style: Style = Style.PLAIN) -> Iterator[Line]:
        yield from wrap(text, self._width, indent=_BODY, style=style)

    def _mark(self, word: str, text: str, style: Style) -> Iterator[Line]:
        line = ((" " * _BODY, Style.PLAIN), (word, style), (text, Style.PLAIN if style is not Style.DIM else Style.DIM))
        yield from hang(line, self._width, indent=_BODY)


def _pack(pieces: Sequence[Sequence[Span]], width: int | None, indent: int) -> Iterator[Line]:
    """Pieces on one line as long as they fit, and on lines of their own otherwise."""
    line: list[Span] = []
    used = 0
    for piece in pieces:
        cells = sum(count_cells(text) for text, _ in piece)
        if line and width is not None and used + 2 + cells > width:
            yield tuple(line)
            line, used = [(" " * (indent - 2), Style.PLAIN)], indent - 2
        elif line:
            line.append(("  ", Style.PLAIN))
            used += 2
        line.extend(piece)
        used += cells
    yield tuple(line)


def count_rest(count: int, indent: int) -> Iterator[Line]:
    """A line that says how much was cut; none where nothing was."""
    if count:
        yield text_line(" " * indent + f"and {format_count(count)} more", Style.DIM)


class RuleEstimate(Struct, frozen=True, kw_only=True):
    """One estimate of the profiler."""

    rule: str  # the rule's name
    text: str  # its remark
    saved: str  # what it would save, in percent of run time
    factor: str  # the same as a speedup
    base: str  # percent of what


def build_estimate_table(kernel: KernelReport) -> Table:
    """What the profiler's own rules estimate, apart from our estimates."""
    columns = (
        Column(title="factor", align=Align.RIGHT),
        Column(title="saves", align=Align.RIGHT),
        Column(title="of the time of"),
        Column(title="rule"),
        Column(title="remark", can_shrink=True, min_chars=16),
    )
    rows = [
        (
            (estimate.factor, Style.PLAIN),
            (estimate.saved, Style.PLAIN),
            (estimate.base, Style.PLAIN),
            (estimate.rule, Style.CODE),
            (cut(estimate.text, _REMARK_CELLS), Style.DIM),
        )
        for estimate in list_estimates(kernel)
    ]
    return Table(columns=columns, rows=rows)


def list_estimates(kernel: KernelReport) -> tuple[RuleEstimate, ...]:
    """Estimates of the profiler's rules for the longest launch that has any; of the whole kernel first, then largest first."""
    launches = sorted(kernel.launches, key=lambda launch: -(launch.duration_ns or 0.0))
    for launch in launches:
        notes = [note for note in dict.fromkeys(launch.rules) if note.speedup_percent]
        if notes:
            notes.sort(key=lambda note: (not note.speedup_is_global, -(note.speedup_percent or 0.0), note.rule))
            return tuple(_describe_estimate(note) for note in notes)
    return ()


def convert_saving(percent: float) -> float | None:
    """A percentage of run time saved as a factor, 1 / (1 - x); None for what cannot be, all of it and more.

    >>> convert_saving(50.0), convert_saving(100.0)
    (2.0, None)
    """
    left = 1 - percent / 100
    return 1 / left if left > 0 else None


def _describe_estimate(note: RuleNote) -> RuleEstimate:
    percent = note.speedup_percent or 0.0
    factor = convert_saving(percent)
    return RuleEstimate(
        rule=note.rule,
        text=note.text,
        saved=format_percent(percent / 100),
        factor=UNKNOWN if factor is None else format_speedup(factor),
        base="the kernel" if note.speedup_is_global else "its part",
    )
