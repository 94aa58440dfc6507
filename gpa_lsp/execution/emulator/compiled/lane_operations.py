"""Functions of the 32 lanes of operands: :data:`OPERATIONS` numbers them, and the core compiles those that kernels ask for.

Each is written as an expression of typed Python (:mod:`gpa_lsp.execution.emulator.semantics`).
"""

import re
import threading
from collections.abc import Iterable

from msgspec import Struct

from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.execution.emulator.compiled.model import MOST_FUNCTIONS
from gpa_lsp.execution.emulator.semantics.model import Meaning

_PLACES = "abc"  # Operands of an operation
_OPERAND = re.compile(r"\b([a-ekxyz])(?=\()")  # As expressions read them


class LaneFunction(Struct, frozen=True):
    """The computation of one operation, as typed Python."""

    bits: int  # of the result; 0: it writes registers itself
    value: str  # of the result: a, b and c are its operands
    other: str = ""  # of its other result, a predicate
    exchanges: bool = False  # lanes read those of others


class LaneStep(Struct, frozen=True):
    """One operation of an instruction: what it computes, and from what to what.

    Sources are called a to e, what is kept between steps x, y and z, the carry flag k, results r0 and so on.
    """

    function: LaneFunction
    operands: tuple[str, ...]  # at most three
    result: str
    other_result: str = ""


def find_operands(texts: Iterable[str]) -> list[str]:
    """Operands that expressions read, in alphabetical order."""
    return sorted({one for text in texts for one in _OPERAND.findall(text)})


def list_steps(meaning: Meaning) -> list[LaneStep]:
    """The operations of an instruction, in order.

    Raises:
        ValueError: one needs more than three operands.
    """
    parts = [(name, "", bits, text, "") for name, bits, text in meaning.steps]
    sizes = [8 * kind.natural_dtype.itemsize for kind in meaning.results]
    if meaning.carry:
        parts.append(("r0", "k", sizes[0], meaning.values[0], meaning.carry))
    elif meaning.results[1:] == (ScalarType.PRED,):
        parts.append(("r0", "r1", sizes[0], meaning.values[0], meaning.values[1]))
    else:
        parts += [
            (f"r{place}", "", size, text, "")
            for place, (size, text) in enumerate(zip(sizes, meaning.values, strict=True))
        ]
    found = []
    for result, other_result, bits, *texts in parts:
        operands = find_operands(texts)
        if len(operands) > len(_PLACES):
            raise ValueError(f"{texts} read more than three operands")
        value, other = (_OPERAND.sub(lambda match: _PLACES[operands.index(match[1])], text) for text in texts)  # noqa: B023
        function = LaneFunction(bits, value, other, meaning.exchanges)
        found.append(LaneStep(function, tuple(operands), result, other_result))
    return found


class LaneOperations:
    """All functions that this process knows, by number."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._numbers: dict[LaneFunction, int] = {}
        self._functions: list[LaneFunction] = []

    def number(self, function: LaneFunction) -> int:
        """The number of a function; MOST_FUNCTIONS where there are too many."""
        with self._lock:
            found = self._numbers.get(function)
            if found is None and len(self._functions) < MOST_FUNCTIONS:
                found = self._numbers[function] = len(self._functions)
                self._functions.append(function)
            return MOST_FUNCTIONS if found is None else found

    def find(self, number: int) -> LaneFunction | None:
        """The function of a number; None for operations that are none of lanes."""
        return self._functions[number] if number < MOST_FUNCTIONS else None


OPERATIONS = LaneOperations()
_EXCHANGED = ", machine, literal, mask, standing, written, frame"
_TYPED = ", machine: CoreMachine, literal: s64, mask: u32, standing: u32, written: u32, frame: Pointer[u8]"


def write_expressions(functions: dict[str, LaneFunction]) -> str:
    """Typed Python of functions by name; the other result is computed by a second function with the suffix ``_other``."""
    lines = []
    for name, one in functions.items():
        given = _EXCHANGED if one.exchanges else ""
        lines.append(f"def {name}(a, b, c{given}):\n    return {one.value}\n")
        if one.other:
            lines.append(f"def {name}_other(a, b, c{given}):\n    return {one.other}\n")
    return "\n".join(lines)


def write_operations(functions: dict[str, LaneFunction]) -> str:
    """Typed Python of ``lane_NAME`` functions, which read operands from memory and write results there; those that exchange take more arguments."""
    lines = [write_expressions(functions)]
    for name, one in functions.items():
        places = ", ".join(f"{place}: Pointer[u8]" for place in ("out", "other", "a", "b", "c"))
        given, typed = (_EXCHANGED, _TYPED) if one.exchanges else ("", "")
        lines.append(f"def lane_{name}({places}{typed}) -> s64:")
        if one.bits == 0:
            lines.append(f"    {name}(a, b, c{given})")
        else:
            lines.append(f"    found = as_bits({name}(a, b, c{given}))")
            if one.other:
                lines.append(f"    put(other, {name}_other(a, b, c{given}))")
            lines.append(f"    put(view(out, u{one.bits}), found)")
        lines.append("    return 0\n")
    return "\n".join(lines)
