"""Advice as Markdown for pull requests: a table per kernel, and the details of each piece of advice folded away."""

import html
from collections.abc import Iterable, Iterator, Sequence

from gpa_lsp.diagnosis.advice.model import Advice, Hotspot, Region
from gpa_lsp.document.advice_text import ALTERNATIVES, BY_CODE, describe_run, list_estimates
from gpa_lsp.document.advice_words import (
    BY_COUNTERS,
    SECTION_TITLES,
    count_silences,
    describe_hotspot,
    describe_matched,
    describe_scope,
    describe_small_regions,
    describe_speedup,
    explain_silence,
    show_bound,
    show_estimate,
    show_interval,
)
from gpa_lsp.document.blame_words import describe_basis, describe_bounds
from gpa_lsp.document.check_text import describe_code_finding, name_code_place, render_problem
from gpa_lsp.document.context_words import build_context_table
from gpa_lsp.document.findings import name_kernels
from gpa_lsp.document.layout import Align, read_plain
from gpa_lsp.document.markdown_text import escape_markdown, quote_code, write_cell, write_sentence
from gpa_lsp.document.places import InstructionPlaces, PlaceNames
from gpa_lsp.foundation.numbers import (
    UNKNOWN,
    format_count,
    format_count_of,
    format_percent,
    format_share,
)
from gpa_lsp.foundation.prose import capitalize, join
from gpa_lsp.foundation.visible_text import make_one_line
from gpa_lsp.kernel.scopes import Scope
from gpa_lsp.report.model import CodeFinding, KernelReport, Report


def render_advice_markdown(
    report: Report, places: PlaceNames, *, max_kernels: int | None, max_advice: int | None
) -> Iterator[str]:
    """Everything there is to advise, line by line.

    Args:
        report: what to show.
        places: how sources are shown.
        max_kernels: kernels shown, of most time first; None shows all.
        max_advice: pieces of advice shown per kernel and category; None shows all.
    """
    names = name_kernels(report.kernels)
    shown = report.kernels[:max_kernels]
    for position, kernel in enumerate(shown):
        if position:
            yield ""
        yield from _KernelMarkdown(kernel, places, max_advice).render(names[kernel.name])
    rest = len(report.kernels) - len(shown)
    if rest:
        yield from ("", f"And {format_count_of(rest, 'more kernel')}.")
    if not report.kernels:
        yield "No kernel was found."
    if report.problems:
        yield from ("", "### Problems", "")
    for problem in report.problems:
        yield f"- {escape_markdown(read_plain(render_problem(problem, places)))}"


def _render_table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """A table; a title that ends in a colon stands over a column of numbers."""
    yield f"| {' | '.join(title.removesuffix(':') for title in titles)} |"
    yield f"|{'|'.join('---:' if title.endswith(':') else '---' for title in titles)}|"
    for row in rows:
        yield f"| {' | '.join(row)} |"


def _fold(summary: str, lines: Iterable[str]) -> Iterator[str]:
    yield from ("", f"<details><summary>{summary}</summary>", "")
    yield from lines
    yield from ("", "</details>")


class _KernelMarkdown:
    """One kernel's chapter."""

    def __init__(self, kernel: KernelReport, places: PlaceNames, max_advice: int | None) -> None:
        self._kernel = kernel
        self._places = places
        self._instructions = InstructionPlaces(kernel, places)
        advice = kernel.advice.advice if kernel.advice is not None else ()
        self._every = advice
        self._shown = [
            one
            for category in SECTION_TITLES
            for one in [one for one in advice if one.category is category][:max_advice]
        ]

    def render(self, name: str) -> Iterator[str]:
        """Heading, table, details, the profiler's estimates and the basis of it all."""
        kernel = self._kernel
        yield from (f"## {quote_code(name)}", "", f"{escape_markdown(' · '.join(describe_run(kernel)))}")
        bounds = describe_bounds(kernel)
        if bounds:
            yield from ("", f"{write_sentence(capitalize(bounds))}.")
        yield ""
        yield from self._render_contexts()
        if self._shown:
            yield from self._render_summary()
        else:
            yield from self._explain_silence()
        for advice in self._shown:
            title = f"<b>{show_estimate(advice.speedup)}</b> {html.escape(make_one_line(advice.title), quote=False)}"
            yield from _fold(title, self._render_advice(advice))
        by_code = [self._write_by_code(finding) for finding in kernel.code_findings or ()]
        if by_code:
            yield from _fold(BY_CODE, by_code)
        yield from self._render_estimates()
        basis = [f"- **{name}**: {escape_markdown(sentence)}" for name, sentence in describe_basis(kernel)]
        if basis:
            yield from _fold("Basis", basis)

    def _render_contexts(self) -> Iterator[str]:
        table = build_context_table(self._kernel, self._places)
        if table.rows:
            titles = [f"{one.title}:" if one.align is Align.RIGHT else one.title for one in table.columns]
            yield from _render_table(titles, ([escape_markdown(text) for text, _ in row] for row in table.rows))
            yield ""

    def _write_by_code(self, finding: CodeFinding) -> str:
        place = name_code_place(self._kernel, finding, self._places)
        return f"- {quote_code(place)} {write_sentence(describe_code_finding(finding))}"

    def _render_summary(self) -> Iterator[str]:
        titles = ("speedup:", "range", "at most:", "advice", "to change", "of the samples:", "samples:")
        yield from _render_table(titles, (self._summarise(advice) for advice in self._shown))
        rest = len(self._every) - len(self._shown)
        more = f" And {format_count(rest)} more." if rest else ""
        yield from ("", f"{ALTERNATIVES}{more}")
        counted = count_silences(self._kernel)
        if counted:
            yield from ("", f"{escape_markdown(counted)}.")

    def _summarise(self, advice: Advice) -> Sequence[str]:
        speedup = advice.speedup
        counted = bool(advice.matched_samples)
        return (
            f"**{show_estimate(speedup)}**",
            show_interval(speedup),
            show_bound(speedup),
            f"{escape_markdown(advice.title)} ({quote_code(advice.optimizer)})",
            advice.category.value,
            format_share(advice.share) if counted else BY_COUNTERS if advice.by_counters else "",
            format_count(advice.matched_samples) if counted else "",
        )

    def _explain_silence(self) -> Iterator[str]:
        yield from ("No advice:", "")
        for stage, messages in explain_silence(self._kernel).items():
            yield f"- {escape_markdown(stage)}"
            for message, optimizers in messages.items():
                names = ", ".join(quote_code(name) for name in optimizers)
                yield f"  - {names + ': ' if names else ''}{write_sentence(message)}"

    def _render_advice(self, advice: Advice) -> Iterator[str]:
        facts = join((describe_speedup(advice.speedup), advice.witness, describe_matched(advice)), "; ")
        yield f"{write_sentence(capitalize(facts))}."
        if advice.hint:
            yield from ("", write_sentence(advice.hint))
        shown = advice.worthy_regions
        for number, region in enumerate(shown, start=1):
            yield from self._render_region(advice, region, "" if region.hint == advice.hint else region.hint, number)
        rest = len(advice.regions) - len(shown)
        if rest:
            yield from ("", f"And {describe_small_regions(rest)}.")
        if advice.caveats or advice.reasons:
            yield ""
        for caveat in advice.caveats:
            yield f"- **Caution**: {write_sentence(caveat)}"
        for reason in advice.reasons:
            yield f"- Basis: {write_sentence(reason)}"

    def _render_region(self, advice: Advice, region: Region, hint: str, number: int) -> Iterator[str]:
        words, place = describe_scope(region.scope, self._kernel, self._places)
        where = f"{escape_markdown(words)} {quote_code(place)}" if place else escape_markdown(words)
        share = BY_COUNTERS if advice.by_counters else f"{format_share(region.share)} of the samples"
        facts = f"{share}, alone {show_estimate(region.speedup)}"
        if region.hotspots:
            facts += f", {format_percent(region.density)} of them in the pairs shown"
        yield from ("", f"**{number}.** {where}: {facts}")
        if hint:
            yield from ("", write_sentence(hint))
        if region.hotspots:
            yield ""
            titles = ("share:", "cause", "stalled", "details")
            yield from _render_table(
                titles, (self._render_hotspot(hotspot, region.scope) for hotspot in region.hotspots)
            )

    def _render_hotspot(self, hotspot: Hotspot, region: Scope) -> Sequence[str]:
        total = self._kernel.total_samples
        return (
            format_percent(hotspot.samples / total) if total else UNKNOWN,
            self._show_instruction(hotspot.def_row),
            "the same instruction" if hotspot.use_row is None else self._show_instruction(hotspot.use_row),
            write_cell(join(describe_hotspot(hotspot, region), " · ")),
        )

    def _show_instruction(self, row: int) -> str:
        place = quote_code(" < ".join(self._instructions.show(row)))
        text = self._kernel.instructions.texts[row]
        return f"{place}<br>{quote_code(text)}" if text else place

    def _render_estimates(self) -> Iterator[str]:
        estimates = list_estimates(self._kernel)
        if not estimates:
            return
        titles = ("factor:", "saves:", "of the time of", "rule", "remark")
        rows = [
            (estimate.factor, estimate.saved, estimate.base, quote_code(estimate.rule), escape_markdown(estimate.text))
            for estimate in estimates
        ]
        yield from _fold("The profiler's own estimates", _render_table(titles, rows))
