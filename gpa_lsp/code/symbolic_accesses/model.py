"""Memory requests of a kernel as known without a launch: :class:`SymbolicAccesses`."""

from enum import Enum
from functools import cached_property

import numpy as np
from msgspec import Struct

from gpa_lsp.code.ptx.model import PtxInstruction, Space, SpecialRegister
from gpa_lsp.code.ptx.static_instructions import AccessKind
from gpa_lsp.code.symbolic_accesses.forms import Form, Marks, Symbol, SymbolKind, SymbolTable, add, make_constant, scale
from gpa_lsp.code.symbolic_accesses.requests import WARP_LANES
from gpa_lsp.foundation.records import ColumnRecord

Shape = tuple[int, int, int]
_AXES = ("x", "y", "z")
_NAMES = {"tid": "threadIdx", "ctaid": "blockIdx", "ntid": "blockDim", "nctaid": "gridDim"}
_UNIFORM = frozenset(
    {
        "warpid", "nwarpid", "smid", "nsmid", "gridid", "clusterid", "nclusterid", "cluster_ctaid", "cluster_nctaid", "cluster_ctarank",
        "cluster_nctarank", "dynamic_smem_size", "total_smem_size",
    }
)  # fmt: skip
MOST_THREADS = 1024


class ThreadIndexes:
    """The special registers of a kernel's threads.

    Args:
        table: of the kernel.
        shape: of a block; None when unknown: then warps lie along x, in blocks whose ``blockDim.x`` is a multiple of 32.
    """

    def __init__(self, table: SymbolTable, shape: Shape | None) -> None:
        self._table = table
        self._shape = shape
        self.looks_beyond_x = False  # the kernel looks at ``threadIdx.y`` or ``z``, so that the shape matters

    @cached_property
    def active(self) -> Marks:
        """bool[threads], whether each thread exists in a block of the shape."""
        threads = np.arange(self._table.threads)
        return threads < (WARP_LANES if self._shape is None else int(np.prod(self._shape)))

    def read(self, register: SpecialRegister) -> Form:
        """Value of a special register."""
        name, table = register.name, self._table
        if name in ("tid", "ntid") and register.component in _AXES:
            axis = _AXES.index(register.component)
            self.looks_beyond_x |= name == "tid" and axis > 0
            return self._read_index(axis) if name == "tid" else self._read_size(axis)
        if name == "laneid":
            return table.make_lanes(np.arange(table.threads, dtype=np.int64) % WARP_LANES)
        if name in _NAMES:
            return self._name(f"{_NAMES[name]}.{register.component}")
        if name in _UNIFORM:
            return self._name(name, is_shown=False)
        if name.startswith("lanemask"):
            return table.name(name, Symbol(kind=SymbolKind.VARYING))
        return table.add_varying()

    def _name(self, key: str, *, is_shown: bool = True) -> Form:
        return self._table.name(key, Symbol(kind=SymbolKind.UNIFORM, name=key if is_shown else ""))

    def _read_index(self, axis: int) -> Form:
        lanes = np.arange(self._table.threads, dtype=np.int64)
        if self._shape is None:
            if axis:
                return self._name(f"threadIdx.{_AXES[axis]}")
            return add(self._table.make_lanes(lanes), scale(self._name("threadIdx.x / 32"), WARP_LANES))
        x, y, _ = self._shape
        values = (lanes % x, lanes // x % y, lanes // (x * y))[axis]
        return self._table.make_lanes(values)

    def _read_size(self, axis: int) -> Form:
        if self._shape is not None:
            return make_constant(self._shape[axis])
        if axis:
            return self._name(f"blockDim.{_AXES[axis]}")
        return scale(self._name("blockDim.x / 32"), WARP_LANES)


def count_threads(shape: Shape | None) -> int:
    """Threads of a block, rounded up to whole warps; those of one warp when the shape is unknown."""
    if shape is None:
        return WARP_LANES
    return -(-int(np.prod(shape)) // WARP_LANES) * WARP_LANES


class WarpPattern(Enum):
    """Pattern of the addresses that the threads of a warp access together."""

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
    # sectors of a request to global memory or passes (wavefronts) of one to shared memory, mean over warps; the smallest where it depends on
    # unknowns; None for scattered and unknown ones
    cost: float | None
    most: float | None  # the largest where it depends on unknowns; None for scattered and unknown ones
    ideal: float  # as few as there can be
    # distance of neighbouring threads; empty where it is none or not the same for all
    stride: tuple[StrideTerm, ...] = ()
    # product of unknowns that the cost depends on; empty where it depends on none, or on several such products, which then are taken to be large
    unknown: tuple[Factor, ...] = ()
    least: int | None = None  # value of that product from which on the cost is reached; None where it is always
    loads: PtxInstruction | None = None  # the instruction whose result decides a scattered address; None for others
    is_certain: bool = True  # holds for every warp whose threads all take part
    address: Form
    active: Marks


class Division(Enum):
    """Kind of division of a warp's threads by a branch."""

    EVERY_WARP = "in every warp"
    REMAINDER = "by a remainder"


class DividingBranch(Struct, frozen=True, kw_only=True):
    """A branch on the thread's index that threads of one warp take differently, in every warp."""

    instruction: PtxInstruction  # of the PTX
    division: Division  # how
    # threads of a warp for which the condition of the branch holds, mean; None where that depends on unknowns
    lanes: float | None
    sides: tuple[int, int]  # instructions on either side until the ways meet again, the one that is jumped to first
    has_loops: tuple[bool, bool]  # whether either side holds a loop
    is_in_loop: bool  # a loop is around it


class SymbolicAccesses(Struct, frozen=True, kw_only=True):
    """The requests of a kernel, and the branches that divide its warps, from its PTX."""

    shape: Shape | None  # of a block, that this holds for; None for blocks whose warps lie along x
    looks_beyond_x: bool  # the kernel uses ``threadIdx.y`` or ``z``, so that the shape matters
    accesses: tuple[SymbolicAccess, ...]  # to global and shared memory, in the order of the text
    branches: tuple[DividingBranch, ...]  # that divide every warp
    table: SymbolTable  # the symbols of the addresses
