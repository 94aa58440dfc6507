"""What is known of the requests of a kernel without a launch: :class:`SymbolicAccesses`."""

from dataclasses import field
from enum import Enum

from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.emulator.trace import AccessKind
from gpa_lsp.ptx.model import PtxInstruction, Space
from gpa_lsp.symbolic_accesses.block_shape import Shape
from gpa_lsp.symbolic_accesses.forms import Form, Marks, SymbolTable


class WarpPattern(Enum):
    """How the threads of a warp access memory together."""

    UNIFORM = "uniform"
    """One address."""
    CONTIGUOUS = "contiguous"
    """As few sectors, or passes, as there can be for so many bytes, where the array is aligned."""
    MISALIGNED = "misaligned"
    """Contiguous, but across one sector more than needed."""
    STRIDED = "strided"
    """More sectors, or passes, than needed, by a distance between threads that is a number or follows from parameters."""
    SCATTERED = "scattered"
    """By values that were loaded."""
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Factor:
    """One factor of a stride that is not known before the launch.

    Attributes:
        name: as the source has it (``blockDim.x``); empty for a parameter, and for what has no name there.
        parameter: offset in the kernel's parameters; None for others.
    """

    name: str
    parameter: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StrideTerm:
    """One term of a stride.

    Attributes:
        bytes: coefficient.
        factors: product of them; empty for the constant.
    """

    bytes: int
    factors: tuple[Factor, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SymbolicAccess:
    """One instruction that accesses global or shared memory.

    Attributes:
        instruction: of the PTX.
        kind: load, store, atomic or reduction.
        space: global or shared memory.
        bytes_each: of one thread.
        pattern: of a warp.
        cost: sectors of a request to global memory or passes (wavefronts) of one to shared memory, mean over warps; the smallest where it depends
            on what is not known; None for scattered and unknown ones.
        most: the largest where it depends on what is not known; None for scattered and unknown ones.
        ideal: as few as there can be.
        stride: distance of neighbouring threads; empty where it is none or not the same for all.
        unknown: product of what is not known that the cost depends on; empty where it depends on nothing, or on several such products, which then
            are taken to be large.
        least: value of that product from which on the cost is reached; None where it is always.
        loads: the instruction whose result decides a scattered address; None for others.
        is_certain: holds for every warp whose threads all take part.
    """

    instruction: PtxInstruction
    kind: AccessKind
    space: Space
    bytes_each: int
    pattern: WarpPattern
    cost: float | None
    most: float | None
    ideal: float
    stride: tuple[StrideTerm, ...] = ()
    unknown: tuple[Factor, ...] = ()
    least: int | None = None
    loads: PtxInstruction | None = None
    is_certain: bool = True
    address: Form = field(repr=False)
    active: Marks = field(repr=False)


class Division(Enum):
    """How a branch divides the threads of a warp."""

    EVERY_WARP = "in every warp"
    REMAINDER = "by a remainder"


@dataclass(frozen=True, slots=True, kw_only=True)
class DividingBranch:
    """A branch on the thread's index that threads of one warp take differently, in every warp.

    Attributes:
        instruction: of the PTX.
        division: how.
        lanes: threads of a warp for which the condition of the branch holds, mean; None where that depends on what is not known.
        sides: instructions on either side until the ways meet again, the one that is jumped to first.
        has_loops: whether either side holds a loop.
        is_in_loop: a loop is around it.
    """

    instruction: PtxInstruction
    division: Division
    lanes: float | None
    sides: tuple[int, int]
    has_loops: tuple[bool, bool]
    is_in_loop: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SymbolicAccesses:
    """What a kernel's PTX says of its requests.

    Attributes:
        shape: of a block, that this holds for; None for blocks whose warps lie along x.
        looks_beyond_x: the kernel uses ``threadIdx.y`` or ``z``, so that the shape matters.
        accesses: to global and shared memory, in the order of the text.
        branches: that divide every warp.
        table: the symbols of the addresses.
    """

    shape: Shape | None
    looks_beyond_x: bool
    accesses: tuple[SymbolicAccess, ...]
    branches: tuple[DividingBranch, ...]
    table: SymbolTable = field(repr=False)
