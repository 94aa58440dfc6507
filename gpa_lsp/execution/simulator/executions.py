"""The executions of all blocks of an SM, one after the other: :class:`Executions`."""

import numpy as np

from gpa_lsp.execution.simulator.streams import BlockStream


class Executions:
    """Columns as in :class:`~gpa_lsp.execution.simulator.streams.BlockStream`, with blocks appended as they begin."""

    def __init__(self) -> None:
        self.rows: list[int] = []
        self.passes: list[int] = []
        self.lines: list[int] = []
        self.first_sector: list[int] = []
        self.last_sector: list[int] = []
        self.sectors: list[int] = []
        self.weights: list[float] = []

    def append(self, stream: BlockStream) -> int:
        """Add a block; where its executions begin."""
        base, sector_base = len(self.rows), len(self.sectors)
        self.rows.extend(stream.rows.tolist())
        self.passes.extend(stream.passes.tolist())
        self.lines.extend(stream.lines.tolist())
        self.weights.extend(stream.weights.tolist())
        self.first_sector.extend((stream.first_sector + sector_base).tolist())
        self.last_sector.extend((stream.last_sector + sector_base).tolist())
        self.sectors.extend((stream.sectors + np.where(stream.is_private, stream.shift, 0)).tolist())
        return base
