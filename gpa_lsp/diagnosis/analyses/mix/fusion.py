"""Sums and products that could be one fused multiply-add."""

import numpy as np
import numpy.typing as npt

from gpa_lsp.diagnosis.analyses.facts import KernelFacts
from gpa_lsp.diagnosis.analyses.line_sums import LineIndex
from gpa_lsp.diagnosis.analyses.mix.pipes import PipeUse
from gpa_lsp.foundation.records import ColumnRecord

_BUSY_ENOUGH = 0.5  # From this use of its pipe on, fewer instructions of a type are time

# Name, sums, products, fused, and the pipes that may execute them
_TYPES = (
    ("FP32", ("FADD", "FADD32I", "FADD2"), ("FMUL", "FMUL32I", "FMUL2"), ("FFMA", "FFMA32I", "FFMA2"), ("fma",)),
    ("FP64", ("DADD",), ("DMUL",), ("DFMA",), ("fp64",)),
    ("FP16", ("HADD2", "HADD2_32I"), ("HMUL2", "HMUL2_32I"), ("HFMA2", "HFMA2_32I"), ("fma", "fp16")),
)


class NonFused(ColumnRecord, frozen=True, kw_only=True):
    """Sums and products of one floating-point type, in executed warp instructions."""

    name: str  # the type
    sums: int  # additions and subtractions
    products: int  # multiplications
    fused: int  # multiply-adds
    is_busy: bool  # the pipe that executes them is busy enough for fewer to matter
    rows: npt.NDArray[np.int64]  # int64[n], the executions of sums and products by instruction

    @property
    def non_fused(self) -> int:
        """Sums and products."""
        return self.sums + self.products

    @property
    def most_savings(self) -> int:
        """Instructions that fusing can save at most: each takes one sum and one product.

        An upper bound: not every product is added to something. Nsight Compute's rule takes half of all sums and products instead, which more
        sums than products (or the other way round) can never reach.
        """
        return min(self.sums, self.products)


def count_non_fused(
    facts: KernelFacts, executions: npt.NDArray[np.int64], uses: tuple[PipeUse, ...], index: LineIndex
) -> tuple[NonFused, ...]:
    """The types that the kernel computes with, and how much of each is fused.

    Where the kernel has lines, code without any (divisions, powers and other routines of the vendor) is left out: nobody can fuse that.
    """
    has_line = np.array([place.file is not None for place in index.places], dtype=np.bool_)
    if has_line.any():
        executions = np.where(has_line[index.line_of], executions, 0)
    busy = {use.pipe.name for use in uses if (use.use_ratio or 0.0) >= _BUSY_ENOUGH}
    found = []
    for name, sums, products, fused, pipes in _TYPES:
        is_sum, is_product, is_fused = (_mark(facts, names) for names in (sums, products, fused))
        one = NonFused(
            name=name,
            sums=int(executions[is_sum].sum()),
            products=int(executions[is_product].sum()),
            fused=int(executions[is_fused].sum()),
            is_busy=bool(busy.intersection(pipes)),
            rows=np.where(is_sum | is_product, executions, 0),
        )
        if one.non_fused or one.fused:
            found.append(one)
    return tuple(found)


def _mark(facts: KernelFacts, names: tuple[str, ...]) -> npt.NDArray[np.bool_]:
    return facts.rows.mark_by_opcode(lambda opcode: opcode.name in names)
