"""Floating-point operations of an emulated launch, by the opcodes of PTX."""

import numpy as np
from msgspec import Struct

from gpa_lsp.execution.emulator.model import Emulation

_DOUBLE, _SINGLE = ".f64", ".f32"
_ONE = ("add", "sub", "mul", "div", "rcp", "sqrt", "rsqrt", "sin", "cos", "ex2", "lg2", "tanh", "min", "max")
_TWO = ("fma", "mad")


class FloatingWork(Struct, frozen=True, kw_only=True):
    """What a thread computes on average, in operations; a multiply-add counts two."""

    single: float  # in single precision
    double: float  # in double precision

    @property
    def total(self) -> float:
        """Of both."""
        return self.single + self.double

    @property
    def is_double(self) -> bool:
        """Double precision holds it up: its peak is half of single's at best."""
        return 2 * self.double > self.single


def count_flops(emulation: Emulation) -> FloatingWork:
    """Operations per thread of the executed blocks.

    Divisions, roots and functions count one, however many instructions they become; halves and matrix instructions do not count here.
    """
    sums = {_SINGLE: 0.0, _DOUBLE: 0.0}
    for instruction, lanes in zip(emulation.instructions, emulation.counts.lane_executions, strict=True):
        opcode = instruction.text.split(None, 1)[0] if instruction.text else ""
        first, _, suffixes = opcode.partition(".")
        weight = 2 if first in _TWO else 1 if first in _ONE else 0
        kind = next((one for one in sums if f".{suffixes}".endswith(one)), None)
        if weight and kind is not None:
            sums[kind] += weight * float(lanes)
    threads = max(1, int(np.prod(emulation.block_threads)) * len(emulation.executed_blocks))
    return FloatingWork(single=sums[_SINGLE] / threads, double=sums[_DOUBLE] / threads)
