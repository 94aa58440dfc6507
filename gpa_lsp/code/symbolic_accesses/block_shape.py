"""What ``%tid`` and its like hold, for blocks of a known shape and for others."""

from functools import cached_property

import numpy as np

from gpa_lsp.code.ptx.model import SpecialRegister
from gpa_lsp.code.symbolic_accesses.forms import (
    WARP_LANES,
    Form,
    Marks,
    Symbol,
    SymbolKind,
    SymbolTable,
    add,
    make_constant,
    scale,
)

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
        self.looks_beyond_x = False
        """The kernel looks at ``threadIdx.y`` or ``z``, so that the shape matters."""

    @cached_property
    def active(self) -> Marks:
        """bool[threads], those that there are."""
        threads = np.arange(self._table.threads)
        return threads < (WARP_LANES if self._shape is None else int(np.prod(self._shape)))

    def read(self, register: SpecialRegister) -> Form:
        """What a special register holds."""
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
        return table.add_symbol(Symbol(kind=SymbolKind.VARYING))

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
    """Of whole warps."""
    if shape is None:
        return WARP_LANES
    return -(-int(np.prod(shape)) // WARP_LANES) * WARP_LANES
