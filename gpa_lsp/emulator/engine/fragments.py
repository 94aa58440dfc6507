"""Lanes that stand at the same place: :class:`Fragment`; how it is split, compacted and put back onto more warps."""

from typing import TYPE_CHECKING, Any

import numpy as np

from gpa_lsp.emulator.engine.geometry import Batch, WarpSet
from gpa_lsp.emulator.engine.values import Value, find_active_rows, scatter_rows, take_rows

if TYPE_CHECKING:
    from gpa_lsp.emulator.engine.segments import Frame, Segment

Registers = list[Value]
_FEWEST_WARPS = 16
"""Smaller warp sets are not compacted: their arrays cost nothing."""


class Link:
    """How a compacted fragment hangs on the warp set it came from.

    A register that is still the very object it was at the compaction need not be put back: the larger set has it already.

    Attributes:
        warps: the larger warp set.
        rows: int64[w], positions of the compacted warps in it.
        levels: register lists of the fragment that was compacted, outermost caller first.
        gathered: what the compacted fragment began with, likewise.
        link: of the fragment that was compacted.
    """

    __slots__ = ("gathered", "levels", "link", "rows", "warps")

    def __init__(
        self, warps: WarpSet, rows: Any, levels: list[Registers], gathered: list[Registers], link: "Link | None"
    ) -> None:
        self.warps = warps
        self.rows = rows
        self.levels = levels
        self.gathered = gathered
        self.link = link


class Fragment:
    """Lanes of a warp set at the same place of the same chain of calls.

    Attributes:
        warps: the warp set its arrays lie over.
        mask: bool[n], contiguous: which lanes are its own; None for all.
        count: how many lanes are its own; at least 1.
        warp_count: warps with at least one of them.
        registers: of the function it is in, by slot.
        callers: registers of the callers, outermost first; never written into.
        frame: the chain of calls.
        link: None while it lies over all warps of its batch.
        segment: what it executes next.
    """

    __slots__ = ("callers", "count", "frame", "link", "mask", "registers", "segment", "warp_count", "warps")

    def __init__(
        self,
        *,
        warps: WarpSet,
        mask: Value,
        count: int,
        registers: Registers,
        callers: tuple[Registers, ...],
        frame: "Frame",
        link: Link | None,
    ) -> None:
        self.warps = warps
        self.mask = mask
        self.count = count
        self.warp_count = len(warps.ids) if mask is None else int(np.count_nonzero(find_active_rows(mask)))
        self.registers = registers
        self.callers = callers
        self.frame = frame
        self.link = link
        self.segment: Segment = frame.function.segments[0]

    @property
    def batch(self) -> Batch:
        """The batch."""
        return self.warps.batch

    @property
    def levels(self) -> list[Registers]:
        """Its register lists, outermost caller first, its own last."""
        return [*self.callers, self.registers]

    def active(self) -> Value:
        """Its mask, as an array in any case."""
        return np.ones(self.warps.lanes, np.bool_) if self.mask is None else self.mask

    def narrow(self, mask: Value, count: int, segment: "Segment | None" = None) -> "Fragment":
        """A fragment of some of its lanes.

        Args:
            mask: bool[n], a subset of its own lanes.
            count: how many; at least 1.
            segment: where they go: only what is live there need be kept. None keeps all registers, and all warps.
        """
        whole = count == self.warps.lanes
        child = Fragment(
            warps=self.warps,
            mask=None if whole else np.ascontiguousarray(mask),
            count=count,
            registers=self.registers.copy(),
            callers=self.callers,
            frame=self.frame,
            link=self.link,
        )
        child.segment = self.segment if segment is None else segment
        if segment is not None:
            compact(child)
        return child


def list_live_slots(fragment: Fragment) -> list[tuple[int, ...]]:
    """Slots that are still needed, of each level of the fragment's calls."""
    lives = [fragment.segment.live_in]
    frame = fragment.frame
    while frame.parent is not None and frame.return_to is not None:
        lives.append(frame.return_to.live_in)
        frame = frame.parent
    lives.reverse()
    return lives


def compact(fragment: Fragment) -> None:
    """Drop warps without a lane, if they are more than half. Registers that are not live at its segment are not kept."""
    total = len(fragment.warps.ids)
    if total < _FEWEST_WARPS or fragment.warp_count * 2 >= total or fragment.mask is None:
        return
    rows = np.flatnonzero(find_active_rows(fragment.mask))
    levels = fragment.levels
    gathered = [
        gather_live(registers, live, rows) for registers, live in zip(levels, list_live_slots(fragment), strict=True)
    ]
    fragment.link = Link(fragment.warps, rows, levels, gathered, fragment.link)
    fragment.warps = WarpSet(fragment.batch, fragment.warps.ids[rows])
    mask = take_rows(fragment.mask, rows)
    fragment.mask = None if fragment.count == fragment.warps.lanes else mask
    fragment.callers = tuple(registers.copy() for registers in gathered[:-1])
    fragment.registers = gathered[-1].copy()


def gather_live(registers: Registers, live: tuple[int, ...], rows: Any) -> Registers:
    """The live registers over some warps; the others hold a uniform value (constants) or zero."""
    out = [value if not value.ndim else value.dtype.type(0) for value in registers]
    for slot in live:
        out[slot] = take_rows(registers[slot], rows)
    return out


def lift(fragment: Fragment) -> Fragment:
    """The same lanes over the warp set the fragment was compacted from.

    Raises:
        AssertionError: it was never compacted.
    """
    link = fragment.link
    assert link is not None
    lanes = link.warps.lanes
    mask = np.zeros(lanes, np.bool_)
    mask.reshape(-1, 32)[link.rows] = True if fragment.mask is None else fragment.mask.reshape(-1, 32)
    levels: list[Registers] = []
    for depth, (registers, live) in enumerate(zip(fragment.levels, list_live_slots(fragment), strict=True)):
        known = depth < len(link.levels)
        lifted = [value if not value.ndim else value.dtype.type(0) for value in registers]
        for slot in live:
            value = registers[slot]
            if known and slot < len(link.gathered[depth]) and value is link.gathered[depth][slot]:
                lifted[slot] = link.levels[depth][slot]
            elif value.ndim:
                lifted[slot] = scatter_rows(value, link.rows, fragment.mask, value.dtype.type(0), lanes)
        levels.append(lifted)
    out = Fragment(
        warps=link.warps,
        mask=None if fragment.count == lanes else mask,
        count=fragment.count,
        registers=levels[-1],
        callers=tuple(levels[:-1]),
        frame=fragment.frame,
        link=link.link,
    )
    out.segment = fragment.segment
    return out
