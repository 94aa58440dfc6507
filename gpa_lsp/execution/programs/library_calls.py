"""Operands of library calls that numpy computes, as checked views of device memory: :class:`LibraryCall`."""

from collections.abc import Callable, Iterator
from enum import Enum, auto
from typing import Any

import numpy as np
import numpy.typing as npt

from gpa_lsp.execution.emulator.engine.arena import ARENA_BASE
from gpa_lsp.execution.emulator.resident import ResidentMemory
from gpa_lsp.execution.programs.messages import Argument, ComputeRequest, MalformedMessage

PIECE = 1 << 22  # elements at once: temporary copies stay small, and time is looked at in between
_INTS, _WORDS = 1 << 31, 1 << 64


class Refusal(Enum):
    """Reason why a function was not computed."""

    INVALID_VALUE = auto()
    UNREACHABLE = auto()  # an operand is not memory of the device, or too little of it
    NOT_SUPPORTED = auto()
    NO_MEMORY = auto()


class RefusedCall(Exception):  # noqa: N818  (it is no error of ours)
    """A function that is not computed; its caller gets a status."""

    def __init__(self, why: Refusal) -> None:
        super().__init__(why)
        self.why = why


class TimeIsOver(Exception):  # noqa: N818
    """The run's time was over before a call was done."""


class LibraryCall:
    """One call.

    Args:
        request: it, as the program sent it: nothing of it is trusted.
        memory: of the device.
        on_access: told each address that is about to be accessed.
        is_over: whether the run's time is over.

    Attributes:
        answer: bytes of the result that the host waits for.
    """

    def __init__(
        self,
        request: ComputeRequest,
        memory: ResidentMemory,
        *,
        on_access: Callable[[int], None],
        is_over: Callable[[], bool],
    ) -> None:
        self.function = request.function
        self.answer = b""
        self._memory = memory
        self._on_access = on_access
        self._is_over = is_over

    @staticmethod
    def take_number(one: Argument) -> int:
        """An argument that is an ``int`` of C.

        Raises:
            MalformedMessage: it is none.
        """
        if not -_INTS <= one.word < _INTS:
            raise MalformedMessage(f"{one.word} is no int")
        return one.word

    def need(self, condition: bool) -> None:
        """Refuse the call unless a condition of the documentation holds."""
        if not condition:
            raise RefusedCall(Refusal.INVALID_VALUE)

    def check_time(self) -> None:
        """Raise :class:`TimeIsOver` once the run's time is over."""
        if self._is_over():
            raise TimeIsOver

    def split(self, count: int, piece: int = PIECE) -> Iterator[slice]:
        """Slices of at most *piece*, and at least 1, that make up a count; checks the time before each."""
        piece = max(piece, 1)
        for first in range(0, count, piece):
            self.check_time()
            yield slice(first, min(first + piece, count))

    def reach(self, address: int, elements: int, dtype: npt.DTypeLike) -> npt.NDArray[np.uint8]:
        """The bytes of an operand.

        Raises:
            RefusedCall: an allocation, or the variables of modules, do not hold all of them.
        """
        if elements <= 0:
            return np.empty(0, np.uint8)
        address %= _WORDS
        size = elements * np.dtype(dtype).itemsize
        if ARENA_BASE <= address < self._memory.own_end:  # variables of modules
            end = self._memory.own_end
        else:
            region = self._memory.find(address)
            end = 0 if region is None else region.base + region.size_bytes
        if size > end - address:
            raise RefusedCall(Refusal.UNREACHABLE)
        self._on_access(address)
        return self._memory.bytes_at(address, size)

    def vector(self, address: int, n: int, step: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """A vector (n,); one with a negative step begins at its end."""
        content = self.reach(address, 1 + (n - 1) * abs(step) if n > 0 else 0, dtype)
        found = np.ndarray((max(n, 0),), dtype, content, strides=(abs(step) * np.dtype(dtype).itemsize,))
        return found[::-1] if step < 0 else found

    def matrix(self, address: int, rows: int, columns: int, step: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """A matrix (rows, columns), column-major, with *step* elements from one column to the next."""
        shape = max(rows, 0), max(columns, 0)
        content = self.reach(address, (columns - 1) * step + rows if min(shape) else 0, dtype)
        item = np.dtype(dtype).itemsize
        return np.ndarray(shape, dtype, content, strides=(item, step * item))

    def scalar(self, one: Argument, dtype: npt.DTypeLike) -> np.generic:
        """A scalar, of the host or in device memory."""
        self.need(one.word != 0)
        content = self.reach(one.word, 1, dtype).tobytes() if one.value is None else one.value
        found: np.generic = np.frombuffer(content, dtype, 1)[0]
        return found

    def place_result(self, one: Argument, dtype: npt.DTypeLike) -> Callable[[Any], None]:
        """Check the place of a result, and give a function that stores it."""
        self.need(one.word != 0)
        place = self.vector(one.word, 1, 1, dtype) if one.value is None else np.zeros(1, dtype)

        def put(value: Any) -> None:
            place[0] = value
            self.answer = b"" if one.value is None else place.tobytes()

        return put
