"""Do requests to shared memory meet in the same banks?"""

from collections.abc import Sequence

from msgspec import Struct

from gpa_lsp.diagnosis.analyses.access import CONFLICT_REMEDY
from gpa_lsp.diagnosis.analyses.answers import Answer, Finding, Table, Weight, list_columns
from gpa_lsp.execution.traces.access_sums import BankConflicts
from gpa_lsp.execution.traces.code_centric import find_place
from gpa_lsp.execution.traces.model import AccessGroupKind
from gpa_lsp.execution.traces.questions import TraceQuestion
from gpa_lsp.execution.traces.results import TraceAnalyses
from gpa_lsp.execution.traces.words import deny
from gpa_lsp.foundation.numbers import Cell
from gpa_lsp.foundation.prose import Sentence, count, join, number, percent, say

_NAME = "traced_banks"
_MOST_ROWS = 20
_MOST_FINDINGS = 3
_LEAST_EXCESS = 0.05
_MATTERS = 0.1
_ATOMIC_REMEDY = say(
    "Let the threads of a warp update different addresses: combine equal ones in registers first, or privatize (several copies)."
)


def _answer(analyses: TraceAnalyses) -> Answer:
    title = f"Bank conflicts ({analyses.origin})"
    banks = sorted(analyses.banks, key=lambda one: (-one.excess_wavefronts, -one.wavefronts, one.instruction))
    if not banks:
        return deny(_NAME, title, "do not access shared memory", is_complete=analyses.is_complete)
    taken, ideal = sum(one.wavefronts for one in banks), sum(one.ideal_wavefronts for one in banks)
    requests = sum(one.requests for one in banks)
    return Answer(
        analysis=_NAME,
        title=title,
        summary=say(
            "{requests} to shared memory took {wavefronts}, {share} of them due to bank conflicts.",
            requests=count(requests, "request"),
            wavefronts=count(taken, "wavefront"),
            share=percent((taken - ideal) / taken),
        ),
        findings=tuple(_find(analyses, banks, taken)),
        tables=(_build_table(analyses, banks),),
    )


class _LineConflicts(Struct, frozen=True):
    """Requests of one kind at one line: an access that was unrolled is one thing to mend."""

    place: Sentence
    kind: AccessGroupKind
    requests: int
    wavefronts: int
    ideal_wavefronts: int

    @property
    def excess_wavefronts(self) -> int:
        return self.wavefronts - self.ideal_wavefronts


def _find(analyses: TraceAnalyses, banks: Sequence[BankConflicts], taken: int) -> list[Finding]:
    """The lines with the most conflicts, or that there are hardly any: the same total as in the summary says which."""
    if sum(one.excess_wavefronts for one in banks) < _LEAST_EXCESS * taken:
        return [
            Finding(
                text=say("Shared-memory accesses take close to the fewest wavefronts possible."), weight=Weight.GOOD
            )
        ]
    lines = _sum_by_line(analyses, banks)
    findings = []
    for one in lines[:_MOST_FINDINGS]:
        part = one.excess_wavefronts / taken
        if part < _LEAST_EXCESS and one is not lines[0]:
            continue
        findings.append(
            Finding(
                text=say(
                    "Shared {kind} at {place} take {wavefronts} per request, a {ways}-way bank conflict; the excess is {share} of all wavefronts.",
                    kind=one.kind.value,
                    place=one.place,
                    wavefronts=number(one.wavefronts / one.requests, "wavefront"),
                    ways=number(one.wavefronts / one.ideal_wavefronts),
                    share=percent(part),
                ),
                weight=Weight.HIGH if part >= _MATTERS else Weight.PLAIN,
                remedy=_ATOMIC_REMEDY if one.kind is AccessGroupKind.ATOMICS else join([CONFLICT_REMEDY]),
            )
        )
    return findings


def _sum_by_line(analyses: TraceAnalyses, banks: Sequence[BankConflicts]) -> list[_LineConflicts]:
    """By place and kind, most conflicts first."""
    sums: dict[tuple[Sentence, AccessGroupKind], list[int]] = {}
    for one in banks:
        place = find_place(analyses, one.instruction).say(analyses.short_files)
        total = sums.setdefault((place, analyses.find_kind(one.instruction)), [0, 0, 0])
        for index, value in enumerate((one.requests, one.wavefronts, one.ideal_wavefronts)):
            total[index] += value
    lines = [_LineConflicts(place, kind, *total) for (place, kind), total in sums.items()]
    return sorted(lines, key=lambda one: (-one.excess_wavefronts, -one.wavefronts, one.place))


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
        columns=list_columns(
            "line | kind | per thread [bytes] | requests [count] | wavefronts each [number] | ideal [number] | "
            "excess [count]"
        ),
        rows=tuple(rows),
        note=say(
            "32 banks of 4 bytes. A request is served half a warp at a time at 8 bytes per thread, a quarter at 16; "
            "twice as many threads where neighbours load the same address."
        ),
    )


QUESTION = TraceQuestion(name=_NAME, order=50, answer=_answer)
