"""Families of stencils as a V100's counters measured them, and predictions of them: :func:`list_families`.

A family is one stencil in many shapes. The first four have volumes; the first and the last have rates. Read from the project's copy of the authors'
published notebooks.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from gpa_lsp.code.ptx.static_instructions import AccessKind
from gpa_lsp.execution.volumes.devices import VolumeDevice, find_device, find_paper_device
from gpa_lsp.execution.volumes.expressions import (
    AccessedArray,
    KernelAccesses,
    LaunchShape,
    ThreadRegion,
    cover_updates,
    fold_accesses,
)
from gpa_lsp.execution.volumes.model import Bound, Limiter, VolumeMode, VolumePrediction
from gpa_lsp.execution.volumes.predict import predict_volumes
from tests.volumes.written_kernels import DATA, build_field_access, read_json, write_star

Numbers = npt.NDArray[np.float64]

LEVELS = ("DRAM load", "DRAM store", "L2 load", "L2 store")
BOX_SIDE = 15000
_BOX_IN_L1 = (Limiter.FLOPS, Limiter.BLOCKS, Limiter.L1)


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredShape:
    """One shape of a family.

    Attributes:
        kernel: its accesses.
        launch: its threads.
        volumes: bytes per update in the order of :data:`LEVELS`; None where they were not measured.
        giga_updates_per_s: None where they were not measured.
    """

    kernel: KernelAccesses
    launch: LaunchShape
    volumes: tuple[float, float, float, float] | None
    giga_updates_per_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """One stencil.

    Attributes:
        name: for tables.
        shapes: measured.
        is_in_l1: all its data stays in L1, so that nothing beyond limits it.
    """

    name: str
    shapes: tuple[MeasuredShape, ...]
    is_in_l1: bool = False


def write_box(radius: int) -> KernelAccesses:
    """A 2D box of doubles, guarded so that it stays inside its array."""
    strides = (8, 8 * BOX_SIDE)
    arrays = tuple(AccessedArray(name=name, strides_bytes=strides) for name in ("src", "dst"))
    span = range(-radius, radius + 1)
    loads = [build_field_access(0, AccessKind.LOAD, (x, y), strides, element_bytes=8) for y in span for x in span]
    store = build_field_access(1, AccessKind.STORE, (0, 0), strides, element_bytes=8)
    inside = ThreadRegion(low=(radius, radius, 0), high=(BOX_SIDE - radius, BOX_SIDE - radius, 1))
    return KernelAccesses(
        name=f"box{radius}",
        arrays=arrays,
        accesses=tuple(replace(access, region=inside) for access in (*loads, store)),
        flops_per_thread=float(len(span) ** 2),
    )


def list_families() -> tuple[Family, ...]:
    """All that was measured."""
    document = read_json(DATA / "measured_v100_more.json")
    return (
        Family(name="star 4", shapes=tuple(_list_star4())),
        Family(name="star 2", shapes=tuple(_list_star2(document["star2"], 1))),
        Family(name="star 2, folded 2z", shapes=tuple(_list_star2(document["star2"], 2))),
        Family(name="box 0 to 9", shapes=tuple(_list_boxes(document["box"]))),
        Family(name="box 1 in L1", shapes=tuple(_list_boxes_in_l1(document["box_in_l1"])), is_in_l1=True),
    )


def _list_star4() -> Iterator[MeasuredShape]:
    kernel = write_star(4, (640, 512, 512))
    for block, dram_load, dram_store, l2_load, l2_store, rate in read_json(DATA / "measured_v100_star3d.json")["rows"]:
        yield MeasuredShape(
            kernel=kernel,
            launch=cover_updates((632, 504, 504), tuple(block)),
            volumes=(dram_load, dram_store, l2_load, l2_store),
            giga_updates_per_s=rate,
        )


def _list_star2(rows: list[list[object]], layers: int) -> Iterator[MeasuredShape]:
    fold = (1, 1, layers)
    kernel = fold_accesses(write_star(2, (600, 600, 512)), fold)
    for block, own, *volumes in rows:
        if own == list(fold):
            yield MeasuredShape(
                kernel=kernel,
                launch=cover_updates((596, 596, 508), tuple(block), fold),  # type: ignore[arg-type]
                volumes=tuple(volumes),  # type: ignore[arg-type]
                giga_updates_per_s=None,
            )


def _list_boxes(rows: list[list[float]]) -> Iterator[MeasuredShape]:
    launch = cover_updates((BOX_SIDE, BOX_SIDE, 1), (32, 8, 1))
    for radius, *volumes in rows:
        kernel = write_box(int(radius))
        yield MeasuredShape(kernel=kernel, launch=launch, volumes=tuple(volumes), giga_updates_per_s=None)  # type: ignore[arg-type]


def _list_boxes_in_l1(rows: list[list[object]]) -> Iterator[MeasuredShape]:
    box = write_box(1)
    kernel = replace(box, accesses=tuple(replace(one, region=None) for one in box.accesses if one.is_load))
    for block, giga_flops in rows:
        launch = cover_updates((BOX_SIDE, BOX_SIDE, 1), tuple(block))  # type: ignore[arg-type]
        rate = giga_flops / 9  # type: ignore[operator]
        yield MeasuredShape(kernel=kernel, launch=launch, volumes=None, giga_updates_per_s=rate)


def predict_family(
    family: Family, mode: VolumeMode, device: VolumeDevice | None = None
) -> tuple[VolumePrediction, ...]:
    """Each shape of a family, predicted for the V100 with 32 registers per thread; the published model knows no guards."""
    machine = device or (find_paper_device("V100") if mode is VolumeMode.PAPER else find_device("V100 PCIe"))
    found = []
    for shape in family.shapes:
        kernel = shape.kernel
        if mode is VolumeMode.PAPER:
            kernel = replace(kernel, accesses=tuple(replace(access, region=None) for access in kernel.accesses))
        found.append(predict_volumes(kernel, shape.launch, machine, registers=32, mode=mode))
    return tuple(found)


def compare_volumes(family: Family, predictions: tuple[VolumePrediction, ...]) -> Numbers:
    """Relative errors, float64[shapes, levels]."""
    found = [prediction.volumes for prediction in predictions]
    ours = np.array([[one.dram_load, one.dram_store, one.l2_load, one.l2_store] for one in found])
    return ours / np.array([shape.volumes for shape in family.shapes]) - 1


def list_bounds(family: Family, prediction: VolumePrediction) -> tuple[Bound, ...]:
    """Bounds of a shape; of a family that stays in L1, none beyond it."""
    return tuple(bound for bound in prediction.bounds if not family.is_in_l1 or bound.limiter in _BOX_IN_L1)


def rank_correlation(first: Numbers, second: Numbers) -> float:
    """Spearman's."""
    ranks = [np.argsort(np.argsort(values)) for values in (first, second)]
    return float(np.corrcoef(ranks[0], ranks[1])[0, 1])
