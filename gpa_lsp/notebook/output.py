"""Output of the magics below a cell: marked lines, then the page; as HTML, and as text for where that is not drawn."""

from collections.abc import Iterator, Mapping, Sequence
from html import escape

from msgspec import Struct

from gpa_lsp.foundation.numbers import format_percent
from gpa_lsp.foundation.visible_text import make_lines_visible, make_visible
from gpa_lsp.notebook.marks import LineMark, MarkedCell

_STYLE = (
    ".gpa-cell{border-collapse:collapse;font:13px/1.45 ui-monospace,monospace;margin:0 0 1em;color:inherit;background:none}"
    ".gpa-cell td{padding:0 .6em;text-align:left;vertical-align:top;white-space:pre;border:0}"
    ".gpa-cell td.said{white-space:normal;font-family:system-ui,sans-serif;padding-left:2.5em;max-width:60em}"
    ".gpa-cell td.number,.gpa-cell td.share{text-align:right;opacity:.75}"
    ".gpa-cell tr{background:none!important}"
    ".gpa-cell tr.suffers td.code{background:rgb(240 120 20 / var(--heat))}"
    ".gpa-cell tr.causes td.code{background:rgb(50 130 240 / var(--heat))}"
    ".gpa-page{width:100%;height:44em;border:1px solid rgb(128 128 128 / .5)}"
)
# Opacity in percent of the least and of the greatest heat: text stays readable on both, on light and on dark ground
_FAINTEST, _STRONGEST = 10, 55


class Shown(Struct, frozen=True, kw_only=True):
    """An output of a cell."""

    notes: tuple[str, ...] = ()  # sentences that stand first
    cells: tuple[MarkedCell, ...] = ()  # with their marks
    text: str = ""  # what there is to say in lines of text
    page: str = ""  # a page of HTML, whole; empty where there is none

    def _repr_mimebundle_(self, **_: object) -> Mapping[str, str]:
        """Return the output in both forms, for IPython."""
        return {"text/html": render_html(self), "text/plain": render_text(self)}


def render_text(shown: Shown) -> str:
    """Render for terminals: notes, marked lines, text."""
    return make_lines_visible("\n".join(part for part in (*shown.notes, *_list_text(shown.cells), shown.text) if part))


def _list_text(cells: Sequence[MarkedCell]) -> Iterator[str]:
    for marked in cells:
        lines = marked.cell.text.split("\n")
        if marked.doubt:
            yield f"{marked.cell.label}: {marked.doubt}"
        for mark in marked.marks:
            source = lines[mark.line - 1].strip() if mark.line <= len(lines) else ""
            yield f"{marked.cell.label}:{mark.line}: {source}"
            yield from (f"    {words}" for words in mark.words)


def render_html(shown: Shown) -> str:
    """Render for notebooks. The page stands in a frame that may run its own scripts and knows nothing of the notebook."""
    parts = [f"<style>{_STYLE}</style>"]
    parts += [f"<p>{_escape(note)}</p>" for note in shown.notes]
    parts += [_render_cell(marked) for marked in shown.cells]
    if shown.page:
        framed = escape(shown.page, quote=True)
        parts.append(
            f'<iframe class="gpa-page" title="GPU performance report" sandbox="allow-scripts" srcdoc="{framed}"></iframe>'
        )
    elif shown.text:
        parts.append(f"<pre>{escape(make_lines_visible(shown.text))}</pre>")
    return "\n".join(parts)


def _render_cell(marked: MarkedCell) -> str:
    marks: dict[int, list[LineMark]] = {}
    for mark in marked.marks:
        marks.setdefault(mark.line, []).append(mark)
    lines = marked.cell.text.rstrip("\n").split("\n")
    rows = "".join(_render_row(number, text, marks.get(number, [])) for number, text in enumerate(lines, 1))
    doubt = f"<p>{_escape(marked.doubt)}</p>" if marked.doubt else ""
    caption = f"<caption style='text-align:left;font-weight:600'>{_escape(marked.cell.label)}</caption>"
    return f'{doubt}<table class="gpa-cell">{caption}{rows}</table>'


def _render_row(number: int, text: str, marks: Sequence[LineMark]) -> str:
    suffered = max((mark.suffered_ratio for mark in marks), default=0.0)
    caused = max((mark.caused_ratio for mark in marks), default=0.0)
    ratio = max(suffered, caused)
    kind = "" if not ratio else "causes" if caused > suffered else "suffers"
    heat = round(_FAINTEST + (_STRONGEST - _FAINTEST) * min(1.0, ratio) ** 0.5)
    said = "".join(f"<div>{_escape(words)}</div>" for mark in marks for words in mark.words)
    below = f'<tr><td></td><td></td><td class="said">{said}</td></tr>' if said else ""
    share = format_percent(ratio) if ratio else ""
    return (
        f'<tr class="{kind}" style="--heat:{heat}%"><td class="number">{number}</td><td class="share">{share}</td>'
        f'<td class="code">{_escape(text)}</td></tr>{below}'
    )


def _escape(text: str) -> str:
    return escape(make_visible(text.replace("\t", "    ")))
