"""The parts of 32-bit registers that video instructions pick, split and merge. Everything between is int64."""

from typing import Any

import numpy as np

from gpa_lsp.code.ptx.model import Operand, Register


def find_selector(operand: Operand | None) -> str:
    """``b0`` … ``h1`` of an operand; empty for the whole register."""
    return operand.selector if isinstance(operand, Register) else ""


def _find_field(selector: str) -> tuple[int, int]:
    """Position and width in bits."""
    width = {"b": 8, "h": 16}.get(selector[:1], 32)
    return (int(selector[1]) * width, width) if selector else (0, 32)


def pick_part(values: Any, selector: str, *, signed: bool) -> Any:
    """The part of uint32[n] as int64[n], extended by its type."""
    position, width = _find_field(selector)
    part = (values.astype(np.int64) >> position) & ((1 << width) - 1)
    return (part ^ (1 << (width - 1))) - (1 << (width - 1)) if signed else part


def merge_scalar(values: Any, addend: Any, target: str, second: str | None, *, signed: bool) -> Any:
    """What a scalar video instruction does with its first result.

    Args:
        values: int64[n], before it is cut to 32 bits.
        addend: c, uint32[n]; None when there is none.
        second: ``add min max`` with c.
    """
    if addend is None:
        return values.astype(np.uint32)
    if target:
        position, width = _find_field(target)
        mask = np.uint32(((1 << width) - 1) << position)
        moved = (values << position).astype(np.uint32)
        return (addend & ~mask) | (moved & mask)
    kept = pick_part(values.astype(np.uint32), "", signed=signed)
    other = pick_part(addend, "", signed=signed)
    if second == "add":
        return (kept + other).astype(np.uint32)
    return (np.minimum(kept, other) if second == "min" else np.maximum(kept, other)).astype(np.uint32)


def split_parts(values: Any, count: int, *, signed: bool) -> Any:
    """uint32[n] as int64[n, count], lowest part first."""
    dtype = np.dtype(f"{'i' if signed else 'u'}{4 // count}")
    return np.ascontiguousarray(values).view(dtype).reshape(-1, count).astype(np.int64)


def join_parts(values: Any, count: int) -> Any:
    """int64[n, count], cut to their width, as uint32[n]."""
    return np.ascontiguousarray(values.astype(f"u{4 // count}")).view(np.uint32).reshape(-1)
