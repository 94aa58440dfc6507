"""Basic blocks and the edges between them, from what each instruction does to control flow."""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gpa_lsp.code.binary.model import INSTRUCTION_BYTES, Flow, Function, Instructions, ResourceKind
from gpa_lsp.code.control_flow.model import Blocks, EdgeKind
from gpa_lsp.foundation.distinct import find_distinct
from gpa_lsp.foundation.records import ColumnRecord

# BRA.CONV and BRA.DIV jump or not depending on which threads are together; they need no guard to fall through
_DIVERGENCE_MODIFIERS = ("CONV", "DIV")


class ProcedureStart(Struct, frozen=True, kw_only=True):
    """Where a routine of a section starts: its mangled name and the index of its first instruction."""

    name: str
    instruction: int


class InstructionFlow(ColumnRecord, frozen=True, kw_only=True):
    """Where control goes after each of n instructions, before there are blocks."""

    # uint8[n] of :class:`~gpa_lsp.code.binary.model.Flow`; NONE for instructions whose guard never holds
    flow: npt.NDArray[np.uint8]
    falls_through: npt.NDArray[np.bool_]  # bool[n], the next address can follow
    may_end: npt.NDArray[np.bool_]  # bool[n], the instruction can leave the section other than by a call
    jump_source: npt.NDArray[np.int32]  # int32[j], instructions that jump, one entry per target
    jump_target: npt.NDArray[np.int32]  # int32[j], index of the instruction jumped to
    jump_kind: npt.NDArray[np.uint8]  # uint8[j] of :class:`~gpa_lsp.code.control_flow.model.EdgeKind`
    reconvergence_targets: npt.NDArray[np.int32]  # int32[r], indexes of the instructions BSSYs name
    unknown_targets: npt.NDArray[np.int32]  # int32[u], instructions that jump to an unknown place
    # int32[x], instructions among the others that name a target which is no instruction of the section
    bad_targets: npt.NDArray[np.int32]


def find_procedure_starts(function: Function, instruction_count: int) -> tuple[ProcedureStart, ...]:
    """The routines of a section by address: its own at its start, then its sub-functions.

    Of several names for one address the first stays; starts that are no instruction of the section are left out.
    """
    names = {0: function.name} if instruction_count > 0 else {}
    for sub in function.sub_functions:
        index, rest = divmod(sub.start_offset, INSTRUCTION_BYTES)
        if rest == 0 and 0 <= index < instruction_count:
            names.setdefault(index, sub.name)
    return tuple(ProcedureStart(name=names[index], instruction=index) for index in sorted(names))


def find_flow(function: Function, instructions: Instructions, starts: Iterable[ProcedureStart]) -> InstructionFlow:
    """Where control can go after each instruction.

    * A guarded instruction can also do nothing and fall through; so can a branch with a predicate operand, BRA.CONV and BRA.DIV.
    * Calls fall through; their callees are no jump targets. One exception: ptxas writes a conditional branch that is too far as a CALL to a
      label inside the routine, whose return address nobody has set. A call to an address where no routine starts is therefore a jump that
      can fall through.
    * BSSY, BSYNC, BREAK, WARPSYNC and YIELD fall through: the instruction after a BSYNC is the one its BSSY names.
    * BPT.TRAP falls through.

    Source: nvdisasm's basic-block graphs of code for sm_75 to sm_120 agree step by step.
    """
    count = len(instructions)
    never = (instructions.guard < 0) & instructions.guard_negated
    flow = np.where(never, np.uint8(Flow.NONE), instructions.flow)
    index, is_target = _index_targets(instructions.target, count)
    is_start = np.zeros(count + 1, dtype=np.bool_)
    is_start[[start.instruction for start in starts]] = True
    branches = flow == Flow.BRANCH
    long_jumps = (flow == Flow.CALL) & ~is_start[index]
    direct = np.flatnonzero((branches | long_jumps) & is_target)
    indirect, landing, unknown, unlisted = _find_indirect_jumps(
        function, instructions, np.flatnonzero(flow == Flow.INDIRECT_BRANCH)
    )
    leaving = branches & ~is_target
    lost = np.flatnonzero(leaving & ~np.isin(instructions.pc_offsets, list(function.call_symbols)))
    falls_through = _find_falling(instructions, flow)
    may_end = leaving | np.isin(flow, (Flow.RETURN, Flow.EXIT))
    may_end[unknown] = True
    may_end[-1:] |= falls_through[-1:]
    bad = np.flatnonzero((instructions.target >= 0) & ~is_target & (flow != Flow.NONE))
    return InstructionFlow(
        flow=flow,
        falls_through=falls_through,
        may_end=may_end,
        jump_source=np.concatenate([direct, indirect]).astype(np.int32),
        jump_target=np.concatenate([index[direct], landing]).astype(np.int32),
        jump_kind=np.repeat(np.array([EdgeKind.BRANCH, EdgeKind.INDIRECT], np.uint8), (len(direct), len(indirect))),
        reconvergence_targets=index[(flow == Flow.BARRIER_SET) & is_target].astype(np.int32),
        unknown_targets=np.sort(np.concatenate([lost, unknown])).astype(np.int32),
        bad_targets=find_distinct(np.concatenate([bad, unlisted])).astype(np.int32),
    )


def find_blocks(flow: InstructionFlow, starts: Iterable[ProcedureStart]) -> Blocks:
    """Cut the instructions into blocks and connect them.

    A block starts where a routine starts, at every jump target, at every reconvergence point, and after every instruction that can go
    elsewhere than to the next address or calls.
    """
    count = len(flow.flow)
    is_first = np.zeros(count + 1, dtype=np.bool_)
    is_first[[start.instruction for start in starts]] = True
    is_first[flow.jump_target] = True
    is_first[flow.reconvergence_targets] = True
    is_first[1:] |= ~np.isin(flow.flow, (Flow.NONE, Flow.BARRIER_SET, Flow.BARRIER_WAIT))
    first = np.flatnonzero(is_first[:count]).astype(np.int32)
    last = np.append(first[1:], count).astype(np.int32)[: len(first)] - np.int32(1)
    block_of = (np.cumsum(is_first[:count]) - 1).astype(np.int32)

    falling = last[flow.falls_through[last] & (last + 1 < count)]
    kinds = np.zeros(len(Flow), dtype=np.uint8)
    kinds[[Flow.CALL, Flow.INDIRECT_CALL]] = EdgeKind.CALL_RETURN
    kinds[Flow.TRAP] = EdgeKind.TRAP_RETURN
    source, target, kind = _sort_edges(
        block_of[np.concatenate([falling, flow.jump_source])],
        block_of[np.concatenate([falling + 1, flow.jump_target])],
        np.concatenate([kinds[flow.flow[falling]], flow.jump_kind]),
    )
    bounds = np.arange(len(first) + 1)
    into = np.lexsort((source, target))
    return Blocks(
        first_instruction=first,
        last_instruction=last,
        block_of_instruction=block_of,
        edge_source=source,
        edge_target=target,
        edge_kind=kind,
        successor_starts=np.searchsorted(source, bounds).astype(np.int32),
        predecessor_starts=np.searchsorted(target[into], bounds).astype(np.int32),
        predecessor_edges=into.astype(np.int32),
    )


def _sort_edges(
    source: npt.NDArray[np.int32], target: npt.NDArray[np.int32], kind: npt.NDArray[np.uint8]
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], npt.NDArray[np.uint8]]:
    """The edges by source, then target; of several between two blocks the one with the smallest kind."""
    order = np.lexsort((kind, target, source))
    source, target, kind = source[order], target[order], kind[order]
    is_new = np.ones(len(source), dtype=np.bool_)
    is_new[1:] = (source[1:] != source[:-1]) | (target[1:] != target[:-1])
    return source[is_new], target[is_new], kind[is_new]


def _index_targets(targets: npt.NDArray[np.int64], count: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Instruction index of each pc offset (``count`` where it is none), and whether it is an instruction of the section."""
    inside = (targets >= 0) & (targets < count * INSTRUCTION_BYTES) & (targets % INSTRUCTION_BYTES == 0)
    return np.where(inside, targets // INSTRUCTION_BYTES, count), inside


def _find_falling(instructions: Instructions, flow: npt.NDArray[np.uint8]) -> npt.NDArray[np.bool_]:
    """Which instructions the next address can follow. bool[n]."""
    stays = ~np.isin(flow, (Flow.BRANCH, Flow.INDIRECT_BRANCH, Flow.RETURN, Flow.EXIT))
    kind = instructions.reads.numbers >> 8
    is_predicate = (kind == ResourceKind.PREDICATE) | (kind == ResourceKind.UNIFORM_PREDICATE)
    before = np.concatenate([[0], np.cumsum(is_predicate)])
    reads_predicate = np.diff(before[instructions.reads.starts]) > 0
    depends_on_divergence = np.array(
        [any(part in _DIVERGENCE_MODIFIERS for part in name.split(".")) for name in instructions.mnemonics],
        dtype=np.bool_,
    )[instructions.mnemonic_index]
    depends_on_divergence &= flow == Flow.BRANCH
    is_guarded = instructions.guard >= 0
    falls_through: npt.NDArray[np.bool_] = stays | is_guarded | reads_predicate | depends_on_divergence
    return falls_through


def _find_indirect_jumps(
    function: Function, instructions: Instructions, branches: npt.NDArray[np.intp]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Jumps through registers: branch and target of each, branches without any target in the section, and with one that is no instruction of it."""
    sources = [np.empty(0, np.int64)]
    targets = [np.empty(0, np.int64)]
    unknown, bad = [], []
    for branch in branches.tolist():
        listed = function.indirect_branch_targets.get(int(instructions.pc_offsets[branch]), ())
        index, inside = _index_targets(find_distinct(np.array(listed, dtype=np.int64)), len(instructions))
        if not inside.all():
            bad.append(branch)
        if not inside.any():
            unknown.append(branch)
        targets.append(index[inside])
        sources.append(np.full(len(targets[-1]), branch, dtype=np.int64))
    return np.concatenate(sources), np.concatenate(targets), np.array(unknown, np.int64), np.array(bad, np.int64)
