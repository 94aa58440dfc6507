"""Do the threads of a warp take the same path? Idle lanes, and divergent branches, by line."""

from gpa_lsp.diagnosis.analyses.answers import MOST_MARKS, Answer, LineMark, Missing, Weight
from gpa_lsp.diagnosis.analyses.facts import KernelFacts, lack
from gpa_lsp.diagnosis.analyses.lanes.columns import LaneColumns, read_lanes
from gpa_lsp.diagnosis.analyses.lanes.findings import (
    build_bars,
    build_branch_table,
    build_line_table,
    find_divergent_branches,
    find_idle_lanes,
    find_partial_warps,
)
from gpa_lsp.diagnosis.analyses.line_sums import LineIndex, find_inlined, index_lines, mark_callers, mark_lines
from gpa_lsp.diagnosis.analyses.questions import Analysis
from gpa_lsp.foundation.numbers import Quantity
from gpa_lsp.foundation.prose import Sentence, capitalize, count, join, number, percent, say
from gpa_lsp.kernel.dataflow.accesses import WARP_THREADS

_NAME = "divergence"
_TITLE = "How full warps are"
_SECTION = "SourceCounters"
_PART_OF_MARKS = MOST_MARKS // 3


def _answer(facts: KernelFacts) -> Answer:
    lanes = read_lanes(facts)
    partial = find_partial_warps(facts)
    if lanes is None:
        return Answer(
            analysis=_NAME,
            title=_TITLE,
            summary=say("Unknown: active threads were not counted."),
            findings=tuple(partial),
            missing=(
                lack(
                    "threads per instruction", "inst_executed", "thread_inst_executed", section=_SECTION, needs_all=True
                ),
            ),
            is_known=bool(partial),
        )
    index = index_lines(facts)
    findings = [*partial, *find_idle_lanes(facts, lanes), *find_divergent_branches(facts, lanes, index)]
    order = list(Weight)
    return Answer(
        analysis=_NAME,
        title=_TITLE,
        summary=_summarise(lanes),
        findings=tuple(sorted(findings, key=lambda one: -order.index(one.weight))),
        bars=build_bars(lanes),
        tables=(*build_line_table(facts, lanes, index), *build_branch_table(facts, lanes, index)),
        marks=(*_mark_lost(facts, lanes, index), *_mark_branches(facts, lanes, index)),
        missing=_list_missing(lanes),
        is_known=True,
    )


def _summarise(lanes: LaneColumns) -> Sentence:
    executed = max(int(lanes.executions.sum()), 1)
    parts = []
    if lanes.part is not None:
        part = number(int(lanes.part.sum()) / executed)
        parts.append(
            say("{part} of {all} threads are active per instruction on average", part=part, all=count(WARP_THREADS))
        )
    if lanes.work is not None:
        work = number(int(lanes.work.sum()) / executed)
        alone = "{work} of {all} threads are active and predicated on per instruction on average"
        parts.append(
            say("{work} of them are predicated on", work=work)
            if parts
            else say(alone, work=work, all=count(WARP_THREADS))
        )
    if lanes.uniform_ratio is not None:
        parts.append(say("{share} of the executed branches are uniform", share=percent(lanes.uniform_ratio)))
    return say("{parts}.", parts=capitalize(join(parts, "; ")))


def _mark_lost(facts: KernelFacts, lanes: LaneColumns, index: LineIndex) -> tuple[LineMark, ...]:
    executed = index.sum_by_line(lanes.executions)
    lost = index.sum_by_line(lanes.lost)
    measure, column = "warp instructions lost to idle lanes", lanes.lost / WARP_THREADS
    marks = mark_lines(
        facts,
        index,
        column,
        measure=measure,
        quantity=Quantity.COUNT,
        describe=lambda line: say(
            "{busy} of {all} threads are busy on average",
            busy=number(WARP_THREADS - lost[line] / executed[line]),
            all=count(WARP_THREADS),
        ),
        most=_PART_OF_MARKS,
    )
    callers = mark_callers(
        facts, find_inlined(facts, index), column, measure=measure, quantity=Quantity.COUNT, most=_PART_OF_MARKS
    )
    return (*marks, *callers)


def _mark_branches(facts: KernelFacts, lanes: LaneColumns, index: LineIndex) -> tuple[LineMark, ...]:
    if lanes.divergent is None:
        return ()
    parted = index.sum_by_line(lanes.divergent)
    return mark_lines(
        facts,
        index,
        lanes.divergent,
        measure="divergent branches",
        quantity=Quantity.COUNT,
        describe=lambda line: say("branches diverge in {executions}", executions=count(parted[line], "execution")),
        most=_PART_OF_MARKS,
    )


def _list_missing(lanes: LaneColumns) -> tuple[Missing, ...]:
    missing = []
    if lanes.part is None:
        missing.append(lack("idle lanes apart from predicated-off ones", "thread_inst_executed", section=_SECTION))
    if lanes.work is None:
        missing.append(lack("lanes that predicates switch off", "thread_inst_executed_true", section=_SECTION))
    if lanes.divergent is None:
        missing.append(lack("divergent branches by line", "smsp__branch_targets_threads_divergent", section=_SECTION))
    return tuple(missing)


ANALYSIS = Analysis(name=_NAME, order=90, answer=_answer)
