"""What is known of the requests of a kernel without a launch: :class:`SymbolicAccesses`."""

from enum import Enum

from msgspec import Struct

from gpa_lsp.code.ptx.model import PtxInstruction, Space
from gpa_lsp.code.ptx.static_instructions import AccessKind
from gpa_lsp.code.symbolic_accesses.block_shape import Shape
from gpa_lsp.code.symbolic_accesses.forms import Form, Marks, SymbolTable
from gpa_lsp.foundation.records import ColumnRecord


class WarpPattern(Enum):
    """How the threads of a warp access memory together."""

    UNIFORM = "uniform"  # One address
    # As few sectors, or passes, as there can be for so many bytes, where the array is aligned
    CONTIGUOUS = "contiguous"
    MISALIGNED = "misaligned"  # Contiguous, but across one sector more than needed
    # More sectors, or passes, than needed, by a distance between threads that is a number or follows from parameters
    STRIDED = "strided"
    SCATTERED = "scattered"  # By values that were loaded
    UNKNOWN = "unknown"


class Factor(Struct, frozen=True, kw_only=True):
    """One factor of a stride that is not known before the launch."""

    name: str  # as the source has it (``blockDim.x``); empty for a parameter, and for what has no name there
    parameter: int | None  # offset in the kernel's parameters; None for others


class StrideTerm(Struct, frozen=True, kw_only=True):
    """One term of a stride."""

    bytes: int  # coefficient
    factors: tuple[Factor, ...]  # product of them; empty for the constant


class SymbolicAccess(ColumnRecord, frozen=True, kw_only=True):
    """One instruction that accesses global or shared memory."""

    instruction: PtxInstruction  # of the PTX
    kind: AccessKind  # load, store, atomic or reduction
    space: Space  # global or shared memory
    bytes_each: int  # of one thread
    pattern: WarpPattern  # of a warp
    # sectors of a request to global memory or passes (wavefronts) of one to shared memory, mean over warps; the smallest where it depends on what is
    # not known; None for scattered and unknown ones
    cost: float | None
    most: float | None  # the largest where it depends on what is not known; None for scattered and unknown ones
    ideal: float  # as few as there can be
    # distance of neighbouring threads; empty where it is none or not the same for all
    stride: tuple[StrideTerm, ...] = ()
    # product of what is not known that the cost depends on; empty where it depends on nothing, or on several such products, which then are taken to
    # be large
    unknown: tuple[Factor, ...] = ()
    least: int | None = None  # value of that product from which on the cost is reached; None where it is always
    loads: PtxInstruction | None = None  # the instruction whose result decides a scattered address; None for others
    is_certain: bool = True  # holds for every warp whose threads all take part
    address: Form
    active: Marks


class Division(Enum):
    """How a branch divides the threads of a warp."""

    EVERY_WARP = "in every warp"
    REMAINDER = "by a remainder"


class DividingBranch(Struct, frozen=True, kw_only=True):
    """A branch on the thread's index that threads of one warp take differently, in every warp."""

    instruction: PtxInstruction  # of the PTX
    division: Division  # how
    # threads of a warp for which the condition of the branch holds, mean; None where that depends on what is not known
    lanes: float | None
    sides: tuple[int, int]  # instructions on either side until the ways meet again, the one that is jumped to first
    has_loops: tuple[bool, bool]  # whether either side holds a loop
    is_in_loop: bool  # a loop is around it


class SymbolicAccesses(Struct, frozen=True, kw_only=True):
    """What a kernel's PTX says of its requests."""

    shape: Shape | None  # of a block, that this holds for; None for blocks whose warps lie along x
    looks_beyond_x: bool  # the kernel uses ``threadIdx.y`` or ``z``, so that the shape matters
    accesses: tuple[SymbolicAccess, ...]  # to global and shared memory, in the order of the text
    branches: tuple[DividingBranch, ...]  # that divide every warp
    table: SymbolTable  # the symbols of the addresses
