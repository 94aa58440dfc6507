"""Do requests to shared memory meet in the same banks?"""

from gpa_lsp.analyses.access.patterns import CONFLICT_REMEDY
from gpa_lsp.analyses.answers import Answer, Cell, Column, Finding, Quantity, Table, Weight
from gpa_lsp.analyses.traces.bank_conflicts import BankConflicts
from gpa_lsp.analyses.traces.code_centric import find_place
from gpa_lsp.analyses.traces.model import AccessGroupKind
from gpa_lsp.analyses.traces.questions import TraceQuestion
from gpa_lsp.analyses.traces.results import TraceAnalyses
from gpa_lsp.figures import format_whole_percent

_NAME = "traced_banks"
_MOST_ROWS = 20
_MOST_FINDINGS = 3
_LEAST_EXCESS = 0.05
_MATTERS = 0.1
_ATOMIC_REMEDY = "Let the threads of a warp update different addresses: combine equal ones in registers first, or keep several copies."


def _answer(analyses: TraceAnalyses) -> Answer:
    title = f"Bank conflicts ({analyses.origin})"
    banks = sorted(analyses.banks, key=lambda one: (-one.excess_wavefronts, -one.wavefronts, one.instruction))
    if not banks:
        return Answer(
            analysis=_NAME, title=title, summary="Shared memory was not accessed in the traced blocks.", is_known=False
        )
    taken, ideal = sum(one.wavefronts for one in banks), sum(one.ideal_wavefronts for one in banks)
    requests = sum(one.requests for one in banks)
    return Answer(
        analysis=_NAME,
        title=title,
        summary=f"{requests:,} requests to shared memory take {taken:,} wavefronts, {format_whole_percent((taken - ideal) / taken)} of them "
        "for bank conflicts.",
        findings=tuple(_find(analyses, banks, taken)),
        tables=(_build_table(analyses, banks),),
    )


def _find(analyses: TraceAnalyses, banks: list[BankConflicts], taken: int) -> list[Finding]:
    findings = []
    for one in banks[:_MOST_FINDINGS]:
        part = one.excess_wavefronts / taken
        if part < _LEAST_EXCESS:
            continue
        kind = analyses.find_kind(one.instruction)
        place = find_place(analyses, one.instruction).write(analyses.short_files)
        findings.append(
            Finding(
                text=f"{place}: shared {kind.value} take {one.wavefronts_per_request:.1f} "
                f"wavefronts per request, a {one.conflict_ways:.1f}-way bank conflict; {format_whole_percent(part)} of all wavefronts.",
                weight=Weight.HIGH if part >= _MATTERS else Weight.PLAIN,
                remedy=_ATOMIC_REMEDY if kind is AccessGroupKind.ATOMICS else CONFLICT_REMEDY,
            )
        )
    return findings or [Finding(text="Shared accesses take about as few wavefronts as they can.", weight=Weight.GOOD)]


def _build_table(analyses: TraceAnalyses, banks: list[BankConflicts]) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (
            find_place(analyses, one.instruction).write(analyses.short_files),
            analyses.find_kind(one.instruction).value,
            analyses.instructions[one.instruction].bytes_per_lane,
            one.requests,
            one.wavefronts_per_request,
            one.ideal_wavefronts / one.requests,
            one.excess_wavefronts,
        )
        for one in banks[:_MOST_ROWS]
    ]
    return Table(
        title="Shared memory by instruction",
        columns=(
            Column(name="line"),
            Column(name="kind"),
            Column(name="per thread", quantity=Quantity.BYTES),
            Column(name="requests", quantity=Quantity.COUNT),
            Column(name="wavefronts each", quantity=Quantity.NUMBER),
            Column(name="at best", quantity=Quantity.NUMBER),
            Column(name="too many", quantity=Quantity.COUNT),
        ),
        rows=tuple(rows),
        note="32 banks of 4 bytes; 8 bytes per thread go half a warp at a time, 16 bytes a quarter.",
    )


QUESTION = TraceQuestion(name=_NAME, order=50, answer=_answer)
