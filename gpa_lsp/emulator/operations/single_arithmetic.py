"""Exact arithmetic in single precision, by opcode and rounding: :func:`find_single`."""

from collections.abc import Callable
from typing import Any

import numpy as np

from gpa_lsp.emulator.operations import directed
from gpa_lsp.emulator.operations.fused import fuse_single
from gpa_lsp.emulator.operations.modifiers import over_lanes

Function = Callable[..., Any]

_NEAREST: dict[str, tuple[Function, int]] = {
    "add": (np.add, 2),
    "sub": (np.subtract, 2),
    "mul": (np.multiply, 2),
    "div": (np.divide, 2),
    "sqrt": (np.sqrt, 1),
    "fma": (fuse_single, 3),
}
_DIRECTED: dict[str, Callable[[str], Function]] = {
    "add": directed.add_single,
    "mul": directed.multiply_single,
    "div": directed.divide_single,
    "sqrt": directed.root_single,
    "fma": directed.fuse_single,
}


def find_single(opcode: str, mode: str) -> tuple[Function, int]:
    """Arithmetic on float32 before ``.ftz`` and ``.sat``, and its operands.

    Args:
        opcode: ``add sub mul div sqrt fma``.
        mode: of rounding, ``rn rz rm rp``.
    """
    nearest, count = _NEAREST[opcode]
    if mode == "rn":
        return nearest, count
    if opcode == "sub":
        add = over_lanes(directed.add_single(mode))
        return lambda a, b: add(a, np.negative(b)), 2
    return over_lanes(_DIRECTED[opcode](mode)), count
