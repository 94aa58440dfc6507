"""What instrumented PTX writes, and where: :class:`InstrumentedKernel` of :class:`Site`.

A record is some words of 64 bits, written by the lanes that come to a site together: three of a head, by the first of them, then some of each lane.

* word 0: number of the site, number of the block (32 bits each, the first one in the lower half, as in all of them);
* word 1: lanes that are recorded, number of the warp in its block; never 0, so that what was reserved and not written shows;
* word 2: number of the way of calls, and for a branch the lanes that jumped;
* then, by ascending lane, what is recorded of each.
"""

from dataclasses import field
from enum import IntEnum

from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.emulator.trace import StaticInstruction
from gpa_lsp.ptx.model import PtxInstruction, Space

HEAD_WORDS = 3
WORD_BYTES = 8
MOST_WORDS = (1 << 32) - 2
"""Of all records: their places are passed from lane to lane as 32 bits."""

STATE, ROWS, BLOCKS, PATHS, CALLS, PLACES = (
    "gpa_lsp_state",
    "gpa_lsp_rows",
    "gpa_lsp_blocks",
    "gpa_lsp_paths",
    "gpa_lsp_calls",
    "gpa_lsp_places",
)
"""Variables of the module: words of :class:`StateWord`; the records; which blocks are traced; each thread's way of calls; where each call
leads from each way; addresses of variables."""
VARIABLES = (STATE, ROWS, BLOCKS, PATHS, CALLS, PLACES)

NO_PLACE = (1 << 64) - 1
"""The address of a variable that no thread told."""


class StateWord(IntEnum):
    """Words of :data:`STATE`."""

    ROWS = 0
    """Address of the records."""
    CAPACITY = 1
    """Words there is room for."""
    NEXT = 2
    """Words that were reserved, also those there was no room for."""
    DROPPED = 3
    """Records there was no room for."""
    BLOCKS = 4
    """Address of a bit for each block: whether it is traced."""
    BLOCK_MASK = 5
    """Bits of a block's number by which its bit is found."""
    PATHS = 6
    """Address of each thread's way of calls."""


STATE_WORDS = len(StateWord)
SPACE_SHIFT = 60
"""Where a recorded generic address holds its :class:`~gpa_lsp.ptx.model.Space`; addresses of GPUs have fewer bits."""


class SiteKind(IntEnum):
    """What a record of a site tells."""

    ACCESS = 0
    """A lane's address."""
    MATRIX = 1
    """Address and stride that a lane of ``wmma.load`` or ``wmma.store`` gives."""
    BRANCH = 2
    TABLE = 3
    """The index of a ``brx.idx``; 2^32 where its guard is false."""
    ENTRY = 4


LANE_WORDS = {SiteKind.ACCESS: 1, SiteKind.MATRIX: 2, SiteKind.BRANCH: 0, SiteKind.TABLE: 1, SiteKind.ENTRY: 0}
"""Words of each lane."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """Where something is recorded.

    Attributes:
        kind: what.
        static: number of the static instruction; of an entry the number of the basic block.
        instruction: that is recorded; None for entries.
        space: of an access; GENERIC where each address says it, see :data:`SPACE_SHIFT`.
        size_bytes: of an access, per lane.
        lanes: of an access: those from the first one on whose addresses count (``ldmatrix``).
    """

    kind: SiteKind
    static: int
    instruction: PtxInstruction | None = None
    space: Space = Space.GENERIC
    size_bytes: int = 0
    lanes: int = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A variable whose address in its own space the kernel tells.

    Attributes:
        name: of the variable.
        space: SHARED, LOCAL or CONST.
        offset_bytes: where a trace has it in shared and local memory; 0 of a constant.
        size_bytes: of it; all that follows of a dynamic array.
    """

    name: str
    space: Space
    offset_bytes: int
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class InstrumentedKernel:
    """PTX that records itself.

    Attributes:
        kernel: mangled name.
        text: the whole module.
        sites: by number.
        instructions: the static instructions, as an emulation numbers them.
        paths: by number, the calls that lead to a function, innermost first; the first is that of the kernel itself. None for ways that are
            not told apart.
        places: in the order of :data:`PLACES`.
        has_calls: threads keep their way of calls in :data:`PATHS`.
        unrecorded: instructions that access memory and are not recorded, each once.
    """

    kernel: str
    text: str = field(repr=False)
    sites: tuple[Site, ...] = field(repr=False)
    instructions: tuple[StaticInstruction, ...] = field(repr=False)
    paths: tuple[tuple[int, ...] | None, ...] = field(repr=False)
    places: tuple[Place, ...]
    has_calls: bool
    unrecorded: tuple[str, ...] = ()
