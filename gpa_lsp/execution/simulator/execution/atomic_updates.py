"""What atomic operations make of a word: :class:`AtomicUpdate`."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gpa_lsp.execution.simulator.execution.device_memory import FlatMemory, Places
from gpa_lsp.execution.simulator.execution.machine_instruction import MachineInstruction
from gpa_lsp.execution.simulator.execution.operand_values import UnreadOperandError
from gpa_lsp.foundation.records import ColumnRecord

Words = Sequence[npt.NDArray[np.uint32]]

_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "ADD": lambda old, new: old + new,
    "MIN": min,
    "MAX": max,
    "AND": lambda old, new: old & new,
    "OR": lambda old, new: old | new,
    "XOR": lambda old, new: old ^ new,
    "EXCH": lambda old, new: new,
    "INC": lambda old, new: 0 if old >= new else old + 1,
    "DEC": lambda old, new: new if old == 0 or old > new else old - 1,
}


class AtomicUpdate(ColumnRecord, frozen=True, kw_only=True):
    """One kind of atomic operation."""

    dtype: "np.dtype[Any]"  # of the word in memory
    function: Callable[..., Any] | None  # old and given value → new value; None for compare and swap
    counts: bool = False  # it counts lanes and is given nothing (``POPC.INC``)
    tells_success: bool = False  # it gives back whether it swapped, not the old value (``CAST``)

    @property
    def width(self) -> int:
        """Bytes in memory."""
        return int(self.dtype.itemsize)

    def apply(self, memory: FlatMemory, places: Places, given: Sequence[Words]) -> list[npt.NDArray[np.uint32]]:
        """Do it lane after lane, and give the old words back, lower ones first."""
        count = len(places)
        words = max(self.width // 4, 1)
        olds = [np.zeros(count, np.uint32) for _ in range(words)]
        columns = [self._join(one) for one in given]
        for lane in range(count):
            here = places[lane : lane + 1]
            before = [memory.read(here + 4 * word, min(self.width, 4)) for word in range(words)]
            for word in range(words):
                olds[word][lane] = before[word][0]
            old = self._join(before)[0]
            new = self._find_new(old, [column[lane] for column in columns])
            if self.tells_success:
                for word in range(words):
                    olds[word][lane] = word == 0 and old == columns[0][lane]
            raw = np.array([new]).astype(self.dtype).view(np.uint32 if self.width >= 4 else self.dtype)
            for word in range(words):
                memory.write(here + 4 * word, raw[word : word + 1].astype(np.uint32), min(self.width, 4))
        return olds

    def _join(self, words: Words) -> npt.NDArray[Any]:
        if self.width == 8:
            joined = words[0].astype(np.uint64) | words[1].astype(np.uint64) << np.uint64(32)
            return joined.view(self.dtype)
        return words[0].view(self.dtype)

    def _find_new(self, old: Any, given: Sequence[Any]) -> Any:
        if self.function is None:
            return given[1] if old == given[0] else old
        if self.counts:
            return old + self.dtype.type(1)
        return self.function(old, given[0])


def find_update(instruction: MachineInstruction) -> AtomicUpdate:
    """The operation an instruction names.

    Raises:
        UnreadOperandError: one that is not known.
    """
    modifiers = instruction.modifiers
    is_wide = any(one in ("64", "U64", "S64", "F64") for one in modifiers)
    if any(one.startswith(("F16", "BF16", "128", "PACKED")) for one in modifiers):
        raise UnreadOperandError(instruction.text)
    is_float, is_signed = {"F32", "F64"} & {*modifiers}, {"S32", "S64"} & {*modifiers}
    dtype: np.dtype[Any] = np.dtype(f"<{'f' if is_float else 'i' if is_signed else 'u'}{8 if is_wide else 4}")
    if "POPC" in modifiers:
        return AtomicUpdate(dtype=dtype, function=_FUNCTIONS["ADD"], counts=True)
    if any(one in ("CAS", "CAST") for one in modifiers):
        return AtomicUpdate(dtype=dtype, function=None, tells_success="CAST" in modifiers)
    name = next((one for one in modifiers if one in _FUNCTIONS), None)
    if name is None:
        raise UnreadOperandError(instruction.text)
    return AtomicUpdate(dtype=dtype, function=_FUNCTIONS[name])
