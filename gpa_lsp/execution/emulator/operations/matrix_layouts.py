"""Which lane holds which element of the matrices of ``mma``, ``wgmma`` and ``wmma``: :class:`Fragment`.

Source: PTX ISA 9.0, sections 9.7.14.5 (matrix fragments for mma.m8n8k4 … m16n8k256) and 9.7.15.5.1.1 (wgmma: each of the four warps holds 16 rows
of A and D, laid out like those of ``mma``). The layout of ``wmma`` fragments is unspecified there; the one
here is our own: elements in row-major order, consecutive ones in one lane.
"""

from functools import cache, cached_property

import numpy as np
import numpy.typing as npt

from gpa_lsp.foundation.records import ColumnRecord

Indexes = npt.NDArray[np.int64]
_LANES = np.arange(32)
_GROUP, _WITHIN = _LANES // 4, _LANES % 4


class Fragment(ColumnRecord, frozen=True, kw_only=True, dict=True):
    """A matrix spread over a warp."""

    rows: int  # of the matrix
    columns: int  # of the matrix
    row: Indexes  # int64[32, e], of each element each lane holds, in register order
    column: Indexes  # int64[32, e]

    @cached_property
    def holders(self) -> Indexes:
        """int64[rows · columns]: for each element, row by row, a place in [32, e] that holds it."""
        found = np.empty(self.rows * self.columns, np.int64)
        found[self.places] = np.arange(self.places.size)
        return found

    @cached_property
    def places(self) -> Indexes:
        """int64[32 · e]: for each place in [32, e], its element, counted row by row."""
        return (self.row * self.columns + self.column).reshape(-1)

    @property
    def elements(self) -> int:
        """Per lane."""
        return int(self.row.shape[1])

    @property
    def turned(self) -> "Fragment":
        """The same lanes, with rows and columns exchanged."""
        return Fragment(rows=self.columns, columns=self.rows, row=self.column, column=self.row)

    def gather(self, values: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
        """[w, 32, e] values of lanes → [w, rows, columns]."""
        flat = values.reshape(len(values), -1)
        return flat.take(self.holders, axis=1).reshape(-1, self.rows, self.columns)

    def scatter(self, matrix: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
        """[w, rows, columns] → [w, 32, e]."""
        return matrix.reshape(len(matrix), -1).take(self.places, axis=1).reshape(-1, 32, self.elements)


@cache
def left_fragment(rows: int, depth: int, per_register: int) -> Fragment:
    """A of ``mma``, and of a warp of ``wgmma``: registers of ``per_register`` elements go through the rows g and g + 8, then on along the depth."""
    halves = rows // 8
    registers = halves * depth // (4 * per_register)
    row, column = [], []
    for register in range(registers):
        for element in range(per_register):
            row.append(_GROUP + 8 * (register % halves))
            column.append(_WITHIN * per_register + element + 4 * per_register * (register // halves))
    return Fragment(rows=rows, columns=depth, row=np.stack(row, 1), column=np.stack(column, 1))


@cache
def right_fragment(depth: int, columns: int, per_register: int) -> Fragment:
    """B of ``mma``: columns by groups, registers along the depth."""
    row = [
        _WITHIN * per_register + element + 4 * per_register * register
        for register in range(depth // (4 * per_register))
        for element in range(per_register)
    ]
    stacked = np.stack(row, 1)
    return Fragment(rows=depth, columns=columns, row=stacked, column=np.broadcast_to(_GROUP[:, None], stacked.shape))


@cache
def sum_fragment(rows: int, columns: int) -> Fragment:
    """C and D of ``mma``, and of a warp of ``wgmma``: by eight columns, two neighbours of a row, and of the row eight below."""
    places = [
        (8 * eight, 8 * half, one) for eight in range(columns // 8) for half in range(rows // 8) for one in (0, 1)
    ]
    row = [_GROUP + half for _, half, _ in places]
    column = [_WITHIN * 2 + first + one for first, _, one in places]
    return Fragment(rows=rows, columns=columns, row=np.stack(row, 1), column=np.stack(column, 1))


@cache
def plain_fragment(rows: int, columns: int, elements: int) -> Fragment:
    """Of ``wmma``: row-major, consecutive elements in one lane; a lane with more registers than its share holds the same again."""
    share = rows * columns // 32
    index = _LANES[:, None] * share + np.arange(elements)[None, :] % share
    return Fragment(rows=rows, columns=columns, row=index // columns, column=index % columns)
