"""Warps that wait for each other at barriers, and for their memory accesses at fences."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from gpa_lsp.code.binary.opcodes import Access, Synchronisation
from gpa_lsp.diagnosis.advice.blamed_stalls import (
    MOST_SENTENCES,
    build_regions,
    describe_causes,
    find_edges,
    mark_reasons,
)
from gpa_lsp.diagnosis.advice.loop_work import Tree, find_trees
from gpa_lsp.diagnosis.advice.matches import EliminationMatch, EliminationRegion
from gpa_lsp.diagnosis.advice.model import Hotspot
from gpa_lsp.diagnosis.advice.naming import locate, name_code
from gpa_lsp.diagnosis.advice.optimizers import Found, Optimizer
from gpa_lsp.diagnosis.advice.work_left import count_work_left
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.foundation.distinct import find_distinct
from gpa_lsp.foundation.figures import sum_known
from gpa_lsp.foundation.prose import NOTHING, Code, Sentence, capitalize, count, join, list_of, percent, say
from gpa_lsp.kernel.dataflow.accesses import GLOBAL_SPACES, mark_accesses, read_modifiers
from gpa_lsp.kernel.dataflow.barrier_intervals import WAITING, LateCode, find_late_code
from gpa_lsp.kernel.scopes import Scope

_REASONS = ("barrier", "membar", "warpgroup_arrive")  # A block of one warp never stalls on the first
_SPLIT_CAPABILITY = (8, 0)  # From here on arriving and waiting are separate in hardware (``cuda::barrier``)
_ELEMENTS = 2  # That a thread adds up before the tree: the first step that people take
_STEPS_LEFT = 2  # Of a tree by shuffles: each warp writes what it has, and one or all read that
_SHUFFLES = 5  # With which a warp adds up: log2 of its threads
_LEAST_LEFT = 0.01

_CONFLICTS = 1.25  # Times the least passes of the steps' accesses
_ROUNDED = frozenset({"FADD", "DADD", "HADD2"})

_FENCE_SCOPES = {
    "SYS": say(
        "the whole system: {gpu} suffices unless the host or another GPU reads the data, {block} within a block",
        gpu=Code(text="__threadfence()"),
        block=Code(text="__threadfence_block()"),
    ),
    "GPU": say(
        "the GPU: {block} suffices where only this block reads the data", block=Code(text="__threadfence_block()")
    ),
}


def match(subject: Subject) -> Found:
    """Stalls at block barriers and memory fences.

    Matched: all stalls blamed on them, as published. What the publication leaves open, who comes late, is looked for in the code between
    barriers: parts that only some warps go through take that share of the waiting as its cause, up to what their own samples explain. Of a
    reduction by steps through shared memory half goes, with two elements a thread. Where all threads need its result, its elements are those of
    one block, whose threads cannot take more of them: then shuffles within warps leave two of the steps.
    Approximation: warps that do different amounts of the same work (loops of different length) do not show.

    Source: GPA Table II, Warp Balance ("match warp synchronization stalls").
    """
    is_alone = subject.launch is not None and subject.launch.warps_per_block == 1
    reasons = _REASONS[is_alone:]
    waiting = sum(subject.rows.count_reason(reason) for reason in reasons)
    if waiting == 0:
        where = "a fence, and a block is one warp" if is_alone else "a barrier or fence"
        return say("no warp is stalled at {where}", where=where)
    edges = np.flatnonzero(mark_reasons(subject, reasons))
    rows = find_distinct(subject.edges.def_row[edges]).tolist()
    barriers = [row for row in rows if subject.rows.opcode(row).synchronises is Synchronisation.BLOCK]
    late = find_late_causes(subject, barriers)
    trees = find_trees(subject)
    words = _Words(subject, late, trees)
    gone, shuffles = np.zeros(len(subject.rows)), 0.0
    for tree in trees:
        gone[tree.rows] = 1 - min(1 / _ELEMENTS, _STEPS_LEFT / tree.steps if tree.readers else 1.0)
        shuffles += _SHUFFLES * tree.readers
    in_trees = gone[subject.edges.def_row[edges]] > 0  # of their barriers those of the steps that stay
    others = np.setdiff1d(find_edges(subject, gone > 0), edges)
    plain = build_regions(
        subject,
        np.concatenate([edges, others]),
        np.concatenate(
            [np.where(in_trees, gone[subject.edges.def_row[edges]], 1.0), gone[subject.edges.def_row[others]]]
        ),
        write_hint=words.write_hint,
    )
    if not plain:
        return say("no barrier or fence was found for the {samples} stalled there", samples=count(waiting, "sample"))
    return EliminationMatch(
        regions=tuple(_blame_late_code(region, late) for region in plain),
        work=count_work_left(subject, executions=gone, added={"lsu": shuffles, "alu": shuffles}) if trees else {},
        hint=words.write_remedy(plain[0].hotspots[0].def_row),
        caveats=(
            *([say("Another order of additions rounds differently.")] if _is_rounded(subject, gone) else []),
            say("All barrier stalls are taken as avoidable; a barrier that protects shared data must stay."),
            say("Warps that do different amounts of the same work do not show in these counters."),
        ),
        reasons=(
            say("stalls at barriers and fences, as published"),
            *_list_explained(subject, late),
        ),
    )


def find_late_causes(subject: Subject, barriers: Iterable[int]) -> dict[int, LateCode]:
    """The late code before some barriers, each by what its most sampled instruction waits for most, where that is in the code, too."""
    edges = subject.edges
    is_waiting = np.array([reason == WAITING for reason in subject.rows.reasons], dtype=np.bool_)
    found = find_late_code(subject.rows, barriers)
    for barrier, code in found.items():
        chosen = np.flatnonzero((edges.use_row == code.row) & ~is_waiting[edges.reason])
        cause = int(edges.def_row[chosen[int(np.argmax(edges.all_samples[chosen]))]]) if len(chosen) else code.row
        if cause in code.rows:
            found[barrier] = replace(code, row=cause)
    return found


def _blame_late_code(region: EliminationRegion, late: Mapping[int, LateCode]) -> EliminationRegion:
    """The region with the explained part of each barrier's waiting moved to the code that comes late."""
    waiting: dict[int, float] = {}
    for hotspot in region.hotspots:
        waiting[hotspot.def_row] = waiting.get(hotspot.def_row, 0.0) + hotspot.samples
    shares = {
        row: min(1.0, late[row].explained_samples / samples)
        for row, samples in waiting.items()
        if row in late and samples
    }
    hotspots: list[Hotspot] = []
    moved: dict[int, Hotspot] = {}
    for hotspot in region.hotspots:
        share = shares.get(hotspot.def_row, 0.0)
        if share < 1.0 - _LEAST_LEFT:
            hotspots.append(_scale(hotspot, 1.0 - share))
        else:
            share = 1.0
        if share > 0:
            found, code = moved.get(hotspot.def_row), late[hotspot.def_row]
            part = replace(
                _scale(hotspot, share),
                def_row=code.row,
                use_row=code.barrier_row,
                distance_cycles=None,
                distance_instructions=None,
                note=say("{part} of the warps execute it before the barrier", part=percent(code.warps_ratio)),
            )
            moved[hotspot.def_row] = part if found is None else _add(found, part)
    every = sorted([*moved.values(), *hotspots], key=lambda hotspot: (-hotspot.samples, hotspot.def_row))
    return replace(region, hotspots=tuple(every))


def _scale(hotspot: Hotspot, factor: float) -> Hotspot:
    latency = None if hotspot.latency_samples is None else hotspot.latency_samples * factor
    return replace(hotspot, samples=hotspot.samples * factor, latency_samples=latency)


def _add(one: Hotspot, other: Hotspot) -> Hotspot:
    latency = sum_known([one.latency_samples, other.latency_samples])
    return replace(one, samples=one.samples + other.samples, latency_samples=latency)


def _list_explained(subject: Subject, late: Mapping[int, LateCode]) -> tuple[Sentence, ...]:
    if not late:
        return (say("by execution counts, all warps execute all the code before the barriers"),)
    largest = sorted(late.items(), key=lambda item: -item[1].explained_samples)[:MOST_SENTENCES]
    parts = (
        say(
            "{samples} of {part} of the warps before the barrier {place}",
            samples=count(code.samples, "sample"),
            part=percent(code.warps_ratio),
            place=locate(subject, row),
        )
        for row, code in largest
    )
    return (say("late warps: {parts}", parts=join(parts, "; ")),)


def _describe_steps(subject: Subject, tree: Tree) -> Sentence:
    """List what a reduction or a scan by steps can gain, in the order in which people do it."""
    rows, steps = subject.rows, tree.rows
    passes, ideal = (rows.counter(name) for name in ("shared_wavefronts", "shared_wavefronts_ideal"))
    clauses = []
    if any(rows.mnemonic(row).startswith("F2I") for row in steps.tolist()):
        clauses.append(say("let neighbouring threads do each step (without {remainder})", remainder=Code(text="%")))
    elif passes is not None and ideal is not None and passes[steps].sum() > _CONFLICTS * ideal[steps].sum():
        clauses.append(say("halve the distance from the largest down (no bank conflicts)"))
    executed = subject.executed
    loads = int(executed[mark_accesses(rows, GLOBAL_SPACES, (Access.LOAD,))].sum())
    more = say("more") if executed[0] and loads >= _ELEMENTS * executed[0] else say("several")
    clauses.append(say("add up {more} elements per thread while loading", more=more))
    verb, shuffle = ("scan", "__shfl_up_sync") if tree.is_scan else ("reduce", "__shfl_down_sync")
    clauses.append(say("{verb} within each warp by shuffles ({shuffle})", verb=verb, shuffle=Code(text=shuffle)))
    return say("{clauses}.", clauses=capitalize(list_of(clauses)))


def _is_rounded(subject: Subject, gone: npt.NDArray[np.float64]) -> bool:
    return any(subject.rows.mnemonic(row).split(".")[0] in _ROUNDED for row in np.flatnonzero(gone).tolist())


class _Words:
    """Words about the barriers of a kernel."""

    def __init__(self, subject: Subject, late: Mapping[int, LateCode], trees: Sequence[Tree]) -> None:
        self._subject, self._late, self._trees = subject, late, trees
        self._steps = frozenset(row for one in trees for row in one.rows.tolist())

    def write_hint(self, scope: Scope, hotspots: Sequence[Hotspot]) -> Sentence:
        """The barriers of a region, and what makes warps late."""
        return describe_causes(hotspots, lambda row: self._write_sentence(scope, row))

    def _write_sentence(self, scope: Scope, row: int) -> Sentence:
        subject = self._subject
        where = locate(subject, row)
        if subject.rows.opcode(row).synchronises is Synchronisation.FENCE:
            readers = self._find_fence_scope(row)
            return say(
                "The fence {where} makes all earlier accesses visible to {readers}.", where=where, readers=readers
            )
        if row in self._late:
            code = self._late[row]
            return say(
                "Warps wait at the barrier {where} for the {part} of them that execute the code {busy} first.",
                where=where,
                part=percent(code.warps_ratio),
                busy=locate(subject, code.row),
            )
        if row in self._steps:
            kind = "scan" if self._find_tree(row).is_scan else "reduction"
            return say("The barrier {where} ends a step of a {kind}.", where=where, kind=kind)
        return say("All warps execute the code before the barrier {where}; the slowest one decides.", where=where)

    def write_remedy(self, row: int) -> Sentence:
        """Write the remedy for the barrier with most stalls."""
        subject = self._subject
        if subject.rows.opcode(row).synchronises is Synchronisation.FENCE:
            return say(
                "Use the narrowest fence that suffices, and fewer of them: one after several stores orders them all."
            )
        split = self._advise_split()
        if row in self._late:
            return say("Spread the work that few warps do before the barrier over all of them{split}.", split=split)
        if row in self._steps:
            return _describe_steps(subject, self._find_tree(row))
        return say(
            "Use fewer barriers (shuffles within warps, two buffers instead of one), or smaller blocks, so that fewer warps meet at one{split}.",
            split=split,
        )

    def _find_tree(self, row: int) -> Tree:
        return next(one for one in self._trees if row in one.rows)

    def _advise_split(self) -> Sentence:
        capability = self._subject.kernel.device.compute_capability
        if capability is None or capability < _SPLIT_CAPABILITY:
            return NOTHING
        names = list_of(map(name_code, ("cuda::barrier", "arrive", "wait")))
        return say(", or arrive early and wait late, with independent work between ({names})", names=names)

    def _find_fence_scope(self, row: int) -> Sentence:
        modifiers = read_modifiers(self._subject.rows.mnemonic(row))
        return next((words for scope, words in _FENCE_SCOPES.items() if scope in modifiers), say("others"))


OPTIMIZER = Optimizer(
    name="warp_balance",
    title="Balance warps at barriers",
    group="synchronisation",
    find=match,
)
