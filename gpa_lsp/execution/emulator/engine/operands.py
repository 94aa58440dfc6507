"""Operands of the instructions that end segments, as fragments have them: :func:`read_operand`; and special registers, :func:`find_special`."""

from collections.abc import Callable
from typing import Any

import numpy as np

from gpa_lsp.code.ptx.model import Immediate, Operand, Register, SpecialRegister
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.execution.emulator.engine.fragments import Fragment
from gpa_lsp.execution.emulator.engine.geometry import Geometry, Value
from gpa_lsp.execution.emulator.engine.layout import make_constant


class UnsupportedInstruction(Exception):  # noqa: N818  (it becomes a finding)
    """An instruction, or a form of one, that is not emulated."""


# Reads an operand, or a special register that is not the same for all lanes: an array over the lanes, or a uniform value
Reader = Callable[[Fragment], Value]


def read_operand(operand: Operand | None, kind: ScalarType, geometry: Geometry) -> Reader:
    """Reader of an operand as an unsigned number of the width of a type, or a predicate.

    Wider registers give their low bits, narrower ones are extended by zeros.

    Raises:
        UnsupportedInstruction: such an operand cannot be read.
    """
    want = kind.storage_dtype if kind is ScalarType.PRED else np.dtype(f"u{kind.bytes}")
    match operand:
        case Register():
            if operand.selector:
                raise UnsupportedInstruction(f"register part .{operand.selector}")
            slot, is_negated = operand.slot, operand.is_negated
            return lambda fragment: _fit(fragment.registers[slot], want, is_negated=is_negated)
        case Immediate():
            constant = make_constant(operand, kind).view(want)
            return lambda _: constant
        case SpecialRegister():
            found = find_special(operand, geometry)
            if found is None:
                raise UnsupportedInstruction(f"special register %{operand.name}")
            if callable(found):
                read = found
                return lambda fragment: read(fragment).astype(want)
            value = found.astype(want)
            return lambda _: value
    raise UnsupportedInstruction("operand of this kind")


def _fit(value: Value, want: "np.dtype[Any]", *, is_negated: bool) -> Value:
    if is_negated:
        return np.logical_not(value)
    return value if value.dtype is want else value.view(f"u{value.itemsize}").astype(want)


_COLUMNS = ("laneid", "warpid", "smid", "lanemask_eq", "cluster_ctarank")
# They count the warp instructions executed so far, and run faster when warps wait for them; ``%globaltimer`` takes them for nanoseconds
CLOCKS = frozenset({"clock", "clock_hi", "clock64", "globaltimer", "globaltimer_lo", "globaltimer_hi"})
# Halves of the address of a cooperative launch's workspace, by their first bit. Source: the headers of cooperative groups in CUDA 13.0
# (``details/driver_abi.h``), which read it there.
WORKSPACE_REGISTERS = {"envreg1": 32, "envreg2": 0}
_LANE_MASKS: dict[str, Callable[[Value], Value]] = {
    "lanemask_lt": lambda bit: bit - np.uint32(1),
    "lanemask_le": lambda bit: (bit - np.uint32(1)) | bit,
    "lanemask_gt": lambda bit: ~((bit - np.uint32(1)) | bit),
    "lanemask_ge": lambda bit: ~(bit - np.uint32(1)),
}


def find_special(operand: SpecialRegister, geometry: Geometry) -> "Value | Reader | None":
    """A uniform value, or a reader of lane values; None for unknown registers and clocks.

    ``%smid`` deals the blocks out to the multiprocessors one after the other. Source: PTX ISA 9.0, section 10.
    """
    name, axis = operand.name, operand.component
    if axis == "w":
        return np.uint32(0)
    if name in ("tid", "ctaid", "clusterid", "cluster_ctaid"):
        return lambda fragment: fragment.warps.column(f"{name}.{axis}")
    if name in _COLUMNS:
        return lambda fragment: fragment.warps.column(name)
    if name in _LANE_MASKS:
        change = _LANE_MASKS[name]
        return lambda fragment: change(fragment.warps.column("lanemask_eq"))
    return _find_uniform(name, axis, geometry)


def _find_uniform(name: str, axis: str, geometry: Geometry) -> "Value | Reader | None":
    place = "xyz".index(axis) if axis in tuple("xyz") else -1
    values = {
        "ntid": geometry.block[place],
        "nctaid": geometry.grid[place],
        "nclusterid": geometry.grid[place] // geometry.cluster_shape[place],
        "cluster_nctaid": geometry.cluster_shape[place],
        "cluster_nctarank": geometry.cluster_blocks,
        "is_explicit_cluster": int(geometry.cluster is not None),
        "nwarpid": 64,
        "nsmid": geometry.sm_count,
        "dynamic_smem_size": geometry.dynamic_shared_bytes,
        "total_smem_size": geometry.shared_bytes,
        "aggr_smem_size": geometry.shared_bytes,
        "reserved_smem_offset_begin": geometry.shared_bytes,
        "reserved_smem_offset_end": geometry.shared_bytes,
        "reserved_smem_offset_cap": 0,
        "reserved_smem_offset_0": geometry.shared_bytes,
        "reserved_smem_offset_1": geometry.shared_bytes,
    }
    if name in WORKSPACE_REGISTERS:
        return np.uint32((geometry.workspace >> WORKSPACE_REGISTERS[name]) & 0xFFFF_FFFF)
    if name == "gridid" or name.startswith(("envreg", "pm")):
        return np.uint64(0) if name == "gridid" or name.endswith("_64") else np.uint32(0)
    found = values.get(name)
    return None if found is None else np.uint32(found)
