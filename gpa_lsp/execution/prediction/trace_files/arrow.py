"""Trace columns as Arrow tables and back. pyarrow is an optional dependency and is imported here alone."""

from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from gpa_lsp.execution.emulator.trace import ACCESS_DTYPES, BRANCH_DTYPES, ENTRY_DTYPES, Accesses, Branches, Entries
from gpa_lsp.foundation.errors import InputError, MissingToolError

# The column that holds each access's lane addresses as a list; it stands for ``first_address`` and ``addresses`` of :class:`Accesses`
ADDRESSES = "addresses"

BLOCK = "block"  # The one column of the traced blocks

_COUNT_BITS = np.array([bin(byte).count("1") for byte in range(256)], dtype=np.uint8)


def load_pyarrow() -> tuple[ModuleType, ModuleType]:
    """``pyarrow`` and ``pyarrow.parquet``.

    Raises:
        MissingToolError: it is not installed.
    """
    try:
        import pyarrow  # an optional dependency, and slow to import
        import pyarrow.parquet
    except ImportError as error:
        install = "install gpa-lsp[traces], which brings pyarrow"
        raise MissingToolError("pyarrow", needed_for="keeping traces in files", install=install) from error
    return pyarrow, pyarrow.parquet


def count_lanes(masks: npt.NDArray[np.uint32]) -> npt.NDArray[np.int64]:
    """int64[n], lanes set in each mask.

    >>> count_lanes(np.array([0, 1, 0xFFFFFFFF], dtype=np.uint32)).tolist()
    [0, 1, 32]
    """
    octets = np.ascontiguousarray(masks, dtype="<u4").view(np.uint8).reshape(-1, 4)
    counted: npt.NDArray[np.int64] = _COUNT_BITS[octets].sum(axis=1, dtype=np.int64)
    return counted


def build_accesses_table(accesses: Accesses) -> Any:
    """An Arrow table of the rows, in their order."""
    pyarrow, _ = load_pyarrow()
    columns = {name: getattr(accesses, name) for name in ACCESS_DTYPES if name != "first_address"}
    ends = np.append(accesses.first_address.astype(np.int64), len(accesses.addresses))
    lists = pyarrow.LargeListArray.from_arrays(pyarrow.array(ends), pyarrow.array(accesses.addresses))
    return pyarrow.table({**{name: pyarrow.array(column) for name, column in columns.items()}, ADDRESSES: lists})


def build_table(columns: Branches | Entries) -> Any:
    """The same for branches and entries."""
    pyarrow, _ = load_pyarrow()
    names = BRANCH_DTYPES if isinstance(columns, Branches) else ENTRY_DTYPES
    return pyarrow.table({name: pyarrow.array(getattr(columns, name)) for name in names})


def read_accesses(table: Any) -> Accesses:
    """The rows of a table of accesses.

    Raises:
        InputError: a column is missing or of another type, or the addresses are not as many as the masks have lanes; names no file.
    """
    names = {name: dtype for name, dtype in ACCESS_DTYPES.items() if name != "first_address"}
    columns = _read_columns(table, names)
    if ADDRESSES not in table.column_names:
        raise InputError("the addresses are missing", place=f"column {ADDRESSES}", remedy="trace the kernel again")
    lists = table.column(ADDRESSES).combine_chunks()
    if not hasattr(lists, "offsets") or str(lists.type.value_type) != "uint64" or lists.values.null_count:
        message = f"holds {lists.type}, or gaps, not lists of uint64"
        raise InputError(message, place=f"column {ADDRESSES}", remedy="trace the kernel again")
    offsets = np.asarray(lists.offsets, dtype=np.int64)
    flat = np.asarray(lists.values)[offsets[0] : offsets[-1]] if len(lists) else _NO_ADDRESSES
    firsts = offsets[:-1] - offsets[0] if len(lists) else np.zeros(0, dtype=np.int64)
    lengths = np.diff(offsets) if len(lists) else firsts
    if lists.null_count or not np.array_equal(lengths, count_lanes(columns["lane_mask"])):
        message = "there are not as many addresses as lanes"
        raise InputError(message, place=f"column {ADDRESSES}", remedy="trace the kernel again")
    return Accesses(**columns, first_address=firsts.astype(np.uint64), addresses=flat)


_NO_ADDRESSES = np.zeros(0, dtype=np.uint64)


def read_branches(table: Any) -> Branches:
    """The rows of a table of branches; raises as :func:`read_accesses`."""
    return Branches(**_read_columns(table, BRANCH_DTYPES))


def read_entries(table: Any) -> Entries:
    """The rows of a table of entries; raises as :func:`read_accesses`."""
    return Entries(**_read_columns(table, ENTRY_DTYPES))


def read_blocks(table: Any) -> npt.NDArray[np.uint32]:
    """The column of traced blocks; raises as :func:`read_accesses`."""
    return _read_columns(table, {BLOCK: np.dtype(np.uint32)})[BLOCK]


def _read_columns(table: Any, dtypes: dict[str, "np.dtype[Any]"]) -> dict[str, npt.NDArray[Any]]:
    columns = {}
    for name, dtype in dtypes.items():
        if name not in table.column_names:
            raise InputError("a column is missing", place=f"column {name}", remedy="trace the kernel again")
        column = table.column(name)
        if column.null_count or str(column.type) != f"uint{8 * dtype.itemsize}":
            message = f"holds {column.type} with {column.null_count} gaps, not uint{8 * dtype.itemsize}"
            raise InputError(message, place=f"column {name}", remedy="trace the kernel again")
        columns[name] = column.to_numpy()
    return columns
