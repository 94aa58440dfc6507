"""Block barriers that nothing needs, or that a second buffer makes unnecessary."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from enum import Enum

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from gpa_lsp.code.binary.model import Flow
from gpa_lsp.code.binary.opcodes import Access, MemorySpace, Opcode, Synchronisation
from gpa_lsp.diagnosis.advice.blamed_stalls import build_regions, describe_causes, find_edges, mark_reasons
from gpa_lsp.diagnosis.advice.loop_work import mark_block_barriers
from gpa_lsp.diagnosis.advice.matches import EliminationMatch
from gpa_lsp.diagnosis.advice.model import Hotspot
from gpa_lsp.diagnosis.advice.naming import locate
from gpa_lsp.diagnosis.advice.optimizers import Found, Optimizer
from gpa_lsp.diagnosis.advice.residency import describe_block
from gpa_lsp.diagnosis.advice.work_left import Parts, count_work_left
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.foundation.prose import Code, Sentence, count, say
from gpa_lsp.foundation.records import ColumnRecord
from gpa_lsp.gpu.arch.occupancy import find_occupancy
from gpa_lsp.kernel.dataflow.accesses import GLOBAL_SPACES, MOVES, mark_accesses
from gpa_lsp.kernel.dataflow.barrier_intervals import WAITING
from gpa_lsp.kernel.model import KernelRows

_WRITES = (Access.STORE, Access.ATOMIC, Access.REDUCTION, Access.COPY)
_MOST_WALKED = 4_000  # Instructions on one side of a barrier; with more it is left alone


class Why(Enum):
    """Reason why a barrier is unnecessary."""

    ONE_WARP = "the block is one warp"
    NOTHING_SHARED = "no value crosses it"
    SECOND_BUFFER = "with a second buffer"


class _Barrier(Struct, frozen=True, kw_only=True):
    """A barrier that can go."""

    row: int  # its kernel row
    why: Why
    gone_ratio: float  # part of its waiting that goes


def match(subject: Subject) -> Found:
    """Barriers a kernel can do without.

    Matched: barriers of a block of one warp; barriers between whose two sides, up to the next barriers, no data passes, since neither side writes
    what the other one accesses (as far as memory spaces tell: shared or global); and in loops with another barrier those that keep the next tile from
    overwriting what is still read, where a second buffer fits beside the first without fewer resident blocks.
    A late warp that no longer waits here is late at the next barrier: delays of independent pieces of work add as their squares, so of waits w1 and
    w2 there stays the root of w1² + w2². Behind the last barrier nothing stays.

    Source: Starlight, Table 1 ("Remove Sync"), which gives no rule.
    """
    every = np.flatnonzero(mark_block_barriers(subject.rows))
    barriers = [row for row in every.tolist() if _is_plain(subject.rows.mnemonic(row))]
    if len(barriers) < len(every):
        return say("some barriers are of parts of a block, of clusters, or pass values")
    if not barriers:
        return say("the kernel has no barrier of whole blocks")
    waits = _count_waits(subject)
    if not waits[barriers].any():
        return say("no warp is stalled at a barrier")
    found = {one.row: one for one in _find_unneeded(subject, barriers, waits)}
    if not found:
        return say("each of {count} separates writes from accesses", count=count(len(barriers), "block barrier"))
    marks = subject.rows.mark(found)
    edges = find_edges(subject, marks, (WAITING,))
    gone = np.zeros(len(subject.rows))
    for one in found.values():
        gone[one.row] = one.gone_ratio
    regions = build_regions(
        subject,
        edges,
        gone[subject.edges.def_row[edges]],
        write_hint=lambda _scope, spots: _name(subject, spots, found),
    )
    if not regions:
        return say("who is late at a barrier that can go is late at the next one")
    why = found[regions[0].hotspots[0].def_row].why
    executions = marks.astype(np.float64)
    return EliminationMatch(
        regions=regions,
        work=count_work_left(subject, executions=executions),
        hint=_REMEDIES[why],
        caveats=(_CAVEATS[why],),
        reasons=(
            say("{barriers} of {all} can go", barriers=count(len(found)), all=count(len(barriers), "block barrier")),
            say("who is late here is late at the next barrier: waits add as their squares"),
        ),
    )


def _count_waits(subject: Subject) -> Parts:
    """float64[n]: samples of waiting that each barrier is blamed for."""
    edges = np.flatnonzero(mark_reasons(subject, (WAITING,)))
    samples = subject.edges.all_samples[edges]
    return np.bincount(subject.edges.def_row[edges], weights=samples, minlength=len(subject.rows)).astype(np.float64)


def _find_unneeded(subject: Subject, barriers: list[int], waits: Parts) -> Iterator[_Barrier]:
    """The barriers to remove, those with most waiting first: once one is gone, its neighbours have more to keep apart."""
    launch = subject.launch
    if launch is not None and launch.warps_per_block == 1:
        yield from (_Barrier(row=row, why=Why.ONE_WARP, gone_ratio=1.0) for row in barriers)
        return
    has_room = _fits_twice(subject)
    hidden = subject.rows.mark_by_opcode(_may_hide)
    left, delays = set(barriers), waits.copy()
    for row in sorted((one for one in barriers if waits[one]), key=lambda one: (-waits[one], one)):
        sides = _find_sides(subject.rows, row, left)
        if sides is None or hidden[sides.before].any() or hidden[sides.after].any():
            continue
        why = Why.SECOND_BUFFER if has_room and _protects_reads(subject, row, sides) else None
        why = why if _passes_data(subject, sides) else Why.NOTHING_SHARED
        if why is None:
            continue
        left.remove(row)
        others = [one for one in sides.following if one != row]
        now, then = float(delays[row]), float(delays[others].sum())
        stays = float(np.hypot(now, then)) if others else 0.0
        if then:
            delays[others] *= stays / then
        gone = min(now, now + then - stays)
        yield _Barrier(row=row, why=why, gone_ratio=min(1.0, gone / waits[row]))


class _Sides(ColumnRecord, frozen=True, kw_only=True):
    """The code on both sides of a block barrier, up to the next barriers, on every path."""

    before: npt.NDArray[np.int64]  # int64[m], kernel rows
    after: npt.NDArray[np.int64]  # int64[k], kernel rows
    # kernel rows of the barriers behind it, itself included where a loop leads back to it first
    following: tuple[int, ...]


def _find_sides(kernel: KernelRows, row: int, barriers: Collection[int]) -> _Sides | None:
    """The sides of a block barrier; None in a function without control flow, or with very much of it.

    Args:
        row: its kernel row.
        barriers: kernel rows of the barriers that count, its own among them.
    """
    number = int(kernel.function_index[row])
    graph, first = kernel.functions[number].graph, int(kernel.first_rows[number])
    if graph is None:
        return None
    inside = kernel.mark(barriers)[first : first + len(kernel.functions[number].pc_offsets)]
    before = _walk(graph.previous_instructions, row - first, inside)
    after = _walk(graph.next_instructions, row - first, inside)
    if before is None or after is None:
        return None
    return _Sides(
        before=first + np.array(sorted(before[0]), dtype=np.int64),
        after=first + np.array(sorted(after[0]), dtype=np.int64),
        following=tuple(first + one for one in sorted(after[1])),
    )


def _walk(
    step: Callable[[int], tuple[int, ...]], start: int, barriers: npt.NDArray[np.bool_]
) -> tuple[set[int], set[int]] | None:
    """Instructions that steps from one lead to without passing a barrier, and the barriers they end at; None after too many."""
    inside: set[int] = set()
    ends: set[int] = set()
    frontier = list(step(start))
    while frontier:
        row = frontier.pop()
        if barriers[row]:
            ends.add(row)
        elif row not in inside:
            inside.add(row)
            if len(inside) > _MOST_WALKED:
                return None
            frontier.extend(step(row))
    return inside, ends


def _is_plain(mnemonic: str) -> bool:
    """All threads of the block wait, and nothing else happens."""
    return mnemonic.startswith("BAR.SYNC")


def _passes_data(subject: Subject, sides: _Sides) -> bool:
    """Whether one side writes to a space that the other one accesses."""
    for spaces in ((MemorySpace.SHARED, MemorySpace.GENERIC), GLOBAL_SPACES):
        writes, accesses = (mark_accesses(subject.rows, spaces, kinds) for kinds in (_WRITES, MOVES))
        if writes[sides.before].any() and accesses[sides.after].any():
            return True
        if accesses[sides.before].any() and writes[sides.after].any():
            return True
    return False


_HIDING = (Synchronisation.FENCE, Synchronisation.WARPGROUP)  # What they order is not seen in the instructions around


def _may_hide(opcode: Opcode) -> bool:
    """Data may pass that is not seen: through calls, fences, matrix units that read shared memory, and memories of other kinds."""
    is_elsewhere = opcode.memory in (MemorySpace.TENSOR, MemorySpace.SURFACE)
    is_call = opcode.flow in (Flow.CALL, Flow.INDIRECT_CALL)
    return not opcode.is_known or is_elsewhere or is_call or opcode.synchronises in _HIDING


def _protects_reads(subject: Subject, row: int, sides: _Sides) -> bool:
    """Reads of shared memory before it, writes behind it, in a loop with another barrier: the tile that is still in use."""
    loop = subject.scopes.loop_of(row)
    others = [one for one in sides.following if one != row and subject.scopes.loop_of(one) == loop]
    if loop < 0 or not others:
        return False
    shared = (MemorySpace.SHARED,)
    loads = mark_accesses(subject.rows, shared, (Access.LOAD,))
    writes = mark_accesses(subject.rows, shared, _WRITES)
    written = mark_accesses(subject.rows, GLOBAL_SPACES, (Access.STORE, Access.ATOMIC, Access.REDUCTION))
    before, after = (np.intersect1d(side, subject.scopes.rows_of(loop)) for side in (sides.before, sides.after))
    is_tile = loads[before].any() and not writes[before].any() and writes[after].any() and not loads[after].any()
    return bool(is_tile) and not written[before].any() and not written[after].any()


def _fits_twice(subject: Subject) -> bool:
    """Whether twice the shared memory leaves as many blocks on an SM."""
    block, architecture = describe_block(subject), subject.kernel.architecture
    if block is None or architecture is None or not block.shared_bytes:
        return False
    twice = replace(block, shared_bytes=2 * block.shared_bytes)
    return find_occupancy(architecture, twice).blocks_per_sm >= find_occupancy(architecture, block).blocks_per_sm


def _name(subject: Subject, hotspots: Sequence[Hotspot], found: Mapping[int, _Barrier]) -> Sentence:
    return describe_causes(
        hotspots,
        lambda row: say("The barrier {where} can go: {why}.", where=locate(subject, row), why=found[row].why.value),
    )


_REMEDIES = {
    Why.ONE_WARP: say("Replace the block barriers by {call}: the block is one warp.", call=Code(text="__syncwarp()")),
    Why.NOTHING_SHARED: say(
        "Remove the barrier: up to the next barriers, neither side of it writes what the other one reads or writes."
    ),
    Why.SECOND_BUFFER: say(
        "Keep two tiles in shared memory and fill one while the other one is read: one barrier per iteration is enough, and the one after the last "
        "read can go."
    ),
}
_CAVEATS = {
    Why.ONE_WARP: say("Larger blocks need the barriers again."),
    Why.NOTHING_SHARED: say(
        "Whether threads exchange data through memory that both sides only seem to read, only you know."
    ),
    Why.SECOND_BUFFER: say("It needs twice the shared memory; as many blocks stay resident with it."),
}

OPTIMIZER = Optimizer(
    name="barrier_removal",
    title="Remove block barriers",
    group="synchronisation",
    find=match,
)
