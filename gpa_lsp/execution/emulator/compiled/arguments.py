"""What lanes take into a function and back: :func:`lower_entry`, :func:`lower_landing`."""

from gpa_lsp.execution.emulator.compiled.lowering import FrameLayout, Lowering, NotLowered, Operation
from gpa_lsp.execution.emulator.engine.fragments import BoundFunction, CallEdge
from gpa_lsp.execution.emulator.engine.layout import Piece


def lower_entry(lowering: Lowering, edge: CallEdge, callee: BoundFunction, frames: FrameLayout) -> list[Operation]:
    """Hand arguments over to a function, whose registers lie behind those of its caller; its other registers are zeros.

    Raises:
        NotLowered: an argument has no place.
    """
    behind, operations = lowering.frames.frame_bytes, []
    given = [{piece: lowering.frames.find(slot) for piece, slot in parts.items()} for parts in edge.arguments]
    written: set[int] = set()
    for parts, wanted in zip(given, callee.parameters, strict=False):
        for piece, slot in wanted.items():
            operations += _pass(lowering, edge, parts, piece, _behind(frames, slot, behind))
            written.add(slot)
    for slot in callee.segments[0].live_in:
        if slot not in written and slot not in callee.constants:
            size = callee.dtypes[slot].itemsize
            operations += _pass(lowering, edge, {}, (0, size), _behind(frames, slot, behind))
    return operations


def lower_landing(lowering: Lowering, edge: CallEdge, callee: BoundFunction, frames: FrameLayout) -> list[Operation]:
    """Take what a function returns.

    Raises:
        NotLowered: it has no place.
    """
    behind, operations = lowering.frames.frame_bytes, []
    given = [{piece: _behind(frames, slot, behind) for piece, slot in parts.items()} for parts in callee.returns]
    for parts, wanted in zip(given, edge.following.returned, strict=False):
        for piece, slot in wanted.items():
            operations += _pass(lowering, edge, parts, piece, lowering.frames.find(slot))
    return operations


def _behind(frames: FrameLayout, slot: int, behind: int) -> int | None:
    place = frames.find(slot)
    return None if place is None or place < 0 else behind + place


def _pass(
    lowering: Lowering, edge: CallEdge, parts: dict[Piece, int | None], piece: Piece, result: int | None
) -> list[Operation]:
    """Give a part of a parameter, of other parts."""
    lowering.begin_call(edge.static)
    known = {one: place for one, place in parts.items() if place is not None}
    if result is None or len(known) < len(parts):
        raise NotLowered
    lowering.move(lowering.assemble(known, piece), result, piece[1])
    return lowering.finish()
