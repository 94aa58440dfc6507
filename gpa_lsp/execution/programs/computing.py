"""Calls of cuBLAS, cuFFT and cuRAND, computed by numpy in the emulator's process: :func:`compute`."""

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gpa_lsp.execution.emulator.resident import ResidentMemory
from gpa_lsp.execution.programs.allocations import AllocationLedger
from gpa_lsp.execution.programs.host_blas import ROUTINES
from gpa_lsp.execution.programs.library_calls import LibraryCall, Refusal, RefusedCall, TimeIsOver
from gpa_lsp.execution.programs.messages import (
    Argument,
    ComputeRequest,
    CudaError,
    EventKind,
    MalformedMessage,
    MemoryEvent,
)

# Types of what is read and written, by the letters of the function's name
_DTYPES = {
    "C2C": ("c8", "c8"),
    "R2C": ("f4", "c8"),
    "C2R": ("c8", "f4"),
    "Z2Z": ("c16", "c16"),
    "D2Z": ("f8", "c16"),
    "Z2D": ("c16", "f8"),
}
TRANSFORMS = {f"cufftExec{name}": dtypes for name, dtypes in _DTYPES.items()}
_FORWARD = -1
_ARGUMENTS, _MOST_DIMENSIONS, _MOST_ELEMENTS = 18, 3, 1 << 40
_MOST_BYTES = 1 << 34  # of a transform on its way: more is not tried
_PIECE = 1 << 20  # elements of transforms that are done at once
_INTS, _WORDS = 1 << 31, 1 << 64


class _Side(Struct, frozen=True, kw_only=True):
    """Layout of the input or output of a batch of transforms."""

    n: tuple[int, ...]  # elements that are there
    size: tuple[int, ...]  # of the array they stand in; the first does not matter
    step: int  # from element to element
    distance: int  # from transform to transform
    dtype: str

    def place(self, call: LibraryCall, address: int, batch: int) -> npt.NDArray[np.uint8]:
        """All its bytes."""
        last = sum((n - 1) * step for n, step in zip(self.n, self._steps, strict=True))
        return call.reach(address, last + (batch - 1) * self.distance + 1, self.dtype)

    @property
    def _steps(self) -> tuple[int, ...]:
        sizes = self.size
        return tuple(self.step * prod(sizes[at + 1 :]) if n > 1 else 0 for at, n in enumerate(self.n))

    def view(self, content: npt.NDArray[np.uint8], first: int, count: int) -> npt.NDArray[Any]:
        """Some of the transforms (count, n…)."""
        item = np.dtype(self.dtype).itemsize
        strides = tuple(step * item for step in (self.distance, *self._steps))
        return np.ndarray((count, *self.n), self.dtype, content, first * self.distance * item, strides)


def transform(call: LibraryCall, arguments: tuple[Argument, ...]) -> None:
    """Execute a plan of cuFFT.

    Args:
        arguments: rank, three n, batch; of each side three sizes, step and distance, 0 where elements lie one behind the other; two addresses and the
            direction.

    Raises:
        MalformedMessage: there is no such plan.
    """
    if len(arguments) != _ARGUMENTS:
        raise MalformedMessage("a transform of no plan")
    words = [call.take_number(one) for one in (*arguments[:15], arguments[17])]
    source, target = arguments[15].word, arguments[16].word
    rank, batch, direction = words[0], words[4], words[15]
    n = tuple(words[1 : 1 + max(rank, 0)])
    if not 1 <= rank <= _MOST_DIMENSIONS or min(*n, batch) < 1 or prod(n) > _MOST_ELEMENTS:
        raise MalformedMessage("a transform of no plan")
    is_in_place = source == target
    dtypes = TRANSFORMS[call.function]
    sides = [
        _lay_out(words[5 + 5 * which : 10 + 5 * which], n, dtypes, which, is_in_place=is_in_place) for which in (0, 1)
    ]
    contents = [side.place(call, at, batch) for side, at in zip(sides, (source, target), strict=True)]
    if prod(n) * np.dtype("c16").itemsize > _MOST_BYTES:
        raise RefusedCall(Refusal.NO_MEMORY)
    for part in call.split(batch, _PIECE // prod(n)):
        some, into = (
            side.view(content, part.start, part.stop - part.start)
            for side, content in zip(sides, contents, strict=True)
        )
        into[...] = _compute(some, into, n, direction)


def _lay_out(words: list[int], n: tuple[int, ...], dtypes: tuple[str, str], which: int, *, is_in_place: bool) -> _Side:
    dtype, other = dtypes[which], dtypes[1 - which]
    is_real, is_half = dtype[0] == "f", other[0] == "f"
    there = (*n[:-1], n[-1] // 2 + 1) if is_half else n
    if words[3]:
        if words[3] < 0 or words[4] < 0 or min(words[1 : len(n)], default=1) < 1:
            raise MalformedMessage("a transform of no plan")
        return _Side(n=there, size=tuple(words[: len(n)]), step=words[3], distance=words[4], dtype=dtype)
    # In place, real rows are as long as those of the spectrum
    size = (*n[:-1], 2 * (n[-1] // 2 + 1)) if is_real and is_in_place else there
    return _Side(n=there, size=size, step=1, distance=prod(size), dtype=dtype)


def _compute(some: npt.NDArray[Any], into: npt.NDArray[Any], n: tuple[int, ...], direction: int) -> npt.NDArray[Any]:
    """Transform all dimensions but the first."""
    axes = tuple(range(1, some.ndim))
    if some.dtype.kind == "f":
        return np.fft.rfftn(some.astype("f8"), axes=axes)
    wide = some.astype("c16")
    if into.dtype.kind == "f":
        return np.fft.irfftn(wide, n, axes, norm="forward")
    return np.fft.fftn(wide, axes=axes) if direction == _FORWARD else np.fft.ifftn(wide, axes=axes, norm="forward")


# Types of the numbers that are drawn
DRAWN = {
    "curandGenerate": "u4",
    "curandGenerateUniform": "f4",
    "curandGenerateUniformDouble": "f8",
    "curandGenerateNormal": "f4",
    "curandGenerateNormalDouble": "f8",
    "curandGenerateLogNormal": "f4",
    "curandGenerateLogNormalDouble": "f8",
    "curandGeneratePoisson": "u4",
}
_DRAW_ARGUMENTS, _MOST_DRAWN = 6, 1 << 20


def draw(call: LibraryCall, arguments: tuple[Argument, ...]) -> None:
    """Draw random numbers: the same for a seed and a place, however many are drawn at once, but for those of Poisson's distribution.

    Args:
        arguments: seed, place of the first, how many, the bits of mean and deviation, and where they go.

    Raises:
        MalformedMessage: there is nothing to draw.
    """
    if len(arguments) != _DRAW_ARGUMENTS or not 0 <= arguments[2].word <= _MOST_DRAWN:
        raise MalformedMessage("a draw of random numbers that no library asks for")
    seed, place, count = (one.word % _WORDS for one in arguments[:3])
    mean, deviation = np.array([one.word for one in arguments[3:5]]).view("f8")
    into, dtype = arguments[5], DRAWN[call.function]
    with np.errstate(all="ignore"):  # of a mean that is no number nothing is
        found = _draw(call.function, seed, place, count, mean=float(mean), deviation=float(deviation)).astype(dtype)
    if into.value is None:
        call.vector(into.word, count, 1, dtype)[...] = found
    else:
        call.answer = found.tobytes()


def _draw(function: str, seed: int, place: int, count: int, *, mean: float, deviation: float) -> npt.NDArray[Any]:
    """Draw numbers from two 64-bit words each, of Philox's blocks of four."""
    if function.endswith("Poisson"):
        if not 0 < mean < _INTS:
            raise MalformedMessage("a draw of random numbers that no library asks for")
        return np.random.Generator(np.random.Philox(key=seed, counter=place << 64)).poisson(mean, count)
    raw = np.random.Philox(key=seed, counter=place // 2).random_raw(2 * (count + 1))[2 * (place % 2) :][: 2 * count]
    first, second = raw.reshape(count, 2).T
    if function == "curandGenerate":
        return first >> np.uint64(32)
    if function == "curandGenerateUniform":  # above 0, at most 1
        return ((first >> np.uint64(40)) + 1.0) * 2.0**-24
    uniform, other = (((one >> np.uint64(11)) + 1.0) * 2.0**-53 for one in (first, second))
    if function == "curandGenerateUniformDouble":
        return uniform
    normal: npt.NDArray[Any] = mean + deviation * np.sqrt(-2 * np.log(uniform)) * np.cos(
        2 * np.pi * other
    )  # Box and Muller (1958)
    if "LogNormal" in function:
        normal = np.exp(normal)
    return normal


# ``cublasStatus_t``, ``cufftResult`` and ``curandStatus_t``
_STATUSES = {
    "cublas": {Refusal.INVALID_VALUE: 7, Refusal.UNREACHABLE: 13, Refusal.NOT_SUPPORTED: 15, Refusal.NO_MEMORY: 3},
    "cufft": {Refusal.UNREACHABLE: 6, Refusal.NO_MEMORY: 2},
    "curand": {Refusal.UNREACHABLE: 201, Refusal.NO_MEMORY: 102},
}


def compute(
    request: ComputeRequest, memory: ResidentMemory, ledger: AllocationLedger, is_over: Callable[[], bool]
) -> tuple[CudaError, bytes, Refusal | None]:
    """Answer a call of a library's function.

    Returns:
        The error, the status of the library with the result behind it, and why it was refused.

    Raises:
        MalformedMessage: it is nothing that the libraries ask for.
    """
    call = LibraryCall(
        request,
        memory,
        on_access=lambda address: ledger.take(
            [
                MemoryEvent(
                    kind=EventKind.LOCATE, path=request.path, target=address, source=0, size_bytes=0, is_gapped=False
                )
            ]
        ),
        is_over=is_over,
    )
    refusal = None
    try:
        call.check_time()
        _run(call, request)
    except TimeIsOver:
        return CudaError.LAUNCH_TIMEOUT, b"", None
    except RefusedCall as refused:
        refusal = refused.why
    except MemoryError:
        refusal = Refusal.NO_MEMORY
    library = next((one for one in _STATUSES if request.function.startswith(one)), "cublas")
    status = 0 if refusal is None else _STATUSES[library][refusal]
    return CudaError.SUCCESS, status.to_bytes(4, "little") + (b"" if refusal else call.answer), refusal


def _run(call: LibraryCall, request: ComputeRequest) -> None:
    routine = ROUTINES.get(request.function)
    if request.function in TRANSFORMS:
        transform(call, request.arguments)
    elif request.function in DRAWN:
        draw(call, request.arguments)
    elif routine is None or len(routine.parameters) != len(request.arguments):
        raise MalformedMessage(f"there is no function {request.function!r} with so many arguments")
    else:
        routine.run(call, request.arguments)
