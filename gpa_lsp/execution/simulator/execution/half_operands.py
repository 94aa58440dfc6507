"""Operands of instructions on two float16 in a register: :func:`find_half`, :func:`read_literal`."""

from msgspec import Struct

from gpa_lsp.execution.simulator.execution.operand_values import UnreadOperandError

_PARTS = {".H0_H0": (0, 0), ".H1_H1": (1, 1), ".H1_H0": (0, 1), ".H0_NH1": (0, 1), ".H0_H1": (1, 0), "": (0, 1)}


class Half(Struct, frozen=True, kw_only=True):
    """Where one float16 comes from."""

    word: str  # register or constant
    shift: int  # bits below it
    is_absolute: bool  # without its sign
    flips: bool  # the other sign


def find_half(operand: str, half: int) -> Half:
    """The lower (0) or upper (1) half, or the part that stands for it.

    >>> find_half("-R3.H1_H1", 0)
    Half(word='R3', shift=16, is_absolute=False, flips=True)

    Raises:
        UnreadOperandError: it names a part that is not known.
    """
    text, negative = operand.lstrip("-"), operand.startswith("-")
    name, dot, suffix = text.replace("|", "").partition(".")
    part = f".{suffix}" if dot else ""
    if part not in _PARTS:
        raise UnreadOperandError(operand)
    flips = negative != (suffix == "H0_NH1" and half == 1)
    return Half(word=name, shift=16 * _PARTS[part][half], is_absolute="|" in operand, flips=flips)


def read_literal(operand: str) -> float | None:
    """The value of a literal; None for registers and constants."""
    if operand.lstrip("-|~").startswith(("R", "U", "c")):
        return None
    if operand.endswith(("INF", "NAN")):
        return float(operand.replace("QNAN", "nan").replace("SNAN", "nan").replace("INF", "inf"))
    try:
        return float(operand)
    except ValueError:
        raise UnreadOperandError(operand) from None
