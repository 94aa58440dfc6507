"""Branches at which the threads of a warp part, so that every side is executed with part of them."""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from gpa_lsp.code.binary.opcodes import Access
from gpa_lsp.diagnosis.advice.blamed_stalls import MOST_HOTSPOTS, find_edges, rank_regions
from gpa_lsp.diagnosis.advice.matches import EliminationMatch, EliminationRegion
from gpa_lsp.diagnosis.advice.model import Hotspot, SilenceStage
from gpa_lsp.diagnosis.advice.naming import locate
from gpa_lsp.diagnosis.advice.optimizers import Found, NotApplicable, Optimizer
from gpa_lsp.diagnosis.advice.sequence_regions import find_line_scope
from gpa_lsp.diagnosis.advice.work_left import count_work_left
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.foundation.prose import NOTHING, Code, Sentence, count, list_of, number, say
from gpa_lsp.foundation.records import ColumnRecord
from gpa_lsp.kernel.dataflow.accesses import GLOBAL_SPACES, WARP_THREADS, count_per_request, mark_accesses
from gpa_lsp.kernel.dataflow.divergent_branches import DivergentBranch, Parting, find_divergent_branches
from gpa_lsp.kernel.dataflow.value_flow import is_decided_by_data

_NOT_LOST = "not_selected"  # A warp in this state was ready and lost no time

_MEMORY_REASONS = ("long_scoreboard", "lg_throttle", "drain")
_SCATTERED = 0.9  # Sectors per thread from which on each thread has one of its own

_REMEDIES = {
    Parting.SIDES: say(
        "Let whole warps take one side: branch on {warp} or the block where the condition is yours, sort or compact the work by it where the "
        "data decides, or compute both short sides and select.",
        warp=Code(text="threadIdx.x / 32"),
    ),
    Parting.TURNS: say(
        "Give the threads of a warp loops of similar length: sort the work by length, share long pieces across the warp, or fetch new work "
        "when a thread is done."
    ),
    Parting.EXIT: say(
        "Exit with whole warps: compact the remaining work, so that no warp continues with a few threads."
    ),
}


def match(subject: Subject) -> Found:
    """Work done by partly filled warps.

    Matched, per branch: the samples of the code it controls (all reasons but ``not_selected``) times the part of its threads that warps lost
    there, 1 − threads in the code / threads that reach the branch: with whole warps on each side, the code would be executed that much less
    often. In blocks of one warp there is none to trade threads with: only branches that data decide count, whose work can be sorted. Left out
    are stalls blamed on atomics and on accesses whose threads have a sector each: that is work per thread, in any warp. Code
    under several divergent branches is shared out among them. Approximations: threads are averages over all warps; work in functions called from
    there is not counted.

    Source: threads per instruction and divergent branches of Nsight Compute's source counters. GPA's own rule needs instrumentation and
    counts ``not_selected`` samples, which are no lost time.
    """
    if (subject.rows.executions < 0).all():
        return NotApplicable(
            SilenceStage.NO_METRICS,
            say("the profile lacks executions; record with {option}", option=Code(text="--set full")),
        )
    divergent = find_divergent_branches(subject.rows)
    average = _describe_average(subject)
    if not divergent:
        return say("no branch diverges{average}", average=average)
    is_alone = subject.launch is not None and subject.launch.warps_per_block == 1
    branches = [
        one
        for one in divergent
        if not is_alone or one.kind is Parting.TURNS or is_decided_by_data(subject.rows, one.row)
    ]
    if not branches:
        return say(
            "a block is one warp, whose threads part by their index: there is no other warp to regroup them with"
        )
    work = _measure_work(subject)
    regions = [region for branch in branches for region in _build_region(subject, work, branch)]
    if not regions:
        found = count(len(branches), "divergent branch")
        return say("no samples in the code of {branches}{average}", branches=found, average=average)
    ranked = rank_regions(regions)
    kinds = {branch.row: branch.kind for branch in branches}
    gone = np.zeros(len(subject.rows))
    for branch in branches:
        gone[branch.rows] = np.maximum(gone[branch.rows], branch.loss)
    gone[_mark_per_thread(subject)] = 0.0
    return EliminationMatch(
        regions=ranked,
        work=count_work_left(subject, executions=gone),
        hint=_REMEDIES[kinds[ranked[0].hotspots[0].def_row]],
        caveats=(
            say("Regrouping threads costs work and can spread their memory accesses."),
            say("Thread counts are averages over all warps; work in called functions is not counted."),
        ),
        reasons=(
            say(
                "samples of the code behind each branch, times the part of its threads that is missing there, without {left} stalled "
                "on scattered accesses and atomics",
                left=count(work.per_thread, "sample"),
            ),
            say("{branches}{average}", branches=count(len(branches), "divergent branch"), average=average),
        ),
    )


class _Work(ColumnRecord, frozen=True):
    """Work that regrouped threads would save, by row and reason."""

    samples: npt.NDArray[np.float64]  # float64[n, k]
    latency_samples: npt.NDArray[np.float64] | None  # float64[n, k]; None when unknown
    per_thread: float  # samples left out in the whole kernel, because each thread costs them by itself


def _measure_work(subject: Subject) -> _Work:
    every, lost = subject.edges, subject.rows.reason_index(_NOT_LOST)
    edges = find_edges(subject, _mark_per_thread(subject), _MEMORY_REASONS)
    places = (every.use_row[edges], every.reason[edges])

    def take(sampled: npt.NDArray[np.int64], blamed: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        left = sampled.astype(np.float64)
        if lost is not None:
            left[:, lost] = 0.0
        np.subtract.at(left, places, blamed[edges])
        return left.clip(min=0.0)

    return _Work(
        samples=take(subject.rows.all_samples, every.all_samples),
        latency_samples=take(subject.known_latency_samples, subject.known_edge_latency_samples)
        if subject.kernel.is_split
        else None,
        per_thread=float(every.all_samples[edges].sum()),
    )


def _mark_per_thread(subject: Subject) -> npt.NDArray[np.bool_]:
    """bool[n]: atomics, and accesses whose threads have a sector each."""
    sectors, threads = count_per_request(subject.rows)
    scattered = mark_accesses(subject.rows, GLOBAL_SPACES, (Access.LOAD, Access.STORE)) & (
        sectors >= _SCATTERED * threads
    )
    return scattered | mark_accesses(subject.rows, GLOBAL_SPACES, (Access.ATOMIC, Access.REDUCTION))


def _build_region(subject: Subject, work: _Work, branch: DivergentBranch) -> Iterable[EliminationRegion]:
    """The region of one branch; nothing where nothing was sampled."""
    by_reason = work.samples[branch.rows]
    samples = by_reason.sum(axis=1) * branch.loss
    latency = None if work.latency_samples is None else work.latency_samples[branch.rows].sum(axis=1) * branch.loss
    if not samples.any():
        return
    largest = [index for index in np.argsort(-samples, kind="stable")[:MOST_HOTSPOTS].tolist() if samples[index] > 0]
    hotspots = tuple(
        Hotspot(
            def_row=branch.row,
            use_row=int(branch.rows[index]),
            reason=subject.kernel.reasons[int(np.argmax(by_reason[index]))],
            category=None,
            samples=float(samples[index]),
            latency_samples=None if latency is None else float(latency[index]),
        )
        for index in largest
    )
    yield EliminationRegion(
        scope=find_line_scope(subject, branch.row),
        samples=float(samples.sum()),
        latency_samples=None if latency is None else float(latency.sum()),
        hotspots=hotspots,
        hint=_describe_branch(subject, branch),
        by_reason=dict(
            zip(
                subject.kernel.reasons, (by_reason * np.asarray(branch.loss)[:, None]).sum(axis=0).tolist(), strict=True
            )
        ),
    )


def _describe_branch(subject: Subject, branch: DivergentBranch) -> Sentence:
    where, threads = locate(subject, branch.row), number(branch.threads)
    if branch.kind is Parting.TURNS:
        mean = float(np.average(branch.threads * (1.0 - branch.loss)))
        template = "Threads leave the loop {where} after different iterations: of {threads} that enter, {mean} are active per iteration."
        return say(template, where=where, threads=threads, mean=number(mean))
    if branch.kind is Parting.EXIT:
        left = number(branch.side_threads[0])
        return say(
            "Some threads exit {where}; the warp continues with {left} of {threads}.",
            where=where,
            left=left,
            threads=threads,
        )
    return say(
        "The branch {where} diverges: of {threads}, {sides} execute the code behind it.",
        where=where,
        threads=number(branch.threads, "thread"),
        sides=list_of(say("{side}", side=number(side)) for side in branch.side_threads),
    )


def _describe_average(subject: Subject) -> Sentence:
    """Threads per instruction over the whole kernel, as a clause; empty when unknown."""
    threads = subject.rows.counter("thread_executions")
    if threads is None:
        ratio = subject.metric("smsp__thread_inst_executed_per_inst_executed.ratio")
    else:
        known = (threads >= 0) & (subject.rows.executions >= 0)
        executed = int(subject.rows.executions[known].sum())
        ratio = int(threads[known].sum()) / executed if executed else None
    if ratio is None:
        return NOTHING
    return say("; {active} of {all} threads active on average", active=number(ratio), all=count(WARP_THREADS))


OPTIMIZER = Optimizer(
    name="branch_divergence",
    title="Reduce branch divergence",
    group="divergence",
    needs_counters=("thread_executions_true",),
    find=match,
)
