"""What never changes, is the same for all lanes, or is loaded or stored redundantly?"""

from collections.abc import Iterable

from gpa_lsp.code.ptx.static_instructions import is_read_anew
from gpa_lsp.diagnosis.analyses.answers import Answer, Finding
from gpa_lsp.execution.traces.code_centric import find_place, list_path_branches
from gpa_lsp.execution.traces.model import AccessGroupKind
from gpa_lsp.execution.traces.questions import TraceQuestion
from gpa_lsp.execution.traces.results import GLOBAL_SPACES, TraceAnalyses
from gpa_lsp.execution.traces.words import DEAD_STORE_REMEDY, ONE_WAY_REMEDY, REPEAT_REMEDY, UNIFORM_REMEDY
from gpa_lsp.foundation.prose import Sentence, count, percent, say

_NAME = "traced_values"
_MOST_EACH = 3
_LEAST = 0.05  # From this share of all requests, or of all executions of branches, on a fact is told
_MOSTLY = 0.5


def _answer(analyses: TraceAnalyses) -> Answer:
    findings = (
        *_find_repeats(analyses, "loads"),
        *_find_repeats(analyses, "stores"),
        *_find_uniform(analyses),
        *_find_one_way(analyses),
    )
    found = count(len(findings), "finding") if findings else "nothing stands out"
    return Answer(
        analysis=_NAME,
        title=f"Values ({analyses.origin})",
        summary=say(
            "Redundant, uniform or constant values in {blocks}: {found}.", blocks=analyses.sampled_words, found=found
        ),
        findings=findings,
    )


def _count_requests(analyses: TraceAnalyses) -> int:
    requests = sum(one.totals.requests for one in analyses.accesses.instructions if one.space in GLOBAL_SPACES)
    return max(1, requests + sum(one.requests for one in analyses.banks))


def _sum_by_place(analyses: TraceAnalyses, counts: Iterable[tuple[int, int, int]]) -> list[tuple[Sentence, int, int]]:
    """(Instruction, part, whole) summed by call path: what the compiler unrolled is one. Most parts first."""
    sums: dict[Sentence, list[int]] = {}
    for instruction, part, whole in counts:
        row = sums.setdefault(find_place(analyses, instruction).say(analyses.short_files), [0, 0])
        row[0] += part
        row[1] += whole
    found = [(place, part, whole) for place, (part, whole) in sums.items()]
    return sorted(found, key=lambda one: (-one[1], one[0]))[:_MOST_EACH]


def _find_repeats(analyses: TraceAnalyses, kind: str) -> list[Finding]:
    is_load = kind == "loads"
    found = analyses.repeats.loads if is_load else analyses.repeats.stores
    whole = _count_requests(analyses)
    words = "repeat an earlier load of the same warp" if is_load else "are overwritten before they are read"
    return [
        Finding(
            text=say(
                "{share} of {requests} at {place} {words}, with no thread of the block in between.",
                share=percent(repeated / requests),
                requests=count(requests, kind.removesuffix("s")),
                place=place,
                words=words,
            ),
            remedy=REPEAT_REMEDY if is_load else DEAD_STORE_REMEDY,
        )
        for place, repeated, requests in _sum_by_place(
            analyses, ((one.instruction, one.repeated, one.requests) for one in found)
        )
        if repeated >= _LEAST * whole
    ]


def _find_uniform(analyses: TraceAnalyses) -> list[Finding]:
    whole = _count_requests(analyses)
    uniform = (
        (one.instruction, one.totals.uniform, one.totals.requests)
        for one in analyses.accesses.instructions
        if one.space in GLOBAL_SPACES
        and analyses.find_kind(one.instruction) is AccessGroupKind.LOADS
        and not is_read_anew(analyses.instructions[one.instruction])
        and one.totals.uniform >= _MOSTLY * one.totals.requests
    )
    return [
        Finding(
            text=say(
                "In {share} of {requests} at {place} all lanes read one address.",
                share=percent(same / requests),
                requests=count(requests, "load"),
                place=place,
            ),
            remedy=UNIFORM_REMEDY,
        )
        for place, same, requests in _sum_by_place(analyses, uniform)
        if same >= _LEAST * whole
    ]


def _find_one_way(analyses: TraceAnalyses) -> list[Finding]:
    if not analyses.is_complete:
        return []  # where rows are missing, a branch may have gone the other way in them
    findings = []
    for is_taken, word in ((True, "always"), (False, "never")):
        branches = (
            one
            for one in list_path_branches(analyses)
            if one.executions and not one.place.stand_in and one.taken_lanes == (one.active_lanes if is_taken else 0)
        )
        findings += [
            Finding(
                text=say(
                    "The {branch} {verb} {word} taken ({executions}).",
                    branch=one.say(analyses.short_files),
                    verb="is" if one.count == 1 else "are",
                    word=word,
                    executions=count(one.executions, "execution"),
                ),
                remedy=ONE_WAY_REMEDY,
            )
            for one in sorted(branches, key=lambda one: -one.executions)[:_MOST_EACH]
            if one.executions >= _LEAST * analyses.branches.executions and not one.which.startswith("in ")
        ]
    return findings


QUESTION = TraceQuestion(name=_NAME, order=70, answer=_answer)
