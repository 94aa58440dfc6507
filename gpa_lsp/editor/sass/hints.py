"""Hints behind the instructions of a SASS document: what a stalled one waits for, and what a causing one makes wait, each a link."""

from typing import TYPE_CHECKING, NamedTuple

from lsprotocol.types import InlayHint, InlayHintLabelPart, Location

from gpa_lsp.editor.sass.library import SassDocument, SassView
from gpa_lsp.foundation.numbers import format_percent

if TYPE_CHECKING:  # numpy must not be imported before the client has its answer to initialize
    import numpy as np
    import numpy.typing as npt

    from gpa_lsp.diagnosis.blame.model import BlameEdges

# Of the kernel's samples: an instruction with less has nothing to say, whatever the user's threshold for lines is
_LEAST_RATIO = 0.01

_LEAST_OTHER_RATIO = 0.1  # Of an instruction's samples: other ends with less are not counted


class _Ties(NamedTuple):
    """The other ends of one instruction's stalls."""

    samples: float  # on all of them
    top_row: int  # the one with most
    others: int  # how many there are that matter, the top one among them


def list_hints(view: SassView, first: int, last: int) -> list[InlayHint]:
    """The hints of some lines, by line.

    Args:
        first: first line, 1-based.
    """
    document = view.document
    report = document.shown.kernel.report
    if not view.settings.show_inlay_hints or report.blame is None or not report.total_samples:
        return []
    rows = document.row_of_line[max(first - 1, 0) : max(last, 0)]
    rows = rows[rows >= 0]
    if not len(rows):
        return []
    bounds = (int(rows.min()), int(rows.max()))
    least = min(view.settings.min_share_ratio, _LEAST_RATIO) * report.total_samples
    waits = _tie_uses(report.blame.edges, bounds, least)
    causes = _tie_defs(report.blame.edges, bounds, least)
    return [_make_hint(view, row, waits.get(row), causes.get(row)) for row in sorted(waits.keys() | causes.keys())]


def _tie_uses(edges: "BlameEdges", bounds: tuple[int, int], least: float) -> dict[int, _Ties]:
    """Instruction → what it waits for. Edges are in the order of their uses."""
    import numpy as np

    start, end = np.searchsorted(edges.use_row, (bounds[0], bounds[1] + 1)).tolist()
    chosen = np.arange(start, end)[edges.is_moved[start:end]]
    return _tie(edges.use_row[chosen], edges.def_row[chosen], edges.all_samples[chosen], least)


def _tie_defs(edges: "BlameEdges", bounds: tuple[int, int], least: float) -> dict[int, _Ties]:
    """Instruction → who waits for it."""
    import numpy as np

    chosen = np.flatnonzero((edges.def_row >= bounds[0]) & (edges.def_row <= bounds[1]) & edges.is_moved)
    return _tie(edges.def_row[chosen], edges.use_row[chosen], edges.all_samples[chosen], least)


def _tie(
    own: "npt.NDArray[np.int32]", other: "npt.NDArray[np.int32]", samples: "npt.NDArray[np.float64]", least: float
) -> dict[int, _Ties]:
    """Own rows with at least some samples on others."""
    import numpy as np

    if not len(own):
        return {}
    keys, number = np.unique(own.astype(np.int64) << 32 | other, return_inverse=True)
    sums = np.bincount(number, weights=samples)
    rows, starts = np.unique(keys >> 32, return_index=True)
    totals = np.add.reduceat(sums, starts)
    ends = np.append(starts[1:], len(keys))
    found: dict[int, _Ties] = {}
    for index in np.flatnonzero(totals >= least).tolist():
        start, end, total = int(starts[index]), int(ends[index]), float(totals[index])
        top = start + int(np.argmax(sums[start:end]))
        others = int((sums[start:end] >= _LEAST_OTHER_RATIO * total).sum())
        found[int(rows[index])] = _Ties(total, int(keys[top]) & 0xFFFFFFFF, max(1, others))
    return found


def _make_hint(view: SassView, row: int, waits: _Ties | None, causes: _Ties | None) -> InlayHint:
    """One hint per line, the weightier part first: editors cut what is long."""
    parts: list[list[InlayHintLabelPart]] = []
    if waits is not None:
        parts.append(_describe_waits(view, waits))
    if causes is not None:
        parts.insert(0 if waits is None or causes.samples > waits.samples else 1, _describe_causes(view, causes))
    label = parts[0] if len(parts) == 1 else [*parts[0], InlayHintLabelPart(value=" · "), *parts[1]]
    line = int(view.document.line_of_row[row])
    return InlayHint(position=view.positions.find_end(line), label=tuple(label))


def _describe_waits(view: SassView, ties: _Ties) -> list[InlayHintLabelPart]:
    """``waits 41 % for /*0040*/ LDG``."""
    more = [InlayHintLabelPart(value=f" and {ties.others - 1} more")] if ties.others > 1 else []
    head = InlayHintLabelPart(value=f"waits {_format(view, ties.samples)} for ")
    return [head, _link(view, ties.top_row), *more]


def _describe_causes(view: SassView, ties: _Ties) -> list[InlayHintLabelPart]:
    """``/*0050*/ FFMA waits 41 %`` or ``3 wait 41 %, most /*0050*/ FFMA``."""
    share = _format(view, ties.samples)
    if ties.others == 1:
        return [_link(view, ties.top_row), InlayHintLabelPart(value=f" waits {share}")]
    head = InlayHintLabelPart(value=f"{ties.others} wait {share}, most ")
    return [head, _link(view, ties.top_row)]


def _format(view: SassView, samples: float) -> str:
    return format_percent(min(1.0, samples / view.document.shown.kernel.report.total_samples))


def _link(view: SassView, row: int) -> InlayHintLabelPart:
    document = view.document
    location = Location(uri=document.uri, range=view.positions.find_text(int(document.line_of_row[row])))
    return InlayHintLabelPart(value=name_instruction(document, row), location=location)


def name_instruction(document: SassDocument, row: int) -> str:
    """Address, as the document writes it, and opcode without modifiers."""
    from gpa_lsp.editor.sass.operand_spans import find_mnemonic

    line = document.lines[int(document.line_of_row[row]) - 1]
    text = document.shown.kernel.report.instructions.texts[row]
    _, start, end = find_mnemonic(text)
    address = line[: document.instruction_column].split(" ", 1)[0]
    return " ".join(part for part in (address, text[start:end].partition(".")[0]) if part) or "an instruction"
