"""One piece of advice as text: the estimate, what to do, and the regions with their pairs of def and use."""

from collections.abc import Iterator, Sequence

from gpa_lsp.diagnosis.advice.model import Advice, Hotspot, Region
from gpa_lsp.document.advice_words import (
    describe_hotspot,
    describe_matched,
    describe_region,
    describe_rivals,
    describe_scope,
    describe_small_regions,
    describe_speedup,
    show_estimate,
    show_gain,
)
from gpa_lsp.document.instruction_places import InstructionPlaces
from gpa_lsp.document.layout import (
    Line,
    Span,
    Style,
    count_cells,
    cut,
    hang,
    join_facts,
    style_of_share,
    text_line,
    wrap,
)
from gpa_lsp.document.places import PlaceNames
from gpa_lsp.foundation.numbers import format_count, format_percent
from gpa_lsp.kernel.scopes import Scope
from gpa_lsp.report.model import KernelReport

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
        matched = describe_matched(advice)
        if matched:
            yield from self._write(matched)
        rivals = describe_rivals(advice, every)
        if rivals:
            yield from self._write(f"alternative to: {rivals}", Style.DIM)
        if advice.rank_reason:
            yield from self._write(advice.rank_reason, Style.DIM)
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
