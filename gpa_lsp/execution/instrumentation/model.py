"""What instrumented PTX writes, and where: :class:`InstrumentedKernel` of :class:`Site`.

A record is some words of 64 bits, written by the lanes that come to a site together: three of a head, by the first of them, then some of each lane.

* word 0: number of the site, number of the block (32 bits each, the first one in the lower half, as in all of them);
* word 1: lanes that are recorded, number of the warp in its block; never 0, so that what was reserved and not written shows;
* word 2: number of the way of calls, and for a branch the lanes that jumped;
* then, by ascending lane, what is recorded of each.
"""

from enum import IntEnum

from msgspec import Struct

from gpa_lsp.code.ptx.model import PtxInstruction, Space
from gpa_lsp.code.ptx.static_instructions import StaticInstruction
from gpa_lsp.foundation.records import ColumnRecord

HEAD_WORDS = 3
WORD_BYTES = 8
MOST_WORDS = (1 << 32) - 2  # Of all records: their places are passed from lane to lane as 32 bits

# Variables of the module: words of :class:`StateWord`; the records; which blocks are traced; each thread's way of calls; where each call leads from
# each way; addresses of variables
STATE, ROWS, BLOCKS, PATHS, CALLS, PLACES = (
    "gpa_lsp_state",
    "gpa_lsp_rows",
    "gpa_lsp_blocks",
    "gpa_lsp_paths",
    "gpa_lsp_calls",
    "gpa_lsp_places",
)
VARIABLES = (STATE, ROWS, BLOCKS, PATHS, CALLS, PLACES)

NO_PLACE = (1 << 64) - 1  # The address of a variable that no thread told


class StateWord(IntEnum):
    """Words of :data:`STATE`."""

    ROWS = 0  # Address of the records
    CAPACITY = 1  # Words there is room for
    NEXT = 2  # Words that were reserved, also those there was no room for
    DROPPED = 3  # Records there was no room for
    BLOCKS = 4  # Address of a bit for each block: whether it is traced
    BLOCK_MASK = 5  # Bits of a block's number by which its bit is found
    PATHS = 6  # Address of each thread's way of calls


STATE_WORDS = len(StateWord)
# Where a recorded generic address holds its :class:`~gpa_lsp.code.ptx.model.Space`; addresses of GPUs have fewer bits
SPACE_SHIFT = 60


class SiteKind(IntEnum):
    """What a record of a site tells."""

    ACCESS = 0  # A lane's address
    MATRIX = 1  # Address and stride that a lane of ``wmma.load`` or ``wmma.store`` gives
    BRANCH = 2
    TABLE = 3  # The index of a ``brx.idx``; 2^32 where its guard is false
    ENTRY = 4


# Words of each lane
LANE_WORDS = {SiteKind.ACCESS: 1, SiteKind.MATRIX: 2, SiteKind.BRANCH: 0, SiteKind.TABLE: 1, SiteKind.ENTRY: 0}


class Site(Struct, frozen=True, kw_only=True):
    """Where something is recorded."""

    kind: SiteKind  # what
    static: int  # number of the static instruction; of an entry the number of the basic block
    instruction: PtxInstruction | None = None  # that is recorded; None for entries
    space: Space = Space.GENERIC  # of an access; GENERIC where each address says it, see :data:`SPACE_SHIFT`
    size_bytes: int = 0  # of an access, per lane
    lanes: int = 32  # of an access: those from the first one on whose addresses count (``ldmatrix``)


class Place(Struct, frozen=True, kw_only=True):
    """A variable whose address in its own space the kernel tells."""

    name: str  # of the variable
    space: Space  # SHARED, LOCAL or CONST
    offset_bytes: int  # where a trace has it in shared and local memory; 0 of a constant
    size_bytes: int  # of it; all that follows of a dynamic array


class InstrumentedKernel(ColumnRecord, frozen=True, kw_only=True):
    """PTX that records itself."""

    kernel: str  # mangled name
    text: str  # the whole module
    sites: tuple[Site, ...]  # by number
    instructions: tuple[StaticInstruction, ...]  # the static instructions, as an emulation numbers them
    # by number, the calls that lead to a function, innermost first; the first is that of the kernel itself. None for ways that are not told apart.
    paths: tuple[tuple[int, ...] | None, ...]
    places: tuple[Place, ...]  # in the order of :data:`PLACES`
    has_calls: bool  # threads keep their way of calls in :data:`PATHS`
    unrecorded: tuple[str, ...] = ()  # instructions that access memory and are not recorded, each once
