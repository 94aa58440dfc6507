"""What several analyses ask of one piece of a trace, found once: :class:`PieceRows`."""

from functools import cached_property

import numpy as np
import numpy.typing as npt

from gpa_lsp.code.ptx.model import Space
from gpa_lsp.code.ptx.static_instructions import AccessKind
from gpa_lsp.execution.emulator.trace import Trace
from gpa_lsp.execution.traces.arrays import ArrayIndex
from gpa_lsp.execution.traces.lane_addresses import Integers, Marks
from gpa_lsp.execution.traces.line_sets import LineSets, SectorLists, list_sectors, number_line_sets
from gpa_lsp.execution.traces.model import ARRAY_SPACES
from gpa_lsp.execution.traces.ordering import NumberedWarps, number_warps
from gpa_lsp.execution.traces.references import WarpOrders, order_warps
from gpa_lsp.execution.traces.request_columns import RequestColumns, measure_requests
from gpa_lsp.execution.traces.request_kinds import EqualRows, RequestKinds, find_equal_rows, find_kinds
from gpa_lsp.foundation.native.shared_library import find_core


class PieceRows:
    """Its rows by kind, and those of global memory and textures in the orders of their warps; each part is found when it is asked for.

    Args:
        piece: of a trace.
    """

    def __init__(self, piece: Trace) -> None:
        self.piece = piece

    @cached_property
    def access_kinds(self) -> npt.NDArray[np.uint8]:
        """The :class:`~gpa_lsp.code.ptx.static_instructions.AccessKind` of each instruction; what states none is a load."""
        kinds = (AccessKind.LOAD if one.kind is None else one.kind for one in self.piece.instructions)
        return np.fromiter(kinds, np.uint8, len(self.piece.instructions))

    @cached_property
    def kinds(self) -> RequestKinds | None:
        """Which rows are alike; None where the core does not say."""
        return find_kinds(self.piece.accesses, len(self.piece.instructions))

    @cached_property
    def measured(self) -> RequestColumns | None:
        """What a row of each kind touches; it says nothing of local memory."""
        return None if self.kinds is None else measure_requests(self.piece.accesses, self.kinds.rows)

    @cached_property
    def requests(self) -> EqualRows | None:
        """Which rows access the same bytes with the same lanes; None where the core does not say."""
        return None if self.kinds is None else find_equal_rows(self.kinds.shape, self.kinds.base)

    @cached_property
    def arrays(self) -> Integers | None:
        """int64[rows of the piece], the array that each lies in; OUTSIDE where it is none, or several. None where kinds are not known."""
        if self.kinds is None:
            return None
        has_arrays = np.isin(self.piece.accesses.space[self.kinds.rows], ARRAY_SPACES)
        return self.kinds.find_arrays_of_rows(ArrayIndex(self.piece.buffers), has_arrays)

    @cached_property
    def is_global(self) -> Marks:
        """bool[rows of the piece], those of global memory and textures."""
        space = self.piece.accesses.space
        found: Marks = (space == Space.GLOBAL) | (space == Space.TEXTURE)
        return found

    @cached_property
    def warps(self) -> NumberedWarps:
        """Of all rows."""
        return number_warps(self.piece.accesses.block, self.piece.accesses.warp)

    @cached_property
    def orders(self) -> WarpOrders:
        """Of these; its turns are those of all rows."""
        return order_warps(self.piece.accesses, self.warps, self.is_global)

    @property
    def turns(self) -> Integers:
        """int64[rows of the piece], see :func:`~gpa_lsp.execution.traces.references.number_turns`."""
        return self.orders.turns

    @cached_property
    def sectors(self) -> SectorLists:
        """Of these, ascending."""
        return list_sectors(self.piece.accesses, np.flatnonzero(self.is_global), self.requests, self.kinds)

    @property
    def has_sectors(self) -> bool:
        """Whether they were listed."""
        return "sectors" in self.__dict__

    def find_sectors(self, rows: Integers) -> SectorLists:
        """Of some of them, by row of the piece."""
        return self.sectors.choose(self._places[rows])

    def count_sectors(self, is_counted: Marks) -> int:
        """Distinct sectors of those of some instructions, bool by instruction, together."""
        core, sets, instruction = find_core(), self.sets, self.piece.accesses.instruction
        if core is not None and sets is not None:
            known = np.ascontiguousarray(instruction), len(instruction), is_counted, len(is_counted)
            found = core.call("count_sectors", *known, len(self.sectors.size), *sets.list_arguments())
            if found >= 0:
                return found
        rows = np.flatnonzero(self.is_global & is_counted[instruction])
        return len(np.unique(self.sectors.sector[self.find_sectors(rows).mark_used()]))

    @cached_property
    def _places(self) -> Integers:
        return np.cumsum(self.is_global) - 1

    @cached_property
    def sets(self) -> LineSets | None:
        """Their sets of lines, by row of the piece; None where the core does not do it."""
        core = find_core()
        if core is None:
            return None
        sets = number_line_sets(core, self.sectors)
        rows = np.flatnonzero(self.is_global)
        return None if sets is None else sets.place_rows(self.sectors.number, rows, len(self.piece.accesses))
