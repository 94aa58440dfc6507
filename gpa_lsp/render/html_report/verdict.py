"""What is read first of a kernel: what limits it, what causes that, and the best remedies, in the words of the screen."""

from collections.abc import Sequence

from markupsafe import Markup

from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.basis.numbers import format_count_of, format_dim3
from gpa_lsp.basis.prose import Place, capitalize
from gpa_lsp.render.advice_screen import ScreenRow, build_screen
from gpa_lsp.render.context_words import name_shape
from gpa_lsp.render.html_report.addresses import KernelAddresses
from gpa_lsp.render.html_report.source_texts import SourceTexts
from gpa_lsp.render.layout import join_facts
from gpa_lsp.render.page.frame import render_prose
from gpa_lsp.render.places import PlaceNames
from gpa_lsp.report.model import KernelReport

_LIMIT, _CAUSE = "limit", "cause"


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictRow:
    """One thing to know or to do.

    Attributes:
        label: one of the screen's; empty for a remedy.
        gain: range of the speedup; empty where none is promised.
        place: as ``file:line``; may be empty.
        link: fragment of that line; may be empty.
        source: text of that line; may be empty.
        text: what there is to say.
    """

    label: str
    gain: str
    place: str
    link: str
    source: str
    text: Markup


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The first lines of a kernel's page.

    Attributes:
        facts: time, GPU, grid and samples, on one line.
        limit: what limits it.
        cause: where most stalls begin; None without stalls.
        remedies: three at most, best first.
        others: what would gain little, or nothing, and why.
    """

    facts: str
    limit: Markup
    cause: VerdictRow | None
    remedies: Sequence[VerdictRow]
    others: Sequence[VerdictRow]


def build_verdict(kernel: KernelReport, addresses: KernelAddresses, texts: SourceTexts) -> Verdict:
    """The verdict of a kernel.

    Args:
        kernel: to be judged.
        addresses: of its places.
        texts: reads sources.
    """
    screen = build_screen(kernel, "", PlaceNames())

    def convert(row: ScreenRow) -> VerdictRow:
        is_numbered = row.label[:1].isdigit()
        at = row.at
        return VerdictRow(
            label="" if is_numbered else row.label,
            gain=row.gain,
            place=row.place or ("" if at is None or not is_numbered or _names(row, at) else f"line {at.line}"),
            link="" if at is None else addresses.place(at),
            source="" if at is None else texts.read_line(kernel, at.file, at.line),
            text=render_prose(row.text, addresses.place),
        )

    rows = [convert(row) for row in screen.rows if row.label != _LIMIT]
    limit = next(row.text for row in screen.rows if row.label == _LIMIT)
    return Verdict(
        facts=join_facts([*screen.facts, *_describe_launch(kernel)]),
        limit=render_prose(capitalize(limit), addresses.place),
        cause=next((row for row in rows if row.label == _CAUSE), None),
        remedies=[row for row in rows if not row.label],
        others=[row for row in rows if row.label and row.label != _CAUSE],
    )


def _names(row: ScreenRow, at: Place) -> bool:
    """The sentence has the line in it, as a link."""
    return any(isinstance(part, Place) and part.line == at.line for part in row.text.parts)


def _describe_launch(kernel: KernelReport) -> list[str]:
    configuration = kernel.configuration
    facts = []
    if kernel.launches:
        shape = f"grid {format_dim3(configuration.grid)} × block {format_dim3(configuration.block)}"
        facts.append(" ".join(filter(None, (shape, name_shape(kernel)))))
    if configuration.registers_per_thread is not None:
        facts.append(f"{format_count_of(configuration.registers_per_thread, 'register')} per thread")
    if kernel.total_samples:
        facts.append(format_count_of(kernel.total_samples, "sample"))
    return facts
