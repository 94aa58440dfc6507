"""The question of where warps divide."""

from gpa_lsp.code.symbolic_accesses.requests import WARP_LANES
from gpa_lsp.diagnosis.analyses.answers import Answer, Finding, Missing, Table, Weight, list_columns
from gpa_lsp.execution.traces.branch_divergence import BranchDivergence
from gpa_lsp.execution.traces.code_centric import build_place, list_path_branches
from gpa_lsp.execution.traces.questions import TraceQuestion
from gpa_lsp.execution.traces.results import TraceAnalyses
from gpa_lsp.execution.traces.words import deny
from gpa_lsp.foundation.numbers import Cell
from gpa_lsp.foundation.prose import NOTHING, count, number, percent, say

_BRANCHES = "traced_branches"
_MOST_ROWS = 20
_MOST_FINDINGS = 3
_LEAST = 0.02
_MATTERS = 0.1
_LEAST_IDLE = 0.05  # of all lanes: what warps that stay together could gain at most
_REMEDY = say(
    "Let the threads of a warp take the same path: sort or bin the work by the condition, make the condition uniform per warp or block, "
    "or let all threads compute both sides where these are short. For differing trip counts, let the warp share a queue of work."
)


def _answer_branches(analyses: TraceAnalyses) -> Answer:
    """Answer where warps diverge."""
    title = f"Branch divergence ({analyses.origin})"
    found = analyses.branches
    if not found.executions and not found.entries:
        return deny(_BRANCHES, title, "execute no conditional branch", is_complete=analyses.is_complete)
    lanes = (
        NOTHING
        if found.lane_ratio is None
        else say("; on average {lanes} of 32 lanes are active", lanes=number(found.lane_ratio * WARP_LANES))
    )
    return Answer(
        analysis=_BRANCHES,
        title=title,
        summary=say(
            "{share} of {executions} diverge{lanes}.",
            share=percent(found.divergent_ratio),
            executions=count(found.executions, "branch execution"),
            lanes=lanes,
        ),
        findings=tuple(_find(analyses, found)),
        tables=(_build_lines(analyses), *_build_blocks(found), *_build_block_lines(analyses)),
        missing=()
        if found.entries
        else (Missing(what="entries into basic blocks", why=say("only branches were traced")),),
    )


def _find(analyses: TraceAnalyses, found: BranchDivergence) -> list[Finding]:
    findings = []
    lanes = found.lane_ratio if found.entries else None
    is_costly = lanes is None or 1 - lanes >= _LEAST_IDLE  # guards at the edge of a grid are not
    for one in [one for one in list_path_branches(analyses) if not one.place.stand_in][:_MOST_FINDINGS]:
        part = one.divergent / max(1, found.executions)
        if part < _LEAST:
            continue
        findings.append(
            Finding(
                text=say(
                    "{share} of {executions} of the {branch} diverge: {part} of all branch executions.",
                    share=percent(one.divergent / one.executions),
                    executions=count(one.executions, "execution"),
                    branch=one.say(analyses.short_files),
                    part=percent(part),
                ),
                weight=Weight.HIGH if part >= _MATTERS and is_costly else Weight.PLAIN,
                remedy=_REMEDY if is_costly else NOTHING,
            )
        )
    if findings:
        return findings
    words = say("No branch diverges.") if not found.divergent else say("Branches hardly diverge.")
    return [Finding(text=words, weight=Weight.GOOD)]


def _build_lines(analyses: TraceAnalyses) -> Table:
    branches = list_path_branches(analyses)
    rows: list[tuple[Cell, ...]] = [
        (
            one.write(analyses.short_files),
            one.executions,
            one.divergent,
            one.divergent / one.executions,
            one.active_lanes / one.executions / WARP_LANES,
        )
        for one in branches[:_MOST_ROWS]
        if one.executions
    ]
    return Table(
        title="Branches by call path",
        columns=list_columns("line | executions [count] | divergent [count] | share [ratio] | lanes [ratio]"),
        rows=tuple(rows),
        note=say("Executions are counted per warp; one diverges when some of its lanes jump and some do not."),
    )


def _build_blocks(found: BranchDivergence) -> tuple[Table, ...]:
    if not found.entries:
        return ()
    return (
        Table(
            title="Basic blocks",
            columns=list_columns("divergent blocks [count] | total blocks [count] | divergence [ratio]"),
            rows=((found.divergent_entries, found.entries, found.divergent_entries / found.entries),),
            note=say(
                "Entries are counted per warp; divergent: with fewer lanes than the warp has threads. "
                "The columns are those of CUDAAdvisor's Table 3, which sums entries over the whole kernel instead."
            ),
        ),
    )


def _build_block_lines(analyses: TraceAnalyses) -> tuple[Table, ...]:
    """The basic blocks that diverge most, where their lines are known."""
    found = [
        one
        for one in sorted(analyses.branches.basic_blocks, key=lambda one: (-one.divergent, -one.entries))
        if one.basic_block < len(analyses.block_chains)
    ][:_MOST_ROWS]
    if not found:
        return ()
    return (
        Table(
            title="Basic blocks by line",
            columns=list_columns(
                "basic block [count] | begins at | entries [count] | divergent [count] | share [ratio] | lanes [ratio]"
            ),
            rows=tuple(
                (
                    one.basic_block,
                    build_place(analyses.kernel, analyses.block_chains[one.basic_block]).write(analyses.short_files),
                    one.entries,
                    one.divergent,
                    one.divergent_ratio,
                    one.lanes / one.entries / WARP_LANES,
                )
                for one in found
            ),
        ),
    )


QUESTIONS = {
    "traced_branches": TraceQuestion(order=60, answer=_answer_branches),
}
