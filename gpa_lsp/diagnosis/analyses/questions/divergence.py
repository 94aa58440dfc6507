"""Do the threads of a warp take the same path? Idle lanes, and divergent branches, by line."""

import numpy as np
import numpy.typing as npt

from gpa_lsp.code.binary.model import Flow
from gpa_lsp.diagnosis.analyses.answers import (
    MOST_MARKS,
    Answer,
    Bar,
    Finding,
    LineMark,
    Missing,
    Table,
    Weight,
    list_columns,
    order_findings,
)
from gpa_lsp.diagnosis.analyses.line_sums import LineIndex, index_lines, mark_lines, mark_with_callers, rank_lines
from gpa_lsp.diagnosis.analyses.questions import Analysis
from gpa_lsp.diagnosis.analyses.subject import Subject, lack
from gpa_lsp.foundation.numbers import Cell, Quantity
from gpa_lsp.foundation.prose import NOTHING, Sentence, capitalize, count, join, number, percent, say
from gpa_lsp.foundation.records import ColumnRecord
from gpa_lsp.kernel.dataflow.accesses import WARP_THREADS
from gpa_lsp.profile.model import Dim3

Counts = npt.NDArray[np.int64]

# Branches at which threads can part; an exit is none. Source: in reports of compute capability 7.0 to 9.0, one minus divergent branches over
# executions of exactly these is ``smsp__sass_average_branch_targets_threads_uniform.pct`` to ten digits.
_BRANCHES = (Flow.BRANCH, Flow.INDIRECT_BRANCH, Flow.CALL, Flow.INDIRECT_CALL, Flow.RETURN)


class LaneColumns(ColumnRecord, frozen=True, kw_only=True):
    """The lanes of the n instructions of a kernel, summed over executions.

    A warp instruction has 32 lanes, so ``32 · executions`` of them pass. A lane *takes part* when its thread executes the instruction, and
    *works* when the guard holds, too.
    """

    executions: Counts  # int64[n], of warps
    part: Counts | None  # int64[n], lanes that took part; None when not collected
    work: Counts | None  # int64[n], lanes that worked; None when not collected
    divergent: Counts | None  # int64[n], executions of a branch whose threads parted; None when not collected
    is_branch: npt.NDArray[np.bool_]  # bool[n], branches, calls and returns
    # bool[n], these, exits, and all else that decides where the warp goes on: a guard that does not hold there is a way not taken, and no lane lost
    is_control: npt.NDArray[np.bool_]

    @property
    def lanes(self) -> Counts:
        """int64[n], lanes that passed, busy or not."""
        return self.executions * WARP_THREADS

    @property
    def idle(self) -> Counts | None:
        """int64[n], lanes whose thread was elsewhere, had left, or never existed; None when unknown."""
        return None if self.part is None else np.maximum(self.lanes - self.part, 0)

    @property
    def switched_off(self) -> Counts | None:
        """int64[n], lanes that took part and whose guard did not hold; None when unknown."""
        if self.part is None or self.work is None:
            return None
        return np.where(self.is_control, 0, np.maximum(self.part - self.work, 0))

    @property
    def lost(self) -> Counts:
        """int64[n], lanes that were idle or switched off, as far as is known."""
        if self.part is None and self.work is not None:
            return np.where(self.is_control, 0, np.maximum(self.lanes - self.work, 0))
        idle, off = self.idle, self.switched_off
        known = np.zeros_like(self.executions) if idle is None else idle
        return known if off is None else known + off

    @property
    def uniform_ratio(self) -> float | None:
        """Share of the executed branches whose threads stayed together; None without branches or when not collected."""
        branches = int(self.executions[self.is_branch].sum())
        return None if self.divergent is None or branches == 0 else 1.0 - int(self.divergent.sum()) / branches


def read_lanes(subject: Subject) -> LaneColumns | None:
    """The lanes of a kernel; None when executions, or both counters of threads, were not collected.

    Executions and threads are counted in different passes; code that spins can have more threads than lanes, which are cut.
    """
    executions = subject.read_executions()
    part, work = subject.read_counter("thread_executions"), subject.read_counter("thread_executions_true")
    if executions is None or (part is None and work is None):
        return None
    lanes = executions * WARP_THREADS
    part = None if part is None else np.minimum(part, lanes)
    work = None if work is None else np.minimum(work, lanes if part is None else part)
    return LaneColumns(
        executions=executions,
        part=part,
        work=work,
        divergent=subject.read_counter("divergent_branch_targets"),
        is_branch=subject.rows.mark_by_opcode(lambda opcode: opcode.flow in _BRANCHES),
        is_control=subject.rows.mark_by_opcode(lambda opcode: opcode.flow is not Flow.NONE),
    )


def measure_partial_warps(block: Dim3) -> float:
    """The share of lanes that never have a thread, because the last warp of each block is not full.

    >>> measure_partial_warps((128, 1, 1)), measure_partial_warps((48, 1, 1)), measure_partial_warps((1, 1, 1))
    (0.0, 0.25, 0.96875)
    """
    threads = block[0] * block[1] * block[2]
    lanes = -(-threads // WARP_THREADS) * WARP_THREADS
    return 1.0 - threads / lanes if lanes else 0.0


_MOST_ROWS = 10
_MOST_LINES = 3
_WORTH_NAMING = 0.02  # From this share of lanes, or of branches, on something is said
_MANY_OFF = 0.05  # From this share of lanes on guards are named
_MATTERS = 0.1  # From this share of the kernel's samples on, a finding is one of those that hold it up

_PARTIAL_REMEDY = say("Make the block size a multiple of 32 threads, with a bounds check for the excess.")
_DIVERGENCE_REMEDY = say(
    "Keep the threads of a warp on one path: sort or bin the work by what the condition tests, branch per warp or per block, or let all threads "
    "compute both sides where these are short. For loops with different trip counts: let the warp share a work queue."
)
_GUARD_REMEDY = say(
    "Short branches are compiled to predicated instructions, which issue with lanes switched off. Where a long stretch is predicated and rarely "
    "needed, a real branch that whole warps can skip is cheaper."
)


def estimate_idle_samples(subject: Subject, lanes: LaneColumns) -> float:
    """The most samples that full warps could save: those of each instruction times its share of idle lanes.

    An upper bound: fewer, fuller warps would issue less, but wait for memory as long.
    """
    idle = lanes.lost if lanes.idle is None else lanes.idle
    share = np.divide(idle, lanes.lanes, out=np.zeros(len(idle)), where=lanes.lanes > 0)
    return float((subject.rows.all_samples.sum(axis=1) * share).sum())


def find_partial_warps(subject: Subject) -> list[Finding]:
    """A finding where blocks do not fill their last warp; none where all launches do."""
    block, share = _find_worst_block(subject)
    if share == 0.0:
        return []
    threads = count(block[0] * block[1] * block[2], "thread")
    return [
        Finding(
            text=say(
                "A block of {threads} does not fill its last warp: {share} of all lanes never have a thread.",
                threads=threads,
                share=percent(share),
            ),
            weight=Weight.HIGH if share >= _MATTERS else Weight.PLAIN,
            remedy=_PARTIAL_REMEDY,
        )
    ]


def find_idle_lanes(subject: Subject, lanes: LaneColumns) -> list[Finding]:
    """Find the cost of idle and switched-off lanes, or say that there are few."""
    total = int(lanes.lanes.sum())
    if total == 0:
        return []
    if lanes.idle is None or lanes.switched_off is None:
        return _find_lost_lanes(subject, lanes, total)
    findings = []
    idle, off = int(lanes.idle.sum()), int(lanes.switched_off.sum())
    never = _find_worst_block(subject)[1]
    if idle >= (_WORTH_NAMING + never) * total:
        findings.append(_describe_idle(subject, lanes, idle, total))
    if off >= _MANY_OFF * total:
        findings.append(
            Finding(
                text=say(
                    "Predicates switch off {share} of all lanes (branches not taken excluded); an instruction whose predicate is false still issues.",
                    share=percent(off / total),
                ),
                remedy=_GUARD_REMEDY,
            )
        )
    if idle < _WORTH_NAMING * total:
        active = number((total - idle) / total * WARP_THREADS)
        text = say(
            "Warps are full: {active} of {all} threads are active on average.", active=active, all=count(WARP_THREADS)
        )
        findings.append(Finding(text=text, weight=Weight.GOOD))
    return findings


def find_divergent_branches(subject: Subject, lanes: LaneColumns, index: LineIndex) -> list[Finding]:
    """The lines whose branches diverge most; none where branches hardly do."""
    uniform = lanes.uniform_ratio
    if lanes.divergent is None or uniform is None or 1.0 - uniform < _WORTH_NAMING:
        return []
    parted = index.sum_by_line(lanes.divergent)
    executed = index.sum_by_line(np.where(lanes.divergent > 0, lanes.executions, 0))
    cost = subject.share_of(estimate_idle_samples(subject, lanes)) or 0.0
    weight = Weight.HIGH if cost >= _MATTERS else Weight.PLAIN
    return [
        Finding(
            text=say(
                "Branches at {line} diverge in {share} of {executions} ({part} of all divergent branches of the kernel).",
                line=index.name_line(line),
                share=percent(parted[line] / max(executed[line], 1.0)),
                executions=count(executed[line], "execution"),
                part=percent(parted[line] / parted.sum()),
            ),
            weight=weight,
            remedy=_DIVERGENCE_REMEDY,
        )
        for line in rank_lines(parted, _MOST_LINES)
        if parted[line] >= _WORTH_NAMING * parted.sum()
    ]


def build_bars(lanes: LaneColumns) -> tuple[Bar, ...]:
    """Build bars of busy, switched-off and idle lanes, as parts of one whole."""
    total = int(lanes.lanes.sum())
    if total == 0:
        return ()
    if lanes.idle is None or lanes.switched_off is None:
        lost = int(lanes.lost.sum())
        return (Bar(label="busy", ratio=1 - lost / total), Bar(label="not busy", ratio=lost / total))
    idle, off = int(lanes.idle.sum()), int(lanes.switched_off.sum())
    return (
        Bar(label="busy", ratio=(total - idle - off) / total),
        Bar(label="switched off by a predicate", ratio=off / total),
        Bar(label="idle: on another path, exited or never there", ratio=idle / total),
    )


def build_line_table(subject: Subject, lanes: LaneColumns, index: LineIndex) -> Table:
    """The lines that lose most lanes."""
    lost = index.sum_by_line(lanes.lost)
    executed = index.sum_by_line(lanes.executions)
    samples = index.sum_by_line(subject.rows.all_samples.sum(axis=1))
    part, work = (None if one is None else index.sum_by_line(one) for one in (lanes.part, lanes.work))
    rows = tuple(
        (
            index.write_line(line),
            round(executed[line]),
            None if part is None else part[line] / executed[line],
            None if work is None else work[line] / executed[line],
            round(lost[line] / WARP_THREADS),
            round(samples[line]),
        )
        for line in rank_lines(lost, _MOST_ROWS)
    )
    columns = list_columns(
        "line | warp instructions [count] | active threads [number] | of which predicated on [number] | "
        "instructions full warps would save [count] | samples [samples]"
    )
    note = say(
        "Of 32 threads: the active ones execute the instruction, and of these the predicated-on ones pass its predicate."
    )
    return Table(title="Lost lanes, by line", columns=columns, rows=rows, note=note)


def build_branch_table(subject: Subject, lanes: LaneColumns, index: LineIndex) -> tuple[Table, ...]:
    """The branches that diverge most; nothing where that was not counted."""
    if lanes.divergent is None:
        return ()
    rows: list[tuple[Cell, ...]] = []
    for row in np.argsort(-lanes.divergent, kind="stable")[:_MOST_ROWS].tolist():
        parted, executed = int(lanes.divergent[row]), int(lanes.executions[row])
        if parted > 0:
            place = index.write_line(int(index.line_of[row]))
            share = min(parted / executed, 1.0) if executed else None
            rows.append((place, subject.rows.mnemonic(row), executed, parted, share))
    columns = list_columns("line | branch | executions [count] | divergent [count] | share [ratio]")
    return (Table(title="Divergent branches", columns=columns, rows=tuple(rows)),)


def _find_worst_block(subject: Subject) -> tuple[Dim3, float]:
    """The block that fills its last warp least, of all launches, and the share of its lanes without a thread."""
    blocks = [launch.block for launch in subject.runs if launch.block is not None]
    worst = max(blocks, key=measure_partial_warps, default=(WARP_THREADS, 1, 1))
    return worst, measure_partial_warps(worst)


def _describe_idle(subject: Subject, lanes: LaneColumns, idle: int, total: int) -> Finding:
    bound = subject.share_of(estimate_idle_samples(subject, lanes))
    text = say(
        "{active} of {all} threads are active on average. Full warps would save {saved} of {executed} ({share}){bound}.",
        active=number((total - idle) / total * WARP_THREADS),
        all=count(WARP_THREADS),
        saved=count(idle / WARP_THREADS),
        executed=count(total / WARP_THREADS, "warp instruction"),
        share=percent(idle / total),
        bound=NOTHING if bound is None else say(", and at most {bound} of the samples", bound=percent(bound)),
    )
    return _weigh(text, bound)


def _weigh(text: Sentence, bound: float | None) -> Finding:
    """A finding about idle lanes, by the samples that full warps could save."""
    weight = Weight.HIGH if bound is not None and bound >= _MATTERS else Weight.PLAIN
    return Finding(text=text, weight=weight, remedy=_DIVERGENCE_REMEDY, share_ratio=bound)


def _find_lost_lanes(subject: Subject, lanes: LaneColumns, total: int) -> list[Finding]:
    """Describe lost lanes where only one of the two counters of threads was collected."""
    lost = int(lanes.lost.sum())
    bound = subject.share_of(estimate_idle_samples(subject, lanes))
    why = "on another path, exited or predicated off" if lanes.work is not None else "on another path or exited"
    if lost < _WORTH_NAMING * total:
        return [Finding(text=say("Hardly any lane is idle."), weight=Weight.GOOD)]
    text = say(
        "{busy} of {all} threads are busy on average (those of a branch not taken count); the others are {why}.",
        busy=number((total - lost) / total * WARP_THREADS),
        all=count(WARP_THREADS),
        why=why,
    )
    return [_weigh(text, bound)]


_SECTION = "SourceCounters"
_PART_OF_MARKS = MOST_MARKS // 3


def _answer(subject: Subject) -> Answer:
    lanes = read_lanes(subject)
    partial = find_partial_warps(subject)
    if lanes is None:
        return Answer(
            summary=say("Unknown: active threads were not counted."),
            findings=tuple(partial),
            missing=(
                lack(
                    "threads per instruction", "inst_executed", "thread_inst_executed", section=_SECTION, needs_all=True
                ),
            ),
            is_known=bool(partial),
        )
    index = index_lines(subject)
    findings = [*partial, *find_idle_lanes(subject, lanes), *find_divergent_branches(subject, lanes, index)]
    return Answer(
        summary=_summarise(lanes),
        findings=order_findings(findings),
        bars=build_bars(lanes),
        tables=(build_line_table(subject, lanes, index), *build_branch_table(subject, lanes, index)),
        marks=(*_mark_lost(subject, lanes, index), *_mark_branches(subject, lanes, index)),
        missing=_list_missing(lanes),
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


def _mark_lost(subject: Subject, lanes: LaneColumns, index: LineIndex) -> tuple[LineMark, ...]:
    executed = index.sum_by_line(lanes.executions)
    lost = index.sum_by_line(lanes.lost)
    return mark_with_callers(
        subject,
        index,
        lanes.lost / WARP_THREADS,
        measure="warp instructions lost to idle lanes",
        describe=lambda line: say(
            "{busy} of {all} threads are busy on average",
            busy=number(WARP_THREADS - lost[line] / executed[line]),
            all=count(WARP_THREADS),
        ),
        most=_PART_OF_MARKS,
    )


def _mark_branches(subject: Subject, lanes: LaneColumns, index: LineIndex) -> tuple[LineMark, ...]:
    if lanes.divergent is None:
        return ()
    parted = index.sum_by_line(lanes.divergent)
    return mark_lines(
        subject,
        index,
        lanes.divergent,
        measure="divergent branches",
        quantity=Quantity.COUNT,
        describe=lambda line: say("branches diverge in {executions}", executions=count(parted[line], "execution")),
        most=_PART_OF_MARKS,
    )


def _list_missing(lanes: LaneColumns) -> tuple[Missing, ...]:
    return tuple(
        lack(what, name, section=_SECTION)
        for column, what, name in (
            (lanes.part, "idle lanes apart from predicated-off ones", "thread_inst_executed"),
            (lanes.work, "lanes that predicates switch off", "thread_inst_executed_true"),
            (lanes.divergent, "divergent branches by line", "smsp__branch_targets_threads_divergent"),
        )
        if column is None
    )


ANALYSIS = Analysis(name="divergence", title="How full warps are", order=90, answer=_answer)
