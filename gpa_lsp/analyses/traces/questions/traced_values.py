"""What never changes, is the same for all lanes, or is loaded or stored again for nothing?"""

from gpa_lsp.analyses.answers import Answer, Finding
from gpa_lsp.analyses.traces.code_centric import find_place
from gpa_lsp.analyses.traces.model import AccessGroupKind
from gpa_lsp.analyses.traces.questions import TraceQuestion
from gpa_lsp.analyses.traces.remedies import DEAD_STORE_REMEDY, ONE_WAY_REMEDY, REPEAT_REMEDY, UNIFORM_REMEDY
from gpa_lsp.analyses.traces.results import GLOBAL_SPACES, TraceAnalyses
from gpa_lsp.figures import format_whole_percent

_NAME = "traced_values"
_MOST_EACH = 3
_LEAST = 0.05
"""From this share of all requests, or of all executions of branches, on a fact is told."""
_MOSTLY = 0.5


def _answer(analyses: TraceAnalyses) -> Answer:
    findings = (
        *_find_repeats(analyses, "loads"),
        *_find_repeats(analyses, "stores"),
        *_find_uniform(analyses),
        *_find_one_way(analyses),
    )
    words = "Nothing stands out." if not findings else f"{len(findings)} {'fact' if len(findings) == 1 else 'facts'}."
    return Answer(
        analysis=_NAME,
        title=f"Values ({analyses.origin})",
        summary=f"What repeats, is uniform or never changes in {analyses.sampled_words}: {words}",
        findings=findings,
    )


def _count_requests(analyses: TraceAnalyses) -> int:
    requests = sum(one.totals.requests for one in analyses.accesses.instructions if one.space in GLOBAL_SPACES)
    return max(1, requests + sum(one.requests for one in analyses.banks))


def _find_repeats(analyses: TraceAnalyses, kind: str) -> list[Finding]:
    is_load = kind == "loads"
    found = sorted(analyses.repeats.loads if is_load else analyses.repeats.stores, key=lambda one: -one.repeated)
    whole = _count_requests(analyses)
    words = "load what the same warp loaded before" if is_load else "are overwritten before they are read"
    return [
        Finding(
            text=f"{find_place(analyses.instructions[one.instruction])}: {format_whole_percent(one.ratio)} of {one.requests:,} {kind} {words}, "
            "and no thread of the block comes in between.",
            remedy=REPEAT_REMEDY if is_load else DEAD_STORE_REMEDY,
        )
        for one in found[:_MOST_EACH]
        if one.repeated >= _LEAST * whole
    ]


def _find_uniform(analyses: TraceAnalyses) -> list[Finding]:
    whole = _count_requests(analyses)
    groups = [
        one
        for one in analyses.accesses.instructions
        if one.space in GLOBAL_SPACES and analyses.find_kind(one.instruction) is AccessGroupKind.LOADS
    ]
    return [
        Finding(
            text=f"{find_place(analyses.instructions[one.instruction])}: in {format_whole_percent(one.totals.uniform / one.totals.requests)} of "
            f"{one.totals.requests:,} loads all lanes read one address.",
            remedy=UNIFORM_REMEDY,
        )
        for one in sorted(groups, key=lambda one: -one.totals.uniform)[:_MOST_EACH]
        if one.totals.uniform >= _LEAST * whole and one.totals.uniform >= _MOSTLY * one.totals.requests
    ]


def _find_one_way(analyses: TraceAnalyses) -> list[Finding]:
    branches = [one for one in analyses.branches.branches if one.is_one_way]
    return [
        Finding(
            text=f"{find_place(analyses.instructions[one.instruction])}: the branch is {'always' if one.taken_lanes else 'never'} taken, "
            f"{one.executions:,} times.",
            remedy=ONE_WAY_REMEDY,
        )
        for one in sorted(branches, key=lambda one: -one.executions)[:_MOST_EACH]
        if one.executions >= _LEAST * analyses.branches.executions
    ]


QUESTION = TraceQuestion(name=_NAME, order=70, answer=_answer)
