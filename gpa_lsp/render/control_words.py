"""An instruction's scheduling bits in words."""

from gpa_lsp.binary.control_code import NO_BARRIER
from gpa_lsp.report.model import InstructionColumns

SCOREBOARDS = 6


def describe_control(stall_cycles: int, yields: bool, write_barrier: int, read_barrier: int, wait_mask: int) -> str:
    """The scheduling bits in words.

    Args:
        stall_cycles: until the warp's next instruction may issue.
        yields: the scheduler may switch to another warp.
        write_barrier: scoreboard released when the result is written; 7 for none.
        read_barrier: scoreboard released when the operands are read; 7 for none.
        wait_mask: scoreboards waited for, one bit each.

    >>> describe_control(4, False, 0, 7, 0b000110)
    'stall 4 · write B0 · waits B1,B2'
    """
    words = [f"stall {stall_cycles}"]
    if yields:
        words.append("yield")
    if write_barrier != NO_BARRIER:
        words.append(f"write B{write_barrier}")
    if read_barrier != NO_BARRIER:
        words.append(f"read B{read_barrier}")
    if wait_mask:
        words.append("waits " + ",".join(f"B{bit}" for bit in range(SCOREBOARDS) if wait_mask >> bit & 1))
    return " · ".join(words)


def describe_controls(columns: InstructionColumns) -> list[str]:
    """The scheduling bits of all instructions in words; empty where they are unknown."""

    rows = list(
        zip(
            columns.stall_cycles.tolist(),
            columns.yield_flag.tolist(),
            columns.write_barrier.tolist(),
            columns.read_barrier.tolist(),
            columns.wait_mask.tolist(),
            strict=True,
        )
    )
    known = {row: describe_control(row[0], bool(row[1]), *row[2:]) for row in set(rows)}
    return [known[row] if has else "" for row, has in zip(rows, columns.has_control.tolist(), strict=True)]
