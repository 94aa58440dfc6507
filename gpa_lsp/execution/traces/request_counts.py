"""The requests of each instruction, and nothing else of a trace: :class:`RequestCollector`."""

from collections.abc import Mapping

from msgspec import Struct

from gpa_lsp.code.ptx.model import Space
from gpa_lsp.code.ptx.static_instructions import StaticInstruction
from gpa_lsp.execution.emulator.trace import Trace
from gpa_lsp.execution.traces.access_sums import AccessAccumulator
from gpa_lsp.execution.traces.bank_conflicts import BankAccumulator
from gpa_lsp.execution.traces.piece_rows import PieceRows


class RequestCounts(Struct, frozen=True, kw_only=True):
    """Warp-level accesses of an instruction to one space that have an active lane."""

    requests: int = 0  # how many
    lanes: int = 0  # active lanes over all of them
    sectors: int = 0  # distinct sectors of 32 bytes of each; 0 for shared memory
    wavefronts: int = 0  # passes through shared memory; 0 for other spaces


class RequestCollector:
    """Takes pieces of a trace. It is a :class:`~gpa_lsp.execution.emulator.model.TraceSink`.

    Attributes:
        instructions: of the trace, as far as it was taken.
        is_complete: no piece lacks rows.
    """

    def __init__(self) -> None:
        self._accesses: AccessAccumulator | None = None
        self._banks = BankAccumulator()
        self.instructions: tuple[StaticInstruction, ...] = ()
        self.is_complete = True

    def add(self, piece: Trace) -> None:
        """Take one piece."""
        if self._accesses is None:
            self._accesses = AccessAccumulator(piece.buffers, footprint_sectors=0)
        rows = PieceRows(piece)
        self._accesses.add(rows)
        self._banks.add(rows)
        self.instructions = piece.instructions
        self.is_complete &= piece.is_complete

    def finish(self) -> Mapping[int, Mapping[Space, RequestCounts]]:
        """The requests of each instruction, all ways to it together, by the space they went to."""
        found: dict[int, dict[Space, RequestCounts]] = {}
        for group in () if self._accesses is None else self._accesses.finish().instructions:
            totals = group.totals
            one = RequestCounts(requests=totals.requests, lanes=totals.lanes, sectors=totals.sectors)
            self._put(found, group.instruction, group.space, one)
        for bank in self._banks.finish():
            one = RequestCounts(requests=bank.requests, lanes=bank.lanes, wavefronts=bank.wavefronts)
            self._put(found, bank.instruction, Space.SHARED, one)
        return found

    def _put(
        self, found: dict[int, dict[Space, RequestCounts]], instruction: int, space: Space, added: RequestCounts
    ) -> None:
        own = self.instructions[instruction].same_as
        spaces = found.setdefault(instruction if own is None else own, {})
        known = spaces.get(space, RequestCounts())
        spaces[space] = RequestCounts(
            requests=known.requests + added.requests,
            lanes=known.lanes + added.lanes,
            sectors=known.sectors + added.sectors,
            wavefronts=known.wavefronts + added.wavefronts,
        )
