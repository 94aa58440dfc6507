"""Kernels as expressions, written down; and the authors' configurations and counters, read."""

import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gpa_lsp.code.ptx.static_instructions import AccessKind
from gpa_lsp.execution.volumes.expressions import AccessedArray, AccessExpression, KernelAccesses, Triple
from gpa_lsp.execution.volumes.model import Bound, Limiter, VolumePrediction
from tests.conftest import ROOT

DATA = Path(__file__).parent / "data"


def find_reference() -> Path | None:
    """The file with all of the authors' configurations, or None where it is not at hand."""
    folder = Path(os.environ.get("GPA_LSP_REFERENCE", ROOT.parent / "shared" / "reference"))
    path = folder / "warpspeed_1024_unfolded.json"
    return path if path.is_file() else None


def read_json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def build_field_access(
    array: int,
    kind: AccessKind,
    offsets: Sequence[int],
    strides_bytes: Sequence[int],
    *,
    element_bytes: int,
    scales: Triple = (1, 1, 1),
) -> AccessExpression:
    """An access of a field at an offset from the thread's own place, ``field[scale_x · x + offset_x, …]``."""
    padded = (*strides_bytes, *[0] * (3 - len(strides_bytes)))
    constant = sum(offset * stride for offset, stride in zip(offsets, padded, strict=False))
    x, y, z = (scale * stride for scale, stride in zip(scales, padded, strict=True))
    return AccessExpression(
        array=array, kind=kind, element_bytes=element_bytes, constant_bytes=constant, global_bytes=(x, y, z)
    )


def find_bound(prediction: VolumePrediction, limiter: Limiter) -> Bound | None:
    """The bound of a limiter; None when the kernel asks nothing of it."""
    return next((bound for bound in prediction.bounds if bound.limiter is limiter), None)


def write_star(
    radius: int, extents: tuple[int, int, int], *, base_elements: int = 128, strides_known: bool = True
) -> KernelAccesses:
    """A star of doubles: ``dst = Σ src`` over ``6 · radius + 1`` neighbours of an array of so many elements."""
    offsets: list[tuple[int, ...]] = [(0, 0, 0)]
    for axis in range(3):
        distances = (*range(-radius, 0), *range(1, radius + 1))
        offsets.extend(tuple(far if other == axis else 0 for other in range(3)) for far in distances)
    strides = (8, 8 * extents[0], 8 * extents[0] * extents[1])
    known = strides if strides_known else None
    arrays = tuple(
        AccessedArray(name=name, base_bytes=8 * base_elements, strides_bytes=known) for name in ("src", "dst")
    )
    loads = [build_field_access(0, AccessKind.LOAD, offset, strides, element_bytes=8) for offset in offsets]
    store = build_field_access(1, AccessKind.STORE, (0, 0, 0), strides, element_bytes=8)
    return KernelAccesses(
        name=f"star{radius}", arrays=arrays, accesses=(*loads, store), flops_per_thread=6.0 * radius + 1
    )


def build_reference_kernel(name: str, entry: dict[str, Any]) -> KernelAccesses:
    """A kernel of the authors' configurations."""
    width, height = entry["array_dims_elements"][:2]
    strides = (8, 8 * width, 8 * width * height)
    arrays: list[AccessedArray] = []
    accesses: list[AccessExpression] = []
    for kind, fields in ((AccessKind.LOAD, entry["loads"]), (AccessKind.STORE, entry["stores"])):
        for field, about in fields.items():
            known = strides[:1] if height == 1 else strides
            arrays.append(AccessedArray(name=field, base_bytes=8 * about["base"], strides_bytes=known))
            for coordinates in about["nd"]:
                scales, offsets = zip(*(_parse_coordinate(text) for text in coordinates), strict=True)
                accesses.append(
                    build_field_access(len(arrays) - 1, kind, offsets, strides, element_bytes=8, scales=scales)
                )
    return KernelAccesses(name=name, arrays=tuple(arrays), accesses=tuple(accesses))


def _parse_coordinate(text: str) -> tuple[int, int]:
    """``tidx*3+1`` as scale and offset."""
    found = re.fullmatch(r"\s*(?:(tid[xyz])(?:\*(\d+))?)?\s*\+?\s*(?:\(?(-?\d+)\)?)?\s*", text)
    assert found, text
    scale = 0 if not found[1] else int(found[2] or 1)
    return scale, int(found[3] or 0)
