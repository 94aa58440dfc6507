"""What does the kernel execute, on which pipes, and which of them are busy? Classes of work, pipes, and the mix of the hottest lines."""

import numpy as np
import numpy.typing as npt

from gpa_lsp.diagnosis.analyses.answers import Answer, LineMark, Missing, Weight
from gpa_lsp.diagnosis.analyses.facts import KernelFacts, lack
from gpa_lsp.diagnosis.analyses.line_sums import LineIndex, index_lines, mark_lines
from gpa_lsp.diagnosis.analyses.mix.classes import ARITHMETIC, MEMORY, WorkClass, classify_rows, count_classes
from gpa_lsp.diagnosis.analyses.mix.findings import (
    find_busy_pipes,
    find_conversions,
    find_doubles,
    find_non_fused,
    find_overhead,
)
from gpa_lsp.diagnosis.analyses.mix.fusion import count_non_fused
from gpa_lsp.diagnosis.analyses.mix.pipes import PipeUse, measure_pipes
from gpa_lsp.diagnosis.analyses.mix.tables import build_bars, build_line_table, build_opcode_table, build_pipe_table
from gpa_lsp.diagnosis.analyses.questions import Analysis
from gpa_lsp.foundation.numbers import Quantity
from gpa_lsp.foundation.prose import NOTHING, Sentence, count, percent, say

_NAME = "instruction_mix"
_TITLE = "What is executed"
_SECTION = "SourceCounters"
_PIPES_SECTION = "ComputeWorkloadAnalysis"
_MOST_MARKS = 50  # Every line executes something; the ones that execute most are enough


def _answer(facts: KernelFacts) -> Answer:
    executions = facts.read_executions()
    uses = measure_pipes(facts, executions)
    classes = classify_rows(facts)
    has_code = bool((classes >= 0).any())
    missing = _list_missing(facts, uses, executions, has_code=has_code)
    if executions is None or not has_code or not executions.any():
        return Answer(
            analysis=_NAME,
            title=_TITLE,
            summary=say("Unknown: which instructions the kernel executes."),
            findings=tuple(find_busy_pipes(uses)),
            tables=build_pipe_table(uses, None),
            missing=missing,
            is_known=bool(uses),
        )
    index = index_lines(facts)
    counts = count_classes(classes, executions)
    total = sum(counts.values())
    findings = [
        *find_busy_pipes(uses),
        *find_non_fused(count_non_fused(facts, executions, uses, index), total, index),
        *find_doubles(facts, counts, total),
        *find_conversions(facts, executions, uses, index, total),
        *find_overhead(counts, total),
    ]
    order = list(Weight)
    return Answer(
        analysis=_NAME,
        title=_TITLE,
        summary=_summarise(counts, total, uses),
        findings=tuple(sorted(findings, key=lambda one: -order.index(one.weight))),
        bars=build_bars(counts),
        tables=(
            *build_pipe_table(uses, total),
            *build_line_table(classes, executions, facts.rows.all_samples.sum(axis=1), index),
            *build_opcode_table(count_opcodes(facts, executions), total),
        ),
        marks=_mark_executions(facts, executions, index, total),
        missing=missing,
    )


def count_opcodes(facts: KernelFacts, executions: npt.NDArray[np.int64]) -> dict[str, int]:
    """Executed warp instructions by opcode without modifiers, over all launches; only of disassembled code.

    This is what the profiler calls ``sass__inst_executed_per_opcode``.
    """
    counts: dict[str, int] = {}
    known = facts.rows.mnemonic_index >= 0
    opcodes = facts.rows.opcodes
    sums = np.bincount(facts.rows.mnemonic_index[known], weights=executions[known], minlength=len(opcodes))
    for opcode, executed in zip(opcodes, sums, strict=True):
        counts[opcode.name] = counts.get(opcode.name, 0) + int(executed)
    return counts


def _summarise(counts: dict[WorkClass, int], total: int, uses: tuple[PipeUse, ...]) -> Sentence:
    known = [use for use in uses if use.use_ratio is not None]
    busiest = NOTHING
    if known:
        share = percent(known[0].use_ratio)
        busiest = say("; the busiest pipe is {pipe} at {share}", pipe=known[0].pipe.title, share=share)
    return say(
        "Of {total} {arithmetic} are floating-point, tensor and special-function arithmetic, {integer} integers and addresses, {memory} memory "
        "accesses{busiest}.",
        total=count(total, "warp instruction"),
        arithmetic=percent(sum(counts[one] for one in ARITHMETIC) / total),
        integer=percent((counts[WorkClass.INTEGER] + counts[WorkClass.ADDRESS]) / total),
        memory=percent(sum(counts[one] for one in MEMORY) / total),
        busiest=busiest,
    )


def _mark_executions(
    facts: KernelFacts, executions: npt.NDArray[np.int64], index: LineIndex, total: int
) -> tuple[LineMark, ...]:
    executed = index.sum_by_line(executions)
    return mark_lines(
        facts,
        index,
        executions,
        measure="warp instructions",
        quantity=Quantity.COUNT,
        describe=lambda line: say("{share} of the kernel's instructions", share=percent(executed[line] / total)),
        most=_MOST_MARKS,
    )


def _list_missing(
    facts: KernelFacts, uses: tuple[PipeUse, ...], executions: npt.NDArray[np.int64] | None, *, has_code: bool
) -> tuple[Missing, ...]:
    missing = []
    if executions is None:
        missing.append(lack("how often each instruction is executed", "inst_executed", section=_SECTION))
    elif not executions.any():
        missing.append(
            Missing(what="what the kernel executes", why=say("the profiler counted no execution of any instruction"))
        )
    if not has_code:
        missing.append(Missing(what="what the instructions are", why=say("the code could not be disassembled")))
    if facts.architecture is None:
        missing.append(Missing(what="which pipes execute the instructions", why=say("there is no table for this GPU")))
    uncounted = [use for use in uses if use.counted_ratio is None and use.pipe.counters]
    if uncounted:
        names = tuple(use.pipe.counters[0] for use in uncounted)
        pipes = ", ".join(use.pipe.title for use in uncounted)
        missing.append(lack(f"the counted use of {pipes}", *names, section=_PIPES_SECTION, needs_all=True))
    return tuple(missing)


ANALYSIS = Analysis(name=_NAME, order=100, answer=_answer)
