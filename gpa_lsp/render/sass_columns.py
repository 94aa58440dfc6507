"""The rows of an annotated SASS listing: which columns there is room for, and what stands in them."""

from collections.abc import Sequence

from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.basis.numbers import format_count, format_percent
from gpa_lsp.render.control_words import describe_controls
from gpa_lsp.render.kernel_tables import name_reasons
from gpa_lsp.render.layout import GAP, Line, Span, Style, count_cells, cut, draw_bar, style_of_share
from gpa_lsp.report.count import count_row
from gpa_lsp.report.model import InstructionColumns, KernelReport

_PERCENT_CELLS = 7
_BAR_CELLS = 6
_MAX_TEXT_CELLS = 64
_MAX_DEPTH_CELLS = 16
_LEAST_CONTROL_CELLS = 24
_FOREIGN_OFFSET = 1 << 32
_NO_TEXT = "(not disassembled)"


@dataclass(slots=True, kw_only=True)
class _Widths:
    """Cells of each column, 0 for a column left out."""

    samples: int
    executions: int
    bar: int
    depth: int
    offset: int
    text: int
    reasons: int
    control: int

    def total(self) -> int:
        cells = (self.samples, self.executions, self.bar, self.offset, self.text, self.reasons, self.control)
        return _PERCENT_CELLS + sum(GAP + cell for cell in cells if cell) + (self.depth + 1 if self.depth else 0)


class SassColumns:
    """Lays out one kernel's instructions, all functions alike.

    Args:
        kernel: with at least one instruction.
        width: characters per line; None for as many as it takes.
    """

    def __init__(self, kernel: KernelReport, width: int | None) -> None:
        self._kernel = kernel
        self._width = width
        self._columns = kernel.instructions
        self.samples: list[int] = self._columns.all_samples.sum(axis=1).tolist()
        self._reasons = self._name_all_reasons(2)
        self._controls = describe_controls(self._columns)
        self._depths: list[int] = self._columns.loop_depths.clip(max=_MAX_DEPTH_CELLS).tolist()
        self._widths = self._choose_widths()

    @property
    def text_start(self) -> int:
        """Column at which headings between rows stand: that of the loop marks."""
        widths = self._widths
        return (
            _PERCENT_CELLS + GAP + sum(GAP + cell for cell in (widths.samples, widths.executions, widths.bar) if cell)
        )

    def render(self, index: int) -> Line:
        """The row of one instruction.

        Args:
            index: of the instruction.
        """
        widths, samples = self._widths, self.samples[index]
        ratio = samples / self._kernel.total_samples if self._kernel.total_samples else 0.0
        heat, body = (style_of_share(ratio), Style.CODE) if samples else (Style.DIM, Style.DIM)
        percent, count = (format_percent(ratio), format_count(samples)) if samples else ("", "")
        spans: list[Span] = [(f"{percent:>{_PERCENT_CELLS}}  {count:>{widths.samples}}  ", heat)]
        if widths.executions:
            executed = int(self._columns.executions[index])
            spans.append((f"{format_count(executed) if executed >= 0 else '':>{widths.executions}}  ", Style.DIM))
        if widths.bar:
            spans.append((draw_bar(ratio, widths.bar) + "  ", Style.BAR))
        marks = ("│" * self._depths[index]).ljust(widths.depth) + (" " if widths.depth else "")
        spans.append((f"{marks}{int(self._columns.pc_offsets[index]):>{widths.offset}x}  ", Style.DIM))
        text = self._columns.texts[index] or _NO_TEXT
        spans.append((text if not (widths.reasons or widths.control) else _pad(text, widths.text), body))
        if widths.reasons:
            spans.append(("  " + _pad(self._reasons[index], widths.reasons), body))
        if widths.control:
            spans.append(("  " + self._controls[index], Style.DIM))
        return self.fit(spans)

    def fit(self, spans: Sequence[Span]) -> Line:
        """The spans, cut at the width."""
        if self._width is None:
            return tuple(spans)
        fitted: list[Span] = []
        left = self._width
        for text, style in spans:
            if left <= 0:
                break
            fitted.append((cut(text, left), style))
            left -= count_cells(text)
        return tuple(fitted)

    def _name_all_reasons(self, limit: int) -> list[str]:
        columns = self._columns
        return [
            name_reasons(count_row(columns, index), limit) if samples else ""
            for index, samples in enumerate(self.samples)
        ]

    def _choose_widths(self) -> _Widths:
        """All columns where there is room. On a narrow terminal executions go first, then bars, second reasons, scheduling bits, reasons."""
        columns = self._columns
        executed = int(columns.executions.max())
        widths = _Widths(
            samples=max(7, len(format_count(max(self.samples)))),
            executions=len(format_count(executed)) if executed >= 0 else 0,
            bar=_BAR_CELLS if any(self.samples) else 0,
            depth=max(self._depths),
            offset=max(4, len(f"{_find_largest_offset(columns):x}")),
            text=min(_MAX_TEXT_CELLS, max(count_cells(text or _NO_TEXT) for text in columns.texts)),
            reasons=max(map(count_cells, self._reasons)),
            control=max(map(count_cells, self._controls)),
        )
        if self._width is None:
            return widths
        for victim in ("executions", "bar"):
            if widths.total() > self._width:
                setattr(widths, victim, 0)
        if widths.total() > self._width:
            self._reasons = self._name_all_reasons(1)
            widths.reasons = max(map(count_cells, self._reasons))
        room = widths.control - max(
            0, widths.total() - self._width
        )  # rows are cut at the width; few use all of this column
        if widths.control and room < _LEAST_CONTROL_CELLS:
            widths.control = 0
        if not widths.control and widths.total() > self._width:
            widths.reasons = 0
        return widths


def _find_largest_offset(columns: InstructionColumns) -> int:
    """Of this module's code: absolute addresses of foreign code would widen the column for everybody."""
    own = columns.pc_offsets[columns.pc_offsets < _FOREIGN_OFFSET]
    return int(own.max()) if len(own) else 0


def _pad(text: str, cells: int) -> str:
    fitted = cut(text, cells)
    return fitted + " " * (cells - count_cells(fitted))
