"""One row of decoded instructions as an object."""

from msgspec import Struct

from gpa_lsp.code.binary.model import NO_BARRIER, Flow, Instructions
from gpa_lsp.code.binary.sass import take_apart

_NO_TARGET = -1


class Instruction(Struct, frozen=True, kw_only=True):
    """One instruction."""

    pc_offset: int  # bytes from the section's start
    guard: str | None  # the guard as written (``@!P0``), or None
    opcode: str  # the bare opcode, e.g. ``LDG``.
    modifiers: tuple[str, ...]  # e.g. ``("E", "64")``.
    operands: tuple[str, ...]  # as written, in order
    text: str  # guard, opcode and operands as one string
    reads: tuple[int, ...]  # resource numbers read, guard and implicit ones included
    writes: tuple[int, ...]  # resource numbers written
    stall_cycles: int  # see :class:`ControlCodes` for it and the other control fields
    yield_flag: bool
    write_barrier: int | None  # None when none is set
    read_barrier: int | None  # None when none is set
    wait_barriers: tuple[int, ...]  # scoreboards waited for, ascending
    reuse: int
    flow: Flow
    # pc offset of the branch, call or reconvergence target in the same section; None when there is none
    target: int | None


def instruction_at(instructions: Instructions, index: int) -> Instruction:
    """One row as an object.

    Raises:
        IndexError: there is no such row.
    """
    text = instructions.texts[index]
    parts = take_apart(text)
    control = instructions.control
    write_barrier, read_barrier = int(control.write_barrier[index]), int(control.read_barrier[index])
    wait_mask = int(control.wait_mask[index])
    target = int(instructions.target[index])
    return Instruction(
        pc_offset=int(instructions.pc_offsets[index]),
        guard=parts.guard or None,
        opcode=parts.opcode,
        modifiers=parts.modifiers,
        operands=parts.operands,
        text=text,
        reads=instructions.reads.of(index),
        writes=instructions.writes.of(index),
        stall_cycles=int(control.stall_cycles[index]),
        yield_flag=bool(control.yield_flag[index]),
        write_barrier=None if write_barrier == NO_BARRIER else write_barrier,
        read_barrier=None if read_barrier == NO_BARRIER else read_barrier,
        wait_barriers=tuple(barrier for barrier in range(6) if wait_mask >> barrier & 1),
        reuse=int(control.reuse[index]),
        flow=Flow(int(instructions.flow[index])),
        target=None if target == _NO_TARGET else target,
    )
