"""Lines ``roof`` of the fences ``gate`` and ``starlight``: the roofline of the kernel, which the fence makes up::

    roof FP32 1.2T of 10T
    roof DRAM 1.6T of 2T  sustains 0.85
    roof FP16 of 20T

A type of operation with its rate and its peak, at most one; levels of the memory with theirs, in bytes per second, and the part of the peak that
they sustain where it is not all of it; and peaks of other types, without a rate.
"""

import re
from collections.abc import Sequence

from gpa_lsp.diagnosis.analyses.roofline_model import KernelRoofline
from gpa_lsp.gpu.device.model import MemoryLevel, OperationKind
from tests.analyses.starlight.rooflines import make_roofline

_RATE = r"\d+(?:\.\d+)?[TGM]"
_LINE = re.compile(rf"roof (?P<name>.+?) (?:(?P<rate>{_RATE}) )?of (?P<peak>{_RATE})(?:\s+sustains (?P<part>\d\.\d+))?")
_SIZES = {"T": 1e12, "G": 1e9, "M": 1e6}


def split_roofs(text: str) -> tuple[KernelRoofline | None, list[str]]:
    """The roofline of a fence, and its other lines; None where no line says anything of roofs.

    Raises:
        ValueError: a line begins with ``roof`` and is none, or names nothing that has a roof.
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    roofs = [line for line in lines if line.startswith("roof ")]
    return (_read_roofs(roofs) if roofs else None), [line for line in lines if not line.startswith("roof ")]


def read_rate(text: str) -> float:
    """A rate per second: ``1.2T``."""
    return float(text[:-1]) * _SIZES[text[-1]]


def _read_roofs(lines: Sequence[str]) -> KernelRoofline:
    peaks: dict[OperationKind, float] = {}
    traffic: dict[MemoryLevel, tuple[float, float]] = {}
    ceilings: dict[MemoryLevel, float] = {}
    kind, rate = OperationKind.FP32, None
    for line in lines:
        found = _LINE.fullmatch(line)
        if found is None:
            raise ValueError(f"this is no roof: {line}")
        peak = read_rate(found["peak"])
        if found["name"] in set(MemoryLevel):
            level = MemoryLevel(found["name"])
            traffic[level] = (read_rate(found["rate"]), peak)
            ceilings[level] = float(found["part"] or 1.0)
            continue
        peaks[OperationKind(found["name"])] = peak
        if found["rate"]:
            kind, rate = OperationKind(found["name"]), read_rate(found["rate"])
    return make_roofline(ops_per_s=rate, peaks=peaks, traffic=traffic, kind=kind, ceilings=ceilings)
