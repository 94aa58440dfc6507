"""What fills an array: the same description gives the same bytes, everywhere and always.

Random numbers are the raw output of PCG64, which numpy promises never to change, brought into form by additions and multiplications alone;
numpy's own distributions may give other numbers in another version.
"""

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from gpa_lsp.basis.errors import InputError
from gpa_lsp.launches.files import load_array_file
from gpa_lsp.launches.launch import ArrayArgument, Generator
from gpa_lsp.launches.scalars import round_floats
from gpa_lsp.ptx.scalar_types import ScalarType

_CHUNK = 1 << 18
"""Elements made at a time: what is needed beside the array itself stays small."""

_SUMMANDS = 12
"""Uniform numbers whose sum is nearly normal, with deviation 1."""


def generate_array(array: ArrayArgument) -> npt.NDArray[np.generic]:
    """The elements of an array that is no alias: one dimension, natural dtype, writable.

    Floats that do not fit become infinite; integers are cut to the type's range, but those of a sequence wrap around.

    Raises:
        InputError: its file cannot be used.

    >>> generate_array(ArrayArgument(name="x", type=ScalarType.S16, count=4, generator=Generator.SEQUENCE, low=5, step=-2)).tolist()
    [5, 3, 1, -1]
    """
    with np.errstate(all="ignore"):
        return _generate(array)


def _generate(array: ArrayArgument) -> npt.NDArray[np.generic]:
    if array.generator == Generator.FILE:
        if array.file is None:
            raise InputError(f"the array {array.name!r} names no file", remedy="give file = …")
        return load_array_file(array.file, array.type, array.count)
    if array.generator == Generator.ZEROS or array.count == 0:
        return np.zeros(array.count, dtype=array.type.natural_dtype)
    if array.generator == Generator.PERMUTATION:
        return _convert(_permute(array), array)
    elements = np.empty(array.count, dtype=array.type.natural_dtype)
    place = 0
    for chunk in _MAKERS[array.generator](array):
        elements[place : place + len(chunk)] = chunk
        place += len(chunk)
    return elements


def _convert(numbers: npt.NDArray[np.float64] | npt.NDArray[np.int64], array: ArrayArgument) -> npt.NDArray[np.generic]:
    """Numbers in the array's dtype."""
    kind = array.type
    if kind.is_float:
        return round_floats(numbers.astype(np.float64), kind)
    if numbers.dtype.kind in "iu":
        return numbers.astype(kind.natural_dtype)
    bits = 8 * kind.bytes
    least, most = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if kind.is_signed else (0, (1 << bits) - 1)
    whole = np.clip(np.nan_to_num(np.floor(numbers)), float(least), float(most))
    # The largest integers have no double of their own; what would be beyond them is set by hand.
    is_most = whole >= float(most)
    found = (
        np.where(is_most, 0.0, whole)
        .astype(np.int64 if least < 0 else np.uint64)
        .astype(f"{'i' if least < 0 else 'u'}{kind.bytes}")
    )
    found[is_most] = most
    return found


def _split(count: int) -> Iterator[tuple[int, int]]:
    """(start, length) of chunks."""
    for start in range(0, count, _CHUNK):
        yield start, min(_CHUNK, count - start)


def _make_constants(array: ArrayArgument) -> Iterator[npt.NDArray[np.generic]]:
    one = _listed((array.value,), array.type)
    for _, length in _split(array.count):
        yield np.broadcast_to(one, (length,))


def _make_values(array: ArrayArgument) -> Iterator[npt.NDArray[np.generic]]:
    values = _listed(array.values or (0,), array.type)
    for start, length in _split(array.count):
        yield values[np.arange(start, start + length) % len(values)]


def _listed(values: tuple[int | float, ...], kind: ScalarType) -> npt.NDArray[np.generic]:
    if kind.is_float:
        return round_floats(np.array(values, dtype=np.float64), kind)
    mask = (1 << (8 * kind.bytes)) - 1
    return (
        np.array([int(value) & mask for value in values], dtype=np.uint64)
        .astype(f"<u{kind.bytes}")
        .view(kind.natural_dtype)
    )


def _make_sequence(array: ArrayArgument) -> Iterator[npt.NDArray[np.generic]]:
    is_whole = float(array.low).is_integer() and float(array.step).is_integer() and array.type.is_integer
    for start, length in _split(array.count):
        places = np.arange(start, start + length, dtype=np.int64)
        if is_whole:
            low, step = (np.uint64(int(number) & 0xFFFFFFFFFFFFFFFF) for number in (array.low, array.step))
            yield (low + step * places.astype(np.uint64)).astype(array.type.natural_dtype)
        else:
            yield _convert(array.low + array.step * places.astype(np.float64), array)


def _make_uniform(array: ArrayArgument) -> Iterator[npt.NDArray[np.generic]]:
    source = _start(array)
    for _, length in _split(array.count):
        yield _convert(array.low + (array.high - array.low) * _draw(source, length), array)


def _make_normal(array: ArrayArgument) -> Iterator[npt.NDArray[np.generic]]:
    source = _start(array)
    for _, length in _split(array.count):
        total = np.full(length, -_SUMMANDS / 2)
        for _ in range(_SUMMANDS):
            total += _draw(source, length)
        numbers = array.low + array.high * total
        yield _convert(numbers if array.type.is_float else np.rint(numbers), array)


def _permute(array: ArrayArgument) -> npt.NDArray[np.int64]:
    """Sorted by random keys; equal keys, which hardly ever come, keep their order."""
    return np.argsort(_start(array).random_raw(array.count), kind="stable")


def _start(array: ArrayArgument) -> np.random.PCG64:
    return np.random.PCG64(array.seed)


def _draw(source: np.random.PCG64, count: int) -> npt.NDArray[np.float64]:
    """Numbers from 0, included, to 1, excluded: the upper 53 bits of each raw number."""
    raw: npt.NDArray[np.uint64] = source.random_raw(count)
    return (raw >> np.uint64(11)).astype(np.float64) * 2.0**-53


_MAKERS: dict[Generator, Callable[[ArrayArgument], Iterator[npt.NDArray[np.generic]]]] = {
    Generator.CONSTANT: _make_constants,
    Generator.VALUES: _make_values,
    Generator.SEQUENCE: _make_sequence,
    Generator.UNIFORM: _make_uniform,
    Generator.NORMAL: _make_normal,
}
