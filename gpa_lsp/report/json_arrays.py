"""Long arrays of JSON objects into columns.

A hundred thousand objects of ten properties are a million values. Each column is first checked as a whole; only where something in it is not
as it should be are its values looked at one by one, to name the first that is wrong.
"""

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt

from gpa_lsp.report.json_cursor import JsonCursor

_UNKNOWN = -1


def read_counts(rows: JsonCursor, key: str, maximum: int, *, is_optional: bool = False) -> npt.NDArray[np.int64]:
    """int64[n], a whole number from 0 to ``maximum`` of every object.

    Args:
        rows: an array of objects.
        key: the property.
        maximum: largest number allowed.
        is_optional: null is allowed, and becomes -1.

    Raises:
        InputError: one of the values is something else.
    """
    values = rows.column(key)
    plain = [_UNKNOWN if value is None else value for value in values] if is_optional else values
    if set(map(type, plain)) <= {int} and (not plain or (min(plain) >= _UNKNOWN and max(plain) <= maximum)):
        column = np.array(plain, dtype=np.int64)
        if int((column < 0).sum()) == (values.count(None) if is_optional else 0):
            return column
    return _read_each(rows, key, lambda at: at.count(maximum=maximum), is_optional=is_optional)


def read_names(
    rows: JsonCursor,
    key: str,
    numbers: Mapping[str, int],
    *,
    read: Callable[[JsonCursor], int] | None = None,
    is_optional: bool = False,
) -> npt.NDArray[np.int64]:
    """int64[n], the numbers that names stand for.

    Args:
        rows: an array of objects.
        key: the property.
        numbers: of the names there are, none negative.
        read: reads one value, for errors that say more than the list of all names.
        is_optional: null is allowed, and becomes -1.

    Raises:
        InputError: one of the values is something else.
    """
    values = rows.column(key)
    if set(map(type, values)) <= ({str, type(None)} if is_optional else {str}):
        found = [_UNKNOWN if value is None else numbers.get(value) for value in values]
        if None not in found:
            return np.array(found, dtype=np.int64)
    return _read_each(rows, key, read or (lambda at: at.names(numbers)), is_optional=is_optional)


def read_amounts(rows: JsonCursor, key: str) -> npt.NDArray[np.float64]:
    """float64[n], a finite number that is not negative of every object.

    Raises:
        InputError: one of the values is something else.
    """
    values = rows.column(key)
    if set(map(type, values)) <= {int, float}:
        try:
            column = np.array(values, dtype=np.float64)
        except OverflowError:
            column = np.full(len(values), np.nan)
        if bool(np.isfinite(column).all()) and not bool((column < 0).any()):
            return column
    return np.array([row.at(key).positive() for row in rows.items()], dtype=np.float64)


def _read_each(
    rows: JsonCursor, key: str, read: Callable[[JsonCursor], int], *, is_optional: bool
) -> npt.NDArray[np.int64]:
    found = []
    for row in rows.items():
        number = row.at(key).maybe(read) if is_optional else read(row.at(key))
        found.append(_UNKNOWN if number is None else number)
    return np.array(found, dtype=np.int64)
