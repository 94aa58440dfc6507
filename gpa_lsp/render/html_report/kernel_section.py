"""One kernel's section of the page, and the data its script needs: packed together, opened when the kernel is chosen."""

from collections.abc import Mapping
from typing import Any

from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.basis.numbers import format_count_of
from gpa_lsp.basis.prose import Sentence, capitalize, count, join, say
from gpa_lsp.render.advice_text import ALTERNATIVES
from gpa_lsp.render.blame_words import describe_basis, describe_stalls
from gpa_lsp.render.charts.flame_chart import build_flame_chart
from gpa_lsp.render.html_report import kernel_facts
from gpa_lsp.render.html_report.addresses import KernelAddresses
from gpa_lsp.render.html_report.advice_cards import AdviceCards
from gpa_lsp.render.html_report.answer_sections import build_section
from gpa_lsp.render.html_report.cause_links import link_lines, link_marks, link_rows
from gpa_lsp.render.html_report.changes_section import ChangeSection
from gpa_lsp.render.html_report.code_columns import build_code
from gpa_lsp.render.html_report.flame_frames import build_flame_frames
from gpa_lsp.render.html_report.history_section import build_history_section
from gpa_lsp.render.html_report.pool import TextPool
from gpa_lsp.render.html_report.roofline_section import build_roofline_section
from gpa_lsp.render.html_report.source_columns import build_sources
from gpa_lsp.render.html_report.source_texts import SourceTexts
from gpa_lsp.render.html_report.verdict import build_verdict
from gpa_lsp.render.layout import join_facts
from gpa_lsp.render.page.frame import make_environment
from gpa_lsp.render.silence_text import count_silences, explain_silence
from gpa_lsp.render.starlight_text import list_answers
from gpa_lsp.report.model import KernelReport
from gpa_lsp.report.time_course import TimeCourse

ROOFLINE = "roofline"
"""The analysis whose answer stands under the chart."""

TEMPLATE = "gpa_lsp.render.html_report/kernel.html.jinja"


@dataclass(frozen=True, slots=True, kw_only=True)
class FlameSection:
    """A flame graph.

    Attributes:
        number: of its specification among the kernel's charts.
        summary: its widest line, in one sentence.
    """

    number: str
    summary: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelPlace:
    """Where a kernel stands in the page.

    Attributes:
        number: position in the report.
        name: short, different for different kernels.
        profile: how its profile is called.
        measured: when, for people; may be empty.
        most_rows: instructions to show at most.
        change: since an earlier profile; None without one.
        before: the kernel in that profile; None without one.
        problems: messages about this kernel.
        course: its runs up to this one; None where no earlier one is known.
    """

    number: int
    name: str
    profile: str
    measured: str
    most_rows: int
    change: ChangeSection | None = None
    before: KernelReport | None = None
    problems: tuple[str, ...] = ()
    course: TimeCourse | None = None


def build_kernel_data(kernel: KernelReport, place: KernelPlace, texts: SourceTexts) -> dict[str, Any]:
    """Everything the page shows of a kernel when it is chosen.

    Returns:
        ``html`` (escaped), ``charts`` (number → Vega-Lite), and the columns of code and sources.
    """
    chains = kernel.instructions.chains
    coded_files = frozenset(frame.file for chain in chains for frame in chain)
    addresses = KernelAddresses(kernel=place.number, coded_files=coded_files)
    charts: dict[str, Mapping[str, Any]] = {}
    pool = TextPool()
    has_code = bool(len(kernel.instructions))
    html = _render(kernel, place, texts, addresses, charts)
    data: dict[str, Any] = {"name": place.name, "mangled": kernel.mangled_name, "html": html, "charts": charts}
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
    kernel: KernelReport,
    place: KernelPlace,
    texts: SourceTexts,
    addresses: KernelAddresses,
    charts: dict[str, Mapping[str, Any]],
) -> str:
    answers = list_answers(kernel)
    sections = [build_section(answer, addresses, charts) for answer in answers]
    of_roofline = next((section for section in sections if section.name == ROOFLINE), None)
    contexts, contexts_rest = kernel_facts.list_contexts(kernel)
    roofline = build_roofline_section(kernel, charts, place.before, of_roofline)
    flame = _build_flame(kernel, place, texts, addresses, charts)
    cards = AdviceCards(kernel, addresses, texts).build()
    tables = kernel_facts.list_tables(kernel)
    values = {
        "place": place,
        "kernel": kernel,
        "key": f"k{place.number}",
        "verdict": build_verdict(kernel, addresses, texts),
        "facts": kernel_facts.list_facts(kernel, place.profile, place.measured),
        "flame": flame,
        "history": None if place.course is None else build_history_section(place.course, charts),
        "bases": kernel_facts.describe_bases(kernel),
        "stalls_summary": capitalize(describe_stalls(kernel)),
        "states": kernel_facts.measure_states(kernel),
        "causes": kernel_facts.measure_attribution(kernel),
        "tables": tables,
        "tables_summary": _summarise_tables(kernel),
        "cards": cards,
        "advice_summary": _summarise_advice(len(cards)),
        "alternatives": ALTERNATIVES if cards else "",
        "estimates": kernel_facts.tabulate_estimates(kernel),
        "silences": explain_silence(kernel) if not cards or kernel.advice is None or kernel.advice.silences else {},
        "silence_count": count_silences(kernel) if cards else "",
        "roofline": roofline,
        "answers": [section for section in sections if roofline is None or section is not of_roofline],
        "has_code": bool(len(kernel.instructions)),
        "launches": kernel_facts.tabulate_launches(kernel),
        "launch_contexts": kernel_facts.tabulate_contexts(kernel),
        "contexts": contexts,
        "contexts_rest": contexts_rest,
        "remarks": kernel_facts.list_remarks(kernel),
        "measured_summary": join_facts([fact for fact in (place.profile, place.measured) if fact])
        or ("One launch" if kernel.launches else "Not measured"),
        "basis": list(describe_basis(kernel)),
    }
    return make_environment().get_template(TEMPLATE).render(values)


def _build_flame(
    kernel: KernelReport,
    place: KernelPlace,
    texts: SourceTexts,
    addresses: KernelAddresses,
    charts: dict[str, Mapping[str, Any]],
) -> FlameSection | None:
    """None where all samples are at one place."""
    frames = build_flame_frames(kernel, place.name, addresses, texts)
    if not frames:
        return None
    number = f"chart{len(charts)}"
    charts[number] = build_flame_chart(frames, f"Flame graph of the samples of {place.name}")
    widest = next((frame.words for frame in frames[1:] if frame.link), frames[0].words)
    return FlameSection(number=number, summary=widest)


def _summarise_advice(cards: int) -> Sentence:
    if not cards:
        return say("Nothing to suggest, and why")
    return say("{suggestions}: places, bounds and the basis of each estimate", suggestions=count(cards, "suggestion"))


def _summarise_tables(kernel: KernelReport) -> Sentence:
    parts = [
        format_count_of(len(rows), noun)
        for rows, noun in ((kernel.functions, "function"), (kernel.loops, "loop"))
        if rows
    ]
    return join(parts, ", ")
