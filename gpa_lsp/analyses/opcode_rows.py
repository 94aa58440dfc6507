"""What is known of each opcode, spread over the instructions of a kernel as a column."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from gpa_lsp.analyses.facts import KernelFacts
from gpa_lsp.binary.opcodes import Opcode


def spread_by_mnemonic(facts: KernelFacts, number_of: Callable[[str], int], unknown: int = -1) -> npt.NDArray[np.int64]:
    """int64[n]: a number of each instruction's opcode with modifiers; ``unknown`` where nothing is disassembled.

    Args:
        facts: the kernel.
        number_of: asked once per distinct mnemonic and function.
        unknown: for functions without a disassembly.
    """
    column = np.full(int(facts.first_rows[-1]), unknown, dtype=np.int64)
    for function, first in facts.list_disassembled():
        if function.instructions is None:
            continue
        numbers = np.array([number_of(name) for name in function.instructions.mnemonics], dtype=np.int64)
        if len(numbers):
            column[first : first + len(function.pc_offsets)] = numbers[function.instructions.mnemonic_index]
    return column


def mark_by_opcode(facts: KernelFacts, is_wanted: Callable[[Opcode], bool]) -> npt.NDArray[np.bool_]:
    """bool[n]: instructions whose opcode is wanted; none where nothing is disassembled."""
    return spread_by_mnemonic(facts, lambda name: int(is_wanted(facts.opcodes[name])), unknown=0).astype(np.bool_)


def read_counter(facts: KernelFacts, name: str) -> npt.NDArray[np.int64] | None:
    """int64[n] of a per-instruction counter, 0 where an instruction has none; None when it was not collected."""
    column = facts.counter(name)
    return None if column is None else np.maximum(column, 0)


def read_executions(facts: KernelFacts) -> npt.NDArray[np.int64] | None:
    """int64[n], warp-level executions, 0 where an instruction has none; None when they were not collected at all."""
    executions = facts.executions
    return np.maximum(executions, 0) if bool((executions >= 0).any()) else None
