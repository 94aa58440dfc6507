"""What the instructions of a kernel do to registers and control flow, and what was counted at them: what is asked when a person points at an operand.

On the rows of a report's instruction columns; kept in memory beside the report and not saved with it: it follows from the code.
"""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gpa_lsp.code.binary.model import ResourceLists


class KernelCode(Struct, frozen=True, kw_only=True, eq=False, weakref=True):
    """The n rows of a kernel's :class:`~gpa_lsp.report.model.InstructionColumns`, with b basic blocks in row order.

    Rows without code (foreign functions, no disassembler) read and write nothing and are in no block. Two objects are equal only when they are
    one, so that what is found out about code can be kept beside it.

    Attributes:
        counters: name in :data:`~gpa_lsp.kernel.place.COUNTERS` → int64[n], summed over launches; -1 where an instruction has no value.
            Counters that were not collected at all are missing.
        mnemonics: distinct opcodes with modifiers.
        mnemonic_index: int32[n] into ``mnemonics``; -1 without code.
        reads: resources read, by row.
        writes: resources written, by row.
        guard: int16[n], resource number of the guard predicate; -1 when unguarded.
        guard_negated: bool[n]; an instruction that is negated and has no guard is never executed (``@!PT``).
        flow: uint8[n] of :class:`~gpa_lsp.code.binary.model.Flow`.
        target_row: int32[n], row of the branch, call or reconvergence target in the same function; -1 when none or elsewhere.
        block_of_row: int32[n]; -1 without code.
        first_row: int32[b].
        last_row: int32[b], inclusive.
        predecessor_starts: int32[b + 1]; the predecessors of block i are ``predecessors[predecessor_starts[i]:predecessor_starts[i + 1]]``.
        predecessors: int32[e].
        successor_starts: int32[b + 1]; the same for ``successors``.
        successors: int32[e].
        loop_of_block: int32[b], index of the innermost loop around each block in ``KernelReport.loops``; -1 outside loops.
        header_of_block: int32[b], first block of the innermost loop around each block (:class:`~gpa_lsp.code.control_flow.model.Loop`); -1 outside
        loops.
        immediate_dominator: int32[b], as in :class:`~gpa_lsp.code.control_flow.model.FlowGraph`; -1 when there is none.
        immediate_post_dominator: int32[b]; -1 when there is none.
        procedure_of_block: int32[b], the p procedures are the functions and the local functions in them.
        procedure_entry: int32[p], first block.
        procedure_is_local: bool[p], called from its own section only.
        is_reachable: bool[b], an entry leads here.
        reaches_end: bool[b], a path leads from here to the end.
        may_end: bool[b], the end can come right after the block.
    """

    counters: Mapping[str, npt.NDArray[np.int64]]
    mnemonics: tuple[str, ...]
    mnemonic_index: npt.NDArray[np.int32]
    reads: ResourceLists
    writes: ResourceLists
    guard: npt.NDArray[np.int16]
    guard_negated: npt.NDArray[np.bool_]
    flow: npt.NDArray[np.uint8]
    target_row: npt.NDArray[np.int32]
    block_of_row: npt.NDArray[np.int32]
    first_row: npt.NDArray[np.int32]
    last_row: npt.NDArray[np.int32]
    predecessor_starts: npt.NDArray[np.int32]
    predecessors: npt.NDArray[np.int32]
    successor_starts: npt.NDArray[np.int32]
    successors: npt.NDArray[np.int32]
    loop_of_block: npt.NDArray[np.int32]
    header_of_block: npt.NDArray[np.int32]
    immediate_dominator: npt.NDArray[np.int32]
    immediate_post_dominator: npt.NDArray[np.int32]
    procedure_of_block: npt.NDArray[np.int32]
    procedure_entry: npt.NDArray[np.int32]
    procedure_is_local: npt.NDArray[np.bool_]
    is_reachable: npt.NDArray[np.bool_]
    reaches_end: npt.NDArray[np.bool_]
    may_end: npt.NDArray[np.bool_]
