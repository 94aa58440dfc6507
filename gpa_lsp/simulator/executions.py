"""The executions of all blocks of an SM, one after the other: :class:`Executions`."""

from gpa_lsp.simulator.streams import BlockStream


class Executions:
    """Columns as in :class:`~gpa_lsp.simulator.streams.BlockStream`, with blocks appended as they begin."""

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
        self.rows.extend(stream.rows)
        self.passes.extend(stream.passes)
        self.lines.extend(stream.lines)
        self.weights.extend(stream.weights)
        self.first_sector.extend([one + sector_base for one in stream.first_sector])
        self.last_sector.extend([one + sector_base for one in stream.last_sector])
        self.sectors.extend(stream.sectors)
        return base
