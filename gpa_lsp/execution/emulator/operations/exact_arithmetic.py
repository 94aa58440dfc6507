"""Exact arithmetic by opcode and rounding, in single and in double precision: :data:`SINGLE` and :data:`DOUBLE`."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from msgspec import Struct

from gpa_lsp.execution.emulator.operations import directed
from gpa_lsp.execution.emulator.operations.fused import fuse_double, fuse_single
from gpa_lsp.execution.emulator.operations.modifiers import over_lanes

Function = Callable[..., Any]


class ExactArithmetic(Struct, frozen=True, kw_only=True):
    """``add sub mul div sqrt fma`` of one precision."""

    fuse: Function  # the fused multiply-add, rounded to nearest
    # by opcode, what gives the function of a mode of rounding; ``sub`` is an addition
    directed: Mapping[str, Callable[[str], Function]]

    def find(self, opcode: str, mode: str) -> tuple[Function, int]:
        """The function, before ``.ftz`` and ``.sat``, and how many operands it takes.

        Args:
            opcode: ``add sub mul div sqrt fma``.
            mode: of rounding, ``rn rz rm rp``.
        """
        nearest, count = (self.fuse, 3) if opcode == "fma" else _NEAREST[opcode]
        if mode == "rn":
            return nearest, count
        if opcode == "sub":
            add = over_lanes(self.directed["add"](mode))
            return lambda a, b: add(a, np.negative(b)), 2
        return over_lanes(self.directed[opcode](mode)), count


_NEAREST: dict[str, tuple[Function, int]] = {
    "add": (np.add, 2),
    "sub": (np.subtract, 2),
    "mul": (np.multiply, 2),
    "div": (np.divide, 2),
    "sqrt": (np.sqrt, 1),
}

SINGLE = ExactArithmetic(
    fuse=fuse_single,
    directed={
        "add": directed.add_single,
        "mul": directed.multiply_single,
        "div": directed.divide_single,
        "sqrt": directed.root_single,
        "fma": directed.fuse_single,
    },
)
DOUBLE = ExactArithmetic(
    fuse=fuse_double,
    directed={
        "add": directed.add_double,
        "mul": directed.multiply_double,
        "div": directed.divide_double,
        "sqrt": directed.root_double,
        "fma": lambda mode: partial(directed.fuse_exactly, mode=mode),
    },
)
