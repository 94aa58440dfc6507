"""What the analyses of lines ask of one piece of a trace, found once: :class:`PieceRows`."""

from functools import cached_property

import numpy as np

from gpa_lsp.emulator.trace import Trace
from gpa_lsp.native.shared_library import find_core
from gpa_lsp.ptx.model import Space
from gpa_lsp.traces.lane_addresses import Integers, Marks
from gpa_lsp.traces.line_sets import LineSets, SectorLists, list_sectors, number_line_sets
from gpa_lsp.traces.ordering import order_rows
from gpa_lsp.traces.references import number_turns


class PieceRows:
    """The rows of global memory and textures, in the orders of their warps; each part is found when it is asked for.

    Args:
        piece: of a trace.
    """

    def __init__(self, piece: Trace) -> None:
        self.piece = piece

    @cached_property
    def turns(self) -> Integers:
        """int64[rows of the piece], see :func:`~gpa_lsp.traces.references.number_turns`."""
        return number_turns(self.piece.accesses)

    @cached_property
    def is_global(self) -> Marks:
        """bool[rows of the piece], those of global memory and textures."""
        space = self.piece.accesses.space
        found: Marks = (space == Space.GLOBAL) | (space == Space.TEXTURE)
        return found

    @cached_property
    def by_block(self) -> Integers:
        """These, block by block, and round robin within one."""
        rows, block, warp = self._name_warps()
        return rows[order_rows(block, self.turns[rows], warp)]

    @cached_property
    def by_warp(self) -> Integers:
        """These, warp by warp."""
        rows, block, warp = self._name_warps()
        return rows[order_rows(block, warp, self.turns[rows])]

    @cached_property
    def sectors(self) -> SectorLists:
        """Of these, ascending."""
        return list_sectors(self.piece.accesses, np.flatnonzero(self.is_global))

    @property
    def has_sectors(self) -> bool:
        """Whether they were listed."""
        return "sectors" in self.__dict__

    def find_sectors(self, rows: Integers) -> SectorLists:
        """Of some of them, by row of the piece."""
        return self.sectors.choose((np.cumsum(self.is_global) - 1)[rows])

    @cached_property
    def sets(self) -> LineSets | None:
        """Their sets of lines, by row of the piece; None where the core does not do it."""
        core = find_core()
        if core is None:
            return None
        rows = np.flatnonzero(self.is_global)
        return number_line_sets(core, self.sectors, rows=rows, count=len(self.piece.accesses))

    def _name_warps(self) -> tuple[Integers, Integers, Integers]:
        accesses, rows = self.piece.accesses, np.flatnonzero(self.is_global)
        return rows, accesses.block[rows].astype(np.int64), accesses.warp[rows].astype(np.int64)
