"""Instances of a per-instruction metric as two columns: correlation ids (addresses) and values (counts).

A launch has some forty such metrics with up to thousands of instances each; making a Python object per instance is what reading a report would
cost most of. The instances of a metric are nearly always of one shape, an integer id and an integer value, and then their bytes are nothing but
varints in a fixed order, which numpy takes apart for the whole metric at once. Anything else is decoded one by one.
"""

import math
from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from gpa_lsp.profile.ncu import schema

Columns = tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]
"""Addresses and counts; equally long, in file order."""

_MAX_COUNT = 1 << 53
_ID_TAG, _VALUE_TAG, _UINT64_TAG = 0x0A, 0x12, 0x28
"""Field 1 and 2 of an instance (messages), field 5 of a value (uint64)."""
_VARINTS_PER_INSTANCE = 8
"""Id tag, its length, uint64 tag, id; value tag, its length, uint64 tag, value."""
_WORD_BYTES = 8
"""What a varint may take to be taken apart with others; a longer one is no count, and hardly an address."""
_SEPTETS = np.array([int.from_bytes(b"\x7f" * length, "little") for length in range(_WORD_BYTES + 1)], np.uint64)
"""Length of a varint → the bits that count in its bytes, as a little-endian word."""
_MOST_TOGETHER_BYTES = 1 << 20
"""Taking bytes apart needs some thirty times their memory."""

_OVER_TIME = 1
"""Correlation kind of metrics whose instances are GPU time stamps (2023.2 and later)."""


def read_counts(data: bytes) -> Columns | None:
    """Addresses and counts of one metric.

    Args:
        data: the metric's message.

    Returns:
        The columns, empty for a metric that counted nothing; None when its instances are not counts by address.
    """
    message = schema.ColumnMetric.FromString(data)
    if message.correlation_kind == _OVER_TIME:
        return None
    return _drop_repeated_scalar(read_columns(list(message.instances)))


def read_all_counts(encoded: Sequence[bytes]) -> list[Columns | None]:
    """The same of several metrics. The instances of short ones are taken apart together, where all of them are of the usual shape."""
    if sum(map(len, encoded)) > _MOST_TOGETHER_BYTES:
        return [read_counts(data) for data in encoded]
    messages = [schema.ColumnMetric.FromString(data) for data in encoded]
    counted = [list(message.instances) for message in messages if message.correlation_kind != _OVER_TIME]
    fast = _read_integers(b"".join(chain.from_iterable(counted)), sum(map(len, counted)))
    if fast is None or len(counted) < len(messages):
        return [read_counts(data) for data in encoded]
    ids, values = fast
    found: list[Columns | None] = []
    end = 0
    for instances in counted:
        start, end = end, end + len(instances)
        found.append(_drop_repeated_scalar((ids[start:end], values[start:end])))
    return found


def _drop_repeated_scalar(columns: Columns | None) -> Columns | None:
    if columns is not None and len(columns[0]) == 1 and columns[0][0] == 0:
        # From 2024.3 on many scalars repeat their value as one instance with id 0: no instruction.
        return np.empty(0, np.uint64), np.empty(0, np.int64)
    return columns


def read_columns(instances: list[bytes]) -> Columns | None:
    """Decode instance messages to addresses and counts.

    Args:
        instances: the encoded instance messages of one metric.

    Returns:
        The columns; None when an id is no address (text, a fraction, negative) or a value no count.
    """
    fast = _read_integers(b"".join(instances), len(instances))
    if fast is not None:
        return fast
    pairs = [_read_pair(data) for data in instances]
    if not all(0 <= address < 1 << 64 and 0 <= count < _MAX_COUNT for address, count in pairs):
        return None
    return np.array([pair[0] for pair in pairs], np.uint64), np.array([pair[1] for pair in pairs], np.int64)


def _read_integers(data: bytes, count: int) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]] | None:
    """The columns when every instance is an integer id and a count, in this order and as short as they can be written; None when one is not."""
    octets = np.frombuffer(data + bytes(_WORD_BYTES), np.uint8)
    last = np.flatnonzero(octets[: len(data)] < 0x80)
    if len(last) != count * _VARINTS_PER_INSTANCE or (count and last[-1] != len(data) - 1):
        return None
    if not count:
        return np.empty(0, np.uint64), np.empty(0, np.int64)
    ends = last.reshape(count, _VARINTS_PER_INSTANCE) + 1
    starts = np.concatenate(([0], ends[:-1, -1]))
    columns = []
    for tag, own_starts, own in ((_ID_TAG, starts, ends[:, :4]), (_VALUE_TAG, ends[:, 3], ends[:, 4:])):
        lengths = own[:, 3] - own[:, 2]
        is_sound = (
            np.all(own[:, 2] - own_starts == 3)
            and np.all(octets[own_starts] == tag)
            and np.all(octets[own_starts + 1] == lengths + 1)
            and np.all(octets[own_starts + 2] == _UINT64_TAG)
            and lengths.max() <= _WORD_BYTES
        )
        if not is_sound:
            return None
        columns.append(_read_varints(octets, own[:, 2], lengths))
    ids, values = columns
    return (ids, values.astype(np.int64)) if values.max() < _MAX_COUNT else None


def _read_varints(
    octets: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64]
) -> npt.NDArray[np.uint64]:
    """Varints of at most eight bytes each.

    Args:
        octets: of all, and at least eight more bytes behind the last one.
        starts: where each begins.
        lengths: of each in bytes.

    >>> _read_varints(np.array([8, 0xAC, 2, *bytes(8)], np.uint8), np.array([0, 1]), np.array([1, 2])).tolist()
    [8, 300]
    """
    words_at: npt.NDArray[np.uint64] = np.ndarray((len(octets) - _WORD_BYTES + 1,), "<u8", octets, strides=(1,))
    words = words_at[starts] & _SEPTETS[lengths]
    values = words & np.uint64(0x7F)
    for index in range(1, int(lengths.max())):
        values |= words >> np.uint64(index) & np.uint64(0x7F << 7 * index)
    return values


def _read_pair(data: bytes) -> tuple[int, int]:
    instance = schema.Instance.FromString(data)
    return _read_number(instance.correlation_id), _read_number(instance.value)


def _read_number(value: Any) -> int:
    """An integer from whichever encoding a value uses; -1, which is no address and no count, for text, fractions and nothing."""
    kind = value.WhichOneof("kind")
    if kind in (None, "text"):
        return -1
    number: int | float = getattr(value, kind)
    is_integer = math.isfinite(number) and number == int(number)
    return int(number) if is_integer else -1
