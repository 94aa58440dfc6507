"""Lanes of the core as the numpy engine sees them: :class:`LaneFragment`."""

from typing import Any

import numpy as np
import numpy.typing as npt

from gpa_lsp.execution.emulator.compiled.frames import FrameLayout
from gpa_lsp.execution.emulator.compiled.model import LANES
from gpa_lsp.execution.emulator.engine.fragments import Batch, Fragment, Frame, Link, Segment
from gpa_lsp.execution.emulator.engine.geometry import WarpSet
from gpa_lsp.execution.emulator.engine.values import Value, pack_lanes

Masks = npt.NDArray[np.uint32]


class LaneRegisters:
    """The registers of some warps: read from their frames, and written back when the lanes go on.

    Args:
        layout: of the frames.
        template: what a register holds that has no place.
        frames: uint8[warps, bytes], of the whole batch.
        rows: the warps.
    """

    __slots__ = ("_changed", "_frames", "_layout", "_rows", "_template", "_values")

    def __init__(self, layout: FrameLayout, template: list[Value], frames: npt.NDArray[np.uint8], rows: Any) -> None:
        self._layout = layout
        self._template = template
        self._frames = frames
        self._rows = rows
        self._values: dict[int, Value] = {}
        self._changed: set[int] = set()

    def __getitem__(self, slot: int) -> Value:
        """The value of a register over the warps."""
        found = self._values.get(slot)
        if found is None:
            found = self._values[slot] = self._read(slot)
        return found

    def __setitem__(self, slot: int, value: Value) -> None:
        """Give a register another value."""
        self._values[slot] = value
        self._changed.add(slot)

    def turn_to(self, rows: Any) -> "LaneRegisters":
        """Those of other warps."""
        return LaneRegisters(self._layout, self._template, self._frames, rows)

    def copy(self) -> "LaneRegisters":
        """The same, with what was changed."""
        other = self.turn_to(self._rows)
        other._values = dict(self._values)
        other._changed = set(self._changed)
        return other

    def write_back(self, mask: Value) -> None:
        """Put what was changed into the frames.

        Args:
            mask: bool[n], of these lanes; None for all.
        """
        for slot in self._changed:
            place = self._layout.find(slot)
            if place is None or place < 0:
                continue
            dtype = self._layout.dtype(slot)
            value = self._values[slot]
            size = dtype.itemsize * LANES
            lanes = len(self._rows) * LANES
            spread = np.ascontiguousarray(np.broadcast_to(value, (lanes,)))
            if mask is not None:
                spread = np.where(mask, spread.view(dtype), self._read(slot))
            self._frames[self._rows, place : place + size] = spread.view(np.uint8).reshape(-1, size)
        self._changed.clear()

    def _read(self, slot: int) -> Value:
        place = self._layout.find(slot)
        if place is None or place < 0:
            return self._template[slot]
        dtype = self._layout.dtype(slot)
        rows = self._frames[self._rows, place : place + dtype.itemsize * LANES]
        return np.ascontiguousarray(rows).view(dtype).reshape(-1)


class LaneFragment(Fragment):
    """Lanes that stand at one place, whose registers lie in frames. Its warp set has the warps with a lane of it, and no others."""

    __slots__ = ()

    def narrow(self, mask: Value, count: int, segment: Segment | None = None) -> "LaneFragment":
        """A fragment of some of its lanes, over the same warps."""
        whole = count == self.warps.lanes
        child = LaneFragment(
            batch=self.batch,
            warps=self.warps,
            mask=None if whole else np.ascontiguousarray(mask),
            count=count,
            registers=self.registers.copy(),
            callers=(),
            frame=self.frame,
            link=None,
        )
        child.segment = self.segment if segment is None else segment
        return child

    def merge_all(self, fragments: list[Fragment]) -> Fragment:
        """Their lanes together; their registers are written back first."""
        if len(fragments) == 1:
            return self
        masks = np.zeros(len(self.batch.root.ids), np.uint32)
        for one in fragments:
            write_back(one)
            masks[one.warps.ids] |= pack_lanes(one.active())
        registers: Any = self.registers
        merged = build_fragment(self.batch, self.frame, masks, registers)
        merged.segment = self.segment
        return merged


def write_back(fragment: Fragment) -> None:
    """Put what a fragment's lanes changed into their frames."""
    registers: Any = fragment.registers
    registers.write_back(fragment.mask)


def build_fragment(batch: Batch, frame: Frame, masks: Masks, known: LaneRegisters) -> LaneFragment:
    """The fragment of some lanes.

    Args:
        masks: uint32[warps of the batch], at least one lane.
    """
    rows = np.flatnonzero(masks)
    whole = len(rows) == len(masks)
    warps = batch.root if whole else WarpSet(batch, batch.root.ids[rows])
    chosen = masks[rows]
    count = int(np.bitwise_count(chosen).sum())
    mask = None
    if count != len(rows) * LANES:
        mask = np.unpackbits(chosen.astype("<u4").view(np.uint8), bitorder="little").view(np.bool_)
    registers: Any = known.turn_to(rows)
    return LaneFragment(
        batch=batch, warps=warps, mask=mask, count=count, registers=registers, callers=(), frame=frame, link=None
    )


def detach(fragment: LaneFragment) -> Fragment:
    """The same lanes, of which frames of the core know no more: their registers are those of a function that they have entered."""
    warps, root = fragment.warps, fragment.batch.root
    link = None if warps is root else Link(root, warps.ids, [], [[] for _ in fragment.levels], None)
    apart = Fragment(
        batch=fragment.batch,
        warps=warps,
        mask=fragment.mask,
        count=fragment.count,
        registers=fragment.registers,
        callers=fragment.callers,
        frame=fragment.frame,
        link=link,
    )
    apart.segment = fragment.segment
    return apart
