"""Instructions written in the notation of :mod:`tests.binary.listing`."""

from gpa_lsp.code.binary.model import NO_BARRIER, ControlCodes, Instructions


def write_listing(instructions: Instructions) -> str:
    """Write instructions in the notation; :func:`~tests.binary.listing.parse_listing` reads it back."""
    rows = [
        f"{format_control_code(instructions.control, index)}  /*{offset:04x}*/  {text}"
        for index, (offset, text) in enumerate(zip(instructions.pc_offsets.tolist(), instructions.texts, strict=True))
    ]
    return "\n".join(rows) + "\n" if rows else ""


def format_control_code(control: ControlCodes, index: int) -> str:
    """The control code of one instruction, e.g. ``B01:R-:W2:Y:S04``."""
    mask = int(control.wait_mask[index])
    waits = "".join(str(barrier) for barrier in range(6) if mask >> barrier & 1) or "-"
    read, write = (_format_barrier(int(column[index])) for column in (control.read_barrier, control.write_barrier))
    may_yield = "Y" if control.yield_flag[index] else "-"
    return f"B{waits}:R{read}:W{write}:{may_yield}:S{int(control.stall_cycles[index]):02d}"


def _format_barrier(barrier: int) -> str:
    return "-" if barrier == NO_BARRIER else str(barrier)
