"""Special registers: ``%tid``, ``%laneid``, ``%clock64`` …"""

from collections.abc import Callable
from typing import Any

import numpy as np

from gpa_lsp.code.ptx.model import SpecialRegister
from gpa_lsp.execution.emulator.engine.fragments import Fragment
from gpa_lsp.execution.emulator.engine.geometry import Geometry
from gpa_lsp.execution.emulator.engine.values import U32, U64, Value

_COLUMNS = ("laneid", "warpid", "smid", "lanemask_eq")
_ZEROS = ("gridid", "cluster_ctarank", "is_explicit_cluster")
WORKSPACE_REGISTERS = {"envreg1": 32, "envreg2": 0}
"""The halves of the address of a cooperative launch's workspace, by the bits they begin at.

Source: the headers of cooperative groups in CUDA 13.0 (``details/driver_abi.h``), which read it there.
"""
_LANE_MASKS: dict[str, Callable[[Value], Value]] = {
    "lanemask_lt": lambda bit: bit - np.uint32(1),
    "lanemask_le": lambda bit: (bit - np.uint32(1)) | bit,
    "lanemask_gt": lambda bit: ~((bit - np.uint32(1)) | bit),
    "lanemask_ge": lambda bit: ~(bit - np.uint32(1)),
}


class Reader:
    """Reads a special register that is not the same for all lanes at all times.

    Attributes:
        dtype: of what it gives.
    """

    def __init__(self, read: "Callable[[Fragment], Value]", dtype: "np.dtype[Any]" = U32) -> None:
        self._read = read
        self.dtype = dtype

    def __call__(self, fragment: Fragment) -> Value:
        """The value for all lanes of a fragment."""
        return self._read(fragment)


def find_special(operand: SpecialRegister, geometry: Geometry) -> "Value | Reader | None":
    """A uniform value, or what reads it; None for a register that is not known.

    ``%clock`` counts the warp instructions executed so far, and runs faster when warps wait for it; ``%globaltimer`` takes them for
    nanoseconds; a cluster is one block; ``%smid`` deals the blocks out to the multiprocessors one after the other. Source: PTX ISA 9.0, section 10.
    """
    name, axis = operand.name, operand.component
    if axis == "w":
        return np.uint32(0)
    if name in ("tid", "ctaid"):
        return _read_column(f"{name}.{axis}")
    if name in _COLUMNS:
        return _read_column(name)
    if name in _LANE_MASKS:
        return _read_lane_mask(_LANE_MASKS[name])
    if name in ("clock", "clock64", "globaltimer", "clock_hi", "globaltimer_lo", "globaltimer_hi"):
        return _read_clock(name)
    return _find_uniform(name, axis, geometry)


def _find_uniform(name: str, axis: str, geometry: Geometry) -> Value | None:
    place = "xyz".index(axis) if axis in tuple("xyz") else -1
    values = {
        "ntid": geometry.block[place],
        "nctaid": geometry.grid[place],
        "clusterid": None,
        "nclusterid": geometry.grid[place],
        "cluster_ctaid": 0,
        "cluster_nctaid": 1,
        "cluster_nctarank": 1,
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
    if name in _ZEROS or name.startswith(("envreg", "pm")):
        return np.uint64(0) if name in ("gridid",) or name.endswith("_64") else np.uint32(0)
    if name == "clusterid":
        return _read_column(f"ctaid.{axis}")
    found = values.get(name)
    return None if found is None else np.uint32(found)


def _read_column(name: str) -> Reader:
    return Reader(lambda fragment: fragment.warps.column(name))


def _read_lane_mask(change: Callable[[Value], Value]) -> Reader:
    return Reader(lambda fragment: change(fragment.warps.column("lanemask_eq")))


def _read_clock(name: str) -> Reader:
    if name in ("clock64", "globaltimer"):
        return Reader(lambda fragment: np.uint64(_ask_clock(fragment)), U64)
    if name in ("clock", "globaltimer_lo"):
        return Reader(lambda fragment: np.uint32(_ask_clock(fragment) % (1 << 32)))
    return Reader(lambda fragment: np.uint32(_ask_clock(fragment) >> 32))


def _ask_clock(fragment: Fragment) -> int:
    return fragment.batch.read_clock(fragment.warp_count)
