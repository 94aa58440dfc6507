"""Whether a prediction agrees with the blocks that were traced for it: :func:`find_miscounts`, :func:`find_shortfalls`."""

from collections.abc import Iterator

import numpy as np

from gpa_lsp.code.ptx.static_instructions import AccessKind
from gpa_lsp.execution.emulator.trace import Trace
from gpa_lsp.execution.traces.lane_addresses import Marks
from gpa_lsp.execution.traces.piece_rows import PieceRows
from gpa_lsp.execution.volumes.dimensions import SECTOR_BYTES
from gpa_lsp.execution.volumes.expressions import KernelAccesses, LaunchShape, ThreadRegion
from gpa_lsp.execution.volumes.groups import group_accesses
from gpa_lsp.execution.volumes.model import TOLERANCE_RATIO, Contradiction, Rule, VolumePrediction
from gpa_lsp.execution.volumes.traffic import count_requested_sectors
from gpa_lsp.execution.volumes.waves import BlockBox


def find_miscounts(kernel: KernelAccesses, trace: Trace, piece: PieceRows | None = None) -> tuple[Contradiction, ...]:
    """Sectors that a kernel's expressions give for the traced blocks, where the trace itself has others."""
    piece = PieceRows(trace) if piece is None else piece
    x, y, z = (count * size for count, size in zip(trace.grid, trace.block_threads, strict=True))
    launch = LaunchShape(block=trace.block_threads, grid=trace.grid, updates=(x, y, z))
    everywhere = ThreadRegion(low=(0, 0, 0), high=(x, y, z))
    found = []
    for name, loads in (("loads", True), ("stores and atomics", False)):
        is_counted = np.zeros(len(trace.instructions), dtype=np.bool_)
        is_counted[
            [one.instruction for one in kernel.accesses if one.instruction is not None and one.is_store is not loads]
        ] = True
        counted = count_traced(piece, is_counted) * SECTOR_BYTES
        given = SECTOR_BYTES * sum(
            count_requested_sectors(group, entry.array.base_bytes, launch, everywhere, box)
            for entry in group_accesses(kernel)
            for group in entry.groups
            if group.is_store is not loads
            for box in _list_boxes(trace)
        )
        if abs(given - counted) > TOLERANCE_RATIO * max(given, counted):
            least, most = sorted(((given, f"{name} by expressions"), (counted, f"{name} as emulated")))
            # They must be equal, so that the larger one breaks the rule.
            found.append(
                Contradiction(
                    rule=Rule.COUNTED, low_name=most[1], low_bytes=most[0], high_name=least[1], high_bytes=least[0]
                )
            )
    return tuple(found)


def find_shortfalls(
    prediction: VolumePrediction, trace: Trace, piece: PieceRows | None = None
) -> tuple[Contradiction, ...]:
    """What the traced blocks alone touch, where the whole launch is predicted to move less of it to or from DRAM."""
    piece = PieceRows(trace) if piece is None else piece
    kinds = np.array([-1 if one.kind is None else one.kind for one in trace.instructions], dtype=np.int8)
    found = []
    for verb, way, kind, moved in (
        ("read", "loads from DRAM", AccessKind.STORE, prediction.volumes.dram_load),
        ("write", "stores to DRAM", AccessKind.LOAD, prediction.volumes.dram_store),
    ):
        touched = count_touched(piece, kinds != kind) * SECTOR_BYTES
        given = prediction.scale_to_launch(moved)
        if touched > given * (1 + TOLERANCE_RATIO):
            found.append(
                Contradiction(
                    rule=Rule.COUNTED,
                    low_name=f"sectors the traced blocks {verb}",
                    low_bytes=float(touched),
                    high_name=way,
                    high_bytes=given,
                )
            )
    return tuple(found)


def count_touched(piece: PieceRows, is_counted: Marks) -> int:
    """Distinct sectors of global memory and textures that some instructions access, all together."""
    return piece.count_sectors(is_counted)


def _list_boxes(trace: Trace) -> Iterator[BlockBox]:
    """The traced blocks, those beside each other along x together."""
    width, height, _ = trace.grid
    blocks = np.sort(trace.traced_blocks.astype(np.int64))
    starts = np.flatnonzero((np.diff(blocks, prepend=-2) != 1) | (blocks % width == 0))
    for first, count in zip(blocks[starts].tolist(), np.diff(starts, append=len(blocks)).tolist(), strict=True):
        x, y, z = first % width, first // width % height, first // (width * height)
        yield BlockBox(low=(x, y, z), high=(x + count, y + 1, z + 1))


def count_traced(piece: PieceRows, is_counted: Marks) -> int:
    """Distinct sectors of each warp-level access of some instructions, summed."""
    is_of_kind = is_counted[piece.piece.accesses.instruction[piece.kinds.rows]]
    return int((piece.measured.sectors * piece.kinds.counts)[is_of_kind].sum())
