"""Expected results of kernels: references written in numpy, by kernel name, and the comparison with them."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.generic]
Launch3 = tuple[int, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """Inputs of one launch.

    Attributes:
        values: arrays and scalars by the name of their argument or variable; arrays as before the launch, half precision as bits.
        grid: of the launch.
        block: of the launch.
    """

    values: Mapping[str, object]
    grid: Launch3
    block: Launch3

    def __getitem__(self, name: str) -> npt.NDArray[np.generic]:
        """A copy of an array, in the dtype of its type."""
        return np.array(self.values[name])

    def number(self, name: str) -> int:
        """A whole number."""
        value = self.values[name]
        assert isinstance(value, int)
        return value

    def real(self, name: str) -> float:
        """A number."""
        value = self.values[name]
        assert isinstance(value, (int, float))
        return float(value)

    @property
    def threads(self) -> int:
        """Threads of the launch, when it has one dimension."""
        return self.grid[0] * self.block[0]


@dataclass(frozen=True, slots=True)
class Close:
    """Floats that may differ.

    Attributes:
        values: what is right, in double precision or better than the result's.
        ulps: units in the last place of the result's own type that a result may be off.
        absolute: what it may be off whatever its size, for sums that cancel and functions near their zeros; for each value, or one for all.
    """

    values: Array
    ulps: float
    absolute: "float | npt.NDArray[np.float64]" = 0.0


@dataclass(frozen=True, slots=True)
class Unordered:
    """Values that must be there, in any order."""

    values: Array


Expected = Mapping[str, "Array | Close | Unordered"]
Reference = Callable[[Given], Expected]

REFERENCES: dict[str, Reference] = {}


def reference(*kernels: str) -> Callable[[Reference], Reference]:
    """Mark a function as what these kernels must give; it names every array the kernel may have changed."""

    def register(function: Reference) -> Reference:
        for kernel in kernels:
            assert kernel not in REFERENCES, kernel
            REFERENCES[kernel] = function
        return function

    return register


def find_differences(name: str, found: Array, expected: "Array | Close | Unordered") -> Iterator[str]:
    """One sentence for the first of all differences; none when the result is right."""
    values = expected.values if isinstance(expected, (Close, Unordered)) else expected
    values = np.ascontiguousarray(values).ravel()
    found = np.ascontiguousarray(found).ravel()
    if isinstance(expected, Unordered):
        values, found = np.sort(values), np.sort(found)
    if len(found) != len(values):
        yield f"{name} has {len(found)} elements, {len(values)} were expected"
        return
    wrong = _is_far(found, expected) if isinstance(expected, Close) else _is_other(found, values)
    if wrong.any():
        first = int(np.argmax(wrong))
        yield f"{name}[{first}] is {found[first]!r}, not {values[first]!r} ({int(wrong.sum())} of {len(values)} differ)"


def _is_other(found: Array, values: Array) -> npt.NDArray[np.bool_]:
    # Structures and half precision stand as bits of another dtype of the same size; a NaN is a NaN, whatever its payload.
    assert found.nbytes == values.nbytes, f"{found.dtype} and {values.dtype}"
    bits = np.dtype(f"u{values.itemsize}")
    differ = found.view(bits) != values.view(bits)
    if values.dtype.kind == "f":
        differ &= ~(np.isnan(found.view(values.dtype)) & np.isnan(values))
    return np.asarray(differ, dtype=np.bool_)


def _is_far(found: Array, expected: Close) -> npt.NDArray[np.bool_]:
    number = found.view(np.float16) if found.dtype == np.uint16 else found
    right = np.asarray(expected.values, dtype=np.float64).ravel()
    with np.errstate(all="ignore"):
        spacing = np.spacing(np.abs(right).astype(number.dtype)).astype(np.float64)
        off = np.abs(number.astype(np.float64) - right)
        same = (number == right.astype(number.dtype)) | (np.isnan(number) & np.isnan(right))
        near = off <= expected.ulps * spacing + np.ravel(expected.absolute)
    return np.asarray(~(near | same), dtype=np.bool_)
