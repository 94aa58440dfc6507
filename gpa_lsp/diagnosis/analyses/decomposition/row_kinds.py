"""The kinds of a kernel's instructions, row by row."""

import numpy as np
import numpy.typing as npt

from gpa_lsp.diagnosis.analyses.facts import KernelFacts
from gpa_lsp.kernel.dataflow.instruction_kinds import KINDS, InstructionKind, find_kind

_UNKNOWN = KINDS.index(InstructionKind.UNKNOWN)


def list_kinds(facts: KernelFacts) -> npt.NDArray[np.int16]:
    """The kind of every row.

    Returns:
        int16[n] into :data:`KINDS`; rows without a disassembly are ``UNKNOWN``.
    """
    return facts.rows.spread_by_mnemonic(lambda name: KINDS.index(find_kind(name)), _UNKNOWN).astype(np.int16)


def select_kinds(kinds: npt.NDArray[np.int16], wanted: frozenset[InstructionKind]) -> npt.NDArray[np.bool_]:
    """bool[n]: rows of one of the kinds.

    >>> select_kinds(np.array([0, 1], dtype=np.int16), frozenset({InstructionKind.LOCAL_LOAD})).tolist()
    [False, True]
    """
    is_wanted = np.array([kind in wanted for kind in KINDS], dtype=bool)
    return is_wanted[kinds]
