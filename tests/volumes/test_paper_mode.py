"""The published model is reproduced: every basic and derived quantity of the authors' configurations, to 1e-6."""

from collections.abc import Iterator
from math import prod
from typing import Any

import pytest
from msgspec.structs import replace

from gpa_lsp.execution.volumes import predict
from gpa_lsp.execution.volumes.devices import find_paper_device
from gpa_lsp.execution.volumes.expressions import KernelAccesses, ThreadRegion, cover_updates, fold_accesses
from gpa_lsp.execution.volumes.model import Limiter, VolumeMode, VolumePrediction
from gpa_lsp.execution.volumes.predict import PAPER_FITS, predict_volumes
from tests.volumes.enumeration import enumerate_sectors
from tests.volumes.written_kernels import (
    DATA,
    build_reference_kernel,
    find_bound,
    find_reference,
    read_json,
    write_star,
)

_LIMITERS = (Limiter.L1, Limiter.L2, Limiter.DRAM)


def predict_paper(kernel: KernelAccesses, config: dict[str, Any]) -> VolumePrediction:
    launch = cover_updates(tuple(config["domain"]), tuple(config["block"]))
    device = find_paper_device(config["device"])
    return predict_volumes(kernel, launch, device, registers=32, mode=VolumeMode.PAPER)


def compare(prediction: VolumePrediction, config: dict[str, Any]) -> Iterator[tuple[str, float, float]]:
    """Every number of a configuration: its name, ours, theirs."""
    counts, volumes, basic, derived = prediction.counts, prediction.volumes, config["basic"], config["derived"]
    wave, reuse = prediction.wave, prediction.reuse
    for axis in range(3):
        yield f"grid {axis}", prediction.launch.grid[axis], config["launch"]["grid"][axis]
        yield f"wave {axis}", wave.start[axis], config["launch"]["waveSize"][axis]
        yield f"representative {axis}", wave.representative[axis], config["launch"]["truncatedWaveSize"][axis]
    yield "blocks per SM", prediction.blocks_per_sm, config["launch"]["blocksPerSM"]
    yield "L1Cycles", counts.l1_cycles_per_warp, basic["L1Cycles"]
    yield "blockL1LoadAlloc", counts.block_line_bytes, basic["blockL1LoadAlloc"]
    yield "blockL1Load", counts.block_request_bytes, basic["blockL1Load"]
    yield "blockL2Load", counts.block_load_bytes, basic["blockL2Load"]
    yield "blockL2Store", counts.block_store_bytes, basic["blockL2Store"]
    yield "waveMemLoadNew", counts.wave_load_bytes, basic["waveMemLoadNew"]
    yield "waveMemStoreNew", counts.wave_store_bytes, basic["waveMemStoreNew"]
    for index, axes in enumerate(((0, 1), (2,))):
        yield f"waveMemOld {index}", sum(counts.before_bytes[axis] for axis in axes), basic["waveMemOld"][index]
        loaded = sum(counts.shared_load_bytes[axis] for axis in axes)
        yield f"waveMemLoadOverlap {index}", loaded, basic["waveMemLoadOverlap"][index]
        yield f"memLoadOverlap {index}", reuse[index].overlap, derived["memLoadOverlap"][index]
        yield f"memLoadOverlapHit {index}", reuse[index].hit, derived["memLoadOverlapHit"][index]
    yield "waveValidCells", counts.wave_threads, basic["waveValidCells"]
    yield "TLBpages", counts.wave_pages, basic["TLBpages"]
    yield "L1Cycles per update", counts.l1_cycles_per_warp, derived["L1Cycles"]
    yield "L1Load", volumes.l1_load, derived["L1Load"]
    yield "L2LoadV1", volumes.l2_load_compulsory, derived["L2LoadV1"]
    yield "smL1Alloc", counts.block_line_bytes * prediction.blocks_per_sm, derived["smL1Alloc"]
    yield "L1coverage", prediction.l1_oversubscription, derived["L1coverage"]
    yield "L1LoadEvicts", volumes.l2_load_capacity, derived["L1LoadEvicts"]
    yield "L2LoadV2", volumes.l2_load, derived["L2LoadV2"]
    yield "L2Store", volumes.l2_store, derived["L2Store"]
    yield "memLoadV1", volumes.dram_load_footprint, derived["memLoadV1"]
    yield "memLoadV2", volumes.dram_load_footprint - volumes.dram_load_reused, derived["memLoadV2"]
    yield "L2Oversubscription", prediction.l2_oversubscription, derived["L2Oversubscription"]
    yield "memStoreV1", volumes.dram_store_compulsory, derived["memStoreV1"]
    yield "memStoreEvicts", volumes.dram_store_partial, derived["memStoreEvicts"]
    yield "memStoreV2", volumes.dram_store, derived["memStoreV2"]
    yield "memLoadV3", volumes.dram_load, derived["memLoadV3"]
    yield "memLoadEvicts", prediction.l2_capacity_estimate, derived["memLoadEvicts"]
    yield "memLoadV4", volumes.dram_load + prediction.l2_capacity_estimate, derived["memLoadV4"]
    yield "limV3", _LIMITERS.index(prediction.bounds[0].limiter), derived["limV3"]
    yield "perfV3", prediction.updates_per_s / 1e9, derived["perfV3"]
    for limiter, name in zip(_LIMITERS, ("perfL1", "perfL2V2", "perfMemV3"), strict=True):
        bound = find_bound(prediction, limiter)
        yield name, 0.0 if bound is None else bound.updates_per_s / 1e9, derived[name]
    yield from _compare_versions(prediction, derived)


def _compare_versions(prediction: VolumePrediction, derived: dict[str, Any]) -> Iterator[tuple[str, float, float]]:
    """Performance by fewer (V1, V2) and by more (V4) of the volumes' parts."""
    volumes, device = prediction.volumes, prediction.device
    l1 = find_bound(prediction, Limiter.L1)
    assert l1 is not None
    l2 = device.l2_bytes_per_s / (volumes.l2_load_compulsory + volumes.l2_store)
    l2_all = device.l2_bytes_per_s / (volumes.l2_load + volumes.l2_store)
    stored = volumes.dram_store_compulsory
    warm = volumes.dram_load_footprint - volumes.dram_load_reused
    dram = [device.dram_bytes_per_s / moved for moved in (volumes.dram_load_footprint + stored, warm + stored)]
    last = device.dram_bytes_per_s / (volumes.dram_load + prediction.l2_capacity_estimate + volumes.dram_store)
    yield "perfL2V1", l2 / 1e9, derived["perfL2V1"]
    yield "perfMemV1", dram[0] / 1e9, derived["perfMemV1"]
    yield "perfMemV2", dram[1] / 1e9, derived["perfMemV2"]
    yield "perfMemV4", last / 1e9, derived["perfMemV4"]
    yield "perfV1", min(l1.updates_per_s, l2, dram[0]) / 1e9, derived["perfV1"]
    yield "perfV2", min(l1.updates_per_s, l2, dram[1]) / 1e9, derived["perfV2"]
    yield "perfV4", min(l1.updates_per_s, l2_all, last) / 1e9, derived["perfV4"]


def list_differences(document: dict[str, Any], configs: list[dict[str, Any]]) -> list[tuple[object, ...]]:
    kernels = {name: build_reference_kernel(name, entry) for name, entry in document["kernels"].items()}
    return [
        (config["device"], config["kernel"], config["block"], name, ours, theirs)
        for config in configs
        for name, ours, theirs in compare(predict_paper(kernels[config["kernel"]], config), config)
        if abs(ours - theirs) > 1e-6 * max(1.0, abs(theirs))
    ]


def test_sample_of_configurations_is_reproduced() -> None:
    document = read_json(DATA / "paper_configurations.json")
    assert len(document["configs"]) == 15
    assert list_differences(document, document["configs"]) == []


def test_all_configurations_are_reproduced() -> None:
    path = find_reference()
    if path is None:
        pytest.skip("the authors' configurations are not at hand (set GPA_LSP_REFERENCE)")
    document = read_json(path)
    configs = [config for config in document["configs"] if config["version"] == "paper"]
    assert len(configs) > 300
    assert list_differences(document, configs) == []


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("l1_miss", replace(PAPER_FITS.l1_miss, scale=0.74)),
        ("row_hit", replace(PAPER_FITS.row_hit, height=0.079)),
        ("layer_hit", replace(PAPER_FITS.layer_hit, rate=3.98)),
        ("store_evicted", replace(PAPER_FITS.store_evicted, rate=0.62)),
        ("l2_miss", replace(PAPER_FITS.l2_miss, scale=0.51)),
    ],
)
def test_a_changed_constant_is_noticed(monkeypatch: pytest.MonkeyPatch, name: str, changed: object) -> None:
    monkeypatch.setattr(predict, "PAPER_FITS", replace(PAPER_FITS, **{name: changed}))
    document = read_json(DATA / "paper_configurations.json")
    assert list_differences(document, document["configs"]) != []


def test_a_changed_bound_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(predict, "_MOST_OVERSUBSCRIPTION", 1.0)
    document = read_json(DATA / "paper_configurations.json")
    assert list_differences(document, document["configs"]) != []


@pytest.mark.parametrize(
    ("device", "block", "fold", "expected", "limiter"),
    [
        ("A100", (16, 2, 32), (1, 1, 1), 75.6, Limiter.DRAM),
        ("A100", (16, 1, 64), (1, 2, 1), 78.2, Limiter.L2),
        ("A100", (16, 2, 32), (1, 1, 2), 78.2, Limiter.L2),
        ("A100", (16, 2, 16), (1, 1, 1), 68.9, None),
        ("A100", (16, 1, 32), (1, 2, 1), 76.2, None),
        ("A100", (16, 2, 16), (1, 1, 2), 76.2, None),
        ("V100", (16, 2, 32), (1, 1, 1), 41.7, None),
        ("V100", (32, 1, 32), (1, 2, 1), 41.9, None),
        ("V100", (32, 2, 16), (1, 1, 2), 41.9, None),
        ("V100", (16, 2, 16), (1, 1, 1), 38.5, None),
        ("V100", (16, 1, 32), (1, 2, 1), 40.2, None),
        ("V100", (16, 2, 16), (1, 1, 2), 40.2, None),
    ],
)
def test_best_folded_configurations(
    device: str, block: tuple[int, int, int], fold: tuple[int, int, int], expected: float, limiter: Limiter | None
) -> None:
    """The best of each fold by the authors' program, 1e9 updates/s to three digits."""
    kernel = fold_accesses(write_star(4, (640, 512, 1000)), fold)
    launch = cover_updates((632, 504, 992), block, fold)
    found = predict_volumes(kernel, launch, find_paper_device(device), registers=32, mode=VolumeMode.PAPER)
    bounds = [bound for bound in found.bounds if bound.limiter is not Limiter.FLOPS]
    assert round(bounds[0].updates_per_s / 1e9, 1) == expected
    assert limiter in (None, bounds[0].limiter)


def test_folding_halves_what_is_loaded_from_l1() -> None:
    plain = write_star(4, (640, 512, 1000))
    folded = fold_accesses(plain, (1, 2, 1))
    assert len([access for access in plain.accesses if access.is_load]) == 25
    # Rows -4 to 5 of the column, and 8 along x and along z for each of two rows.
    assert len([access for access in folded.accesses if access.is_load]) == 10 + 2 * 16
    assert folded.flops_per_thread == 50.0


@pytest.mark.parametrize(
    ("fold", "cut"),
    [
        ((1, 1, 1), (0, 4, 4)),
        ((1, 1, 4), (0, 4, 0)),
        ((2, 1, 1), (0, 4, 4)),
        ((1, 4, 4), (0, 0, 0)),
    ],
)
def test_threads_are_cut_at_the_number_of_updates_alone(fold: tuple[int, int, int], cut: tuple[int, int, int]) -> None:
    """Along a folded axis, threads of the last block beyond updates / fold are counted as if they had work, as in the authors' program."""
    updates, block = (64, 36, 36), (16, 8, 8)
    launch = cover_updates(updates, block, fold)
    kernel = write_star(1, (80, 80, 80))
    guarded = fold_accesses(
        replace(kernel, accesses=tuple(replace(one, region=launch_region(updates)) for one in kernel.accesses)), fold
    )
    device = find_paper_device("V100")
    plain, found = (
        predict_volumes(one, launch, device, registers=32, mode=VolumeMode.PAPER)
        for one in (fold_accesses(kernel, fold), guarded)
    )
    assert plain.counts == found.counts
    box = found.wave.current
    beyond = [size * count - high for size, count, high in zip(block, launch.grid, updates, strict=True)]
    assert [max(0, threads) for threads in beyond] == list(cut)
    lows, highs = ([at * size for at, size in zip(ends, block, strict=True)] for ends in (box.low, box.high))
    counted = prod(min(high, whole) - low for low, high, whole in zip(lows, highs, updates, strict=True))
    assert found.counts.wave_threads == counted
    stores = [one for one in fold_accesses(kernel, fold).accesses if one.is_store]
    region = ThreadRegion(low=(0, 0, 0), high=updates)
    assert found.counts.wave_store_bytes == 32 * len(enumerate_sectors(stores, launch, box, region))


def launch_region(updates: tuple[int, int, int]) -> ThreadRegion:
    """The guard of a kernel that makes so many updates."""
    return ThreadRegion(low=(0, 0, 0), high=updates)
