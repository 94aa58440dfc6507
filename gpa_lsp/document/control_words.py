"""Scheduling bits of an instruction in words."""

from gpa_lsp.code.binary.model import NO_BARRIER
from gpa_lsp.report.model import InstructionColumns

SCOREBOARDS = 6

_COLUMNS = (
    "stall_cycles",
    "yield_flag",
    "write_barrier",
    "read_barrier",
    "wait_mask",
)  # of instructions, in the order they are shown


def describe_control(
    stall_cycles: int,
    yields: int,
    write_barrier: int,
    read_barrier: int,
    wait_mask: int,
    *,
    least_stall_cycles: int = 0,
) -> str:
    """Scheduling bits in the order in which they act: scoreboards waited for, scoreboards set, stall cycles, yield.

    Scoreboards are named as nvdisasm names them in DEPBAR; ``B0`` would be a convergence barrier.

    >>> describe_control(4, False, 0, 3, 0b000110)
    'waits SB1,SB2 · sets SB0 · read sets SB3 · stall 4'
    """
    words: list[str] = []
    if wait_mask:
        words.append("waits " + ",".join(f"SB{bit}" for bit in range(SCOREBOARDS) if wait_mask >> bit & 1))
    if write_barrier != NO_BARRIER:
        words.append(f"sets SB{write_barrier}")
    if read_barrier != NO_BARRIER:
        words.append(f"read sets SB{read_barrier}")
    if stall_cycles >= least_stall_cycles:
        words.append(f"stall {stall_cycles}")
    if yields:
        words.append("yield")
    return " · ".join(words)


def describe_controls(columns: InstructionColumns, *, least_stall_cycles: int = 0) -> list[str]:
    """The scheduling bits of all instructions in words; empty where they are unknown."""
    rows = list(zip(*(getattr(columns, name).tolist() for name in _COLUMNS), strict=True))
    known = {row: describe_control(*row, least_stall_cycles=least_stall_cycles) for row in set(rows)}
    return [known[row] if has else "" for row, has in zip(rows, columns.has_control.tolist(), strict=True)]


def describe_control_of(columns: InstructionColumns, index: int) -> str:
    """The scheduling bits of one instruction in words; empty when they are unknown."""
    is_known = bool(columns.has_control[index])
    return describe_control(*(int(getattr(columns, name)[index]) for name in _COLUMNS)) if is_known else ""
