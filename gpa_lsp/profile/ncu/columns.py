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
_MAX_VARINT_BYTES = 10
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
        own = values[start:end]
        columns = (ids[start:end], own.astype(np.int64)) if np.all(own < _MAX_COUNT) else None
        found.append(_drop_repeated_scalar(columns))
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
        ids, values = fast
        return (ids, values.astype(np.int64)) if np.all(values < _MAX_COUNT) else None
    pairs = [_read_pair(data) for data in instances]
    if not all(0 <= address < 1 << 64 and 0 <= count < _MAX_COUNT for address, count in pairs):
        return None
    return np.array([pair[0] for pair in pairs], np.uint64), np.array([pair[1] for pair in pairs], np.int64)


def _read_integers(data: bytes, count: int) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]] | None:
    """The columns when every instance is an integer id and an integer value, in this order; None when one is not."""
    split = _split_varints(data)
    if split is None or len(split[0]) != count * _VARINTS_PER_INSTANCE:
        return None
    varints = split[0].reshape(count, _VARINTS_PER_INSTANCE)
    lengths = split[1].reshape(count, _VARINTS_PER_INSTANCE)
    for first, tag in ((0, _ID_TAG), (4, _VALUE_TAG)):
        is_sound = (
            np.all(varints[:, first] == tag)
            and np.all(varints[:, first + 1] == (1 + lengths[:, first + 3]).astype(np.uint64))
            and np.all(varints[:, first + 2] == _UINT64_TAG)
        )
        if not is_sound:
            return None
    return varints[:, 3], varints[:, 7]


def _split_varints(data: bytes) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]] | None:
    """All varints of a byte string and the length of each in bytes; None when it is not made of whole varints of at most 10 bytes.

    >>> [column.tolist() for column in _split_varints(bytes([0x08, 0xAC, 0x02]))]
    [[8, 300], [1, 2]]
    """
    octets = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(octets < 0x80) + 1
    if len(ends) == 0 or ends[-1] != len(octets):
        return None if len(octets) else (np.empty(0, np.uint64), np.empty(0, np.int64))
    starts = np.concatenate(([0], ends[:-1]))
    lengths = ends - starts
    longest = int(lengths.max())
    if longest > _MAX_VARINT_BYTES:
        return None
    values = (octets[starts] & 0x7F).astype(np.uint64)
    rows = np.flatnonzero(lengths > 1)
    for index in range(1, longest):
        septets = (octets[starts[rows] + index] & 0x7F).astype(np.uint64)
        values[rows] |= septets << np.uint64(7 * index)
        rows = rows[lengths[rows] > index + 1]
    return values, lengths


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
