"""Volumes of a stencil: milliseconds per configuration, and of each step from a trace to an answer; accuracy beside counters of a V100, by family,
with the model's constants and with constants fitted to the other families.

Configurations are those of the published experiments: blocks of 1,024 and 512 threads, without folding and folded along y and z. What is
remembered between configurations of one kernel (its groups) is remembered here too, as an exploration does it.

Usage: ``python -m tests.bench.volumes [--times N] [--accuracy]``.
"""

import argparse
import statistics
import time
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from msgspec.structs import replace

from gpa_lsp.execution.volumes.answer import answer_volumes
from gpa_lsp.execution.volumes.devices import VolumeDevice, find_device, find_paper_device
from gpa_lsp.execution.volumes.expressions import KernelAccesses, LaunchShape, Triple, cover_updates, fold_accesses
from gpa_lsp.execution.volumes.from_trace import list_probe_blocks, recover_expressions
from gpa_lsp.execution.volumes.model import VolumeMode, VolumePrediction
from gpa_lsp.execution.volumes.predict import (
    CORRECTED_FITS,
    Fit,
    Setting,
    combine_bounds,
    derive_volumes,
    predict_volumes,
)
from tests.volumes.measured_families import (
    LEVELS,
    Family,
    Numbers,
    compare_volumes,
    list_bounds,
    list_families,
    predict_family,
    rank_correlation,
)
from tests.volumes.test_paper_mode import list_differences
from tests.volumes.written_kernels import find_reference, read_json, write_star
from tests.volumes.written_traces import WrittenAccess, write_trace

_EXTENTS, _UPDATES = (640, 512, 1000), (632, 504, 992)
_FOLDS: tuple[Triple, ...] = ((1, 1, 1), (1, 2, 1), (1, 1, 2))


def list_blocks(threads: int) -> Iterator[Triple]:
    """Shapes of so many threads, z at most 64."""
    for x in (1 << power for power in range(11)):
        for z in (1 << power for power in range(7)):
            if threads % (x * z) == 0 and threads // (x * z) >= 1:
                yield (x, threads // (x * z), z)


def time_configurations(kernel: KernelAccesses, fold: Triple, device: VolumeDevice, mode: VolumeMode) -> list[float]:
    """Milliseconds of each configuration, ascending."""
    found = []
    for threads in (1024, 512):
        for block in list_blocks(threads):
            launch: LaunchShape = cover_updates(_UPDATES, block, fold)
            start = time.perf_counter()
            predict_volumes(kernel, launch, device, registers=32, mode=mode)
            found.append((time.perf_counter() - start) * 1e3)
    return sorted(found)


def time_once(action: Callable[[], object], times: int) -> float:
    """Median milliseconds."""
    found = []
    for _ in range(times):
        start = time.perf_counter()
        action()
        found.append((time.perf_counter() - start) * 1e3)
    return statistics.median(found)


def print_configurations() -> None:
    print("mode       fold  configurations  median ms  longest ms  (the authors' program: 530, folded 2,000)")
    for mode, device in (
        (VolumeMode.PAPER, find_paper_device("A100")),
        (VolumeMode.CORRECTED, find_device("A100 SXM4 40GB")),
    ):
        for fold in _FOLDS:
            kernel = fold_accesses(write_star(4, _EXTENTS), fold)
            taken = time_configurations(kernel, fold, device, mode)
            name = "".join(map(str, fold))
            print(f"{mode.value:10} {name:5} {len(taken):13} {statistics.median(taken):10.2f} {taken[-1]:11.2f}")


def print_recovery(times: int) -> None:
    kernel, block = write_star(4, _EXTENTS), (32, 8, 4)
    launch = cover_updates(_UPDATES, block)
    accesses = [
        WrittenAccess(
            addresses=lambda t, b, a=access: [
                (1 << 30)
                + a.constant_bytes
                + sum(s * (at * n + i) for s, at, n, i in zip(a.global_bytes, b, block, t, strict=True))
            ],
            kind=access.kind,
            array=access.array,
        )
        for access in kernel.accesses
    ]
    trace = write_trace(
        accesses, block=block, grid=launch.grid, traced=list_probe_blocks(launch.grid), array_bytes=1 << 32
    )
    device = find_device("A100 SXM4 40GB")
    found = recover_expressions(trace)
    predicted = predict_volumes(found, launch, device, registers=32)
    print(f"recovering {len(found.accesses)} expressions from {len(trace.accesses)} warp-level accesses: ", end="")
    print(f"{time_once(lambda: recover_expressions(trace), times):.2f} ms")
    print(f"predicting: {time_once(lambda: predict_volumes(found, launch, device, registers=32), times):.2f} ms")
    print(f"answering: {time_once(lambda: answer_volumes(predicted, found), times):.2f} ms")


def print_accuracy() -> None:
    """Print the results of both models and of the counters, family by family."""
    print("V100, by family of stencils: signed median error / mean absolute error in % / rank correlation")
    print(f"{'mode':10} {'family':19} {'shapes':>6}", *(f"{level:>20}" for level in (*LEVELS, "performance")))
    for mode in VolumeMode:
        for family in list_families():
            predictions = predict_family(family, mode)
            cells = [""] * len(LEVELS)
            if family.shapes[0].volumes is not None:
                errors = compare_volumes(family, predictions)
                measured = np.array([shape.volumes for shape in family.shapes])
                cells = [describe_errors(errors[:, level], measured[:, level]) for level in range(len(LEVELS))]
            rates = predict_rates(
                family, predictions, None if mode is VolumeMode.PAPER else CORRECTED_FITS.overlap_exponent
            )
            cells.append("" if rates is None else describe_errors(rates[0] / rates[1] - 1, rates[1]))
            print(f"{mode.value:10} {family.name:19} {len(family.shapes):6}", *(f"{cell:>20}" for cell in cells))


def describe_errors(errors: Numbers, measured: Numbers) -> str:
    """Errors of one column of one family; no ranks where all values are the same within 1 %."""
    ranks = (
        f"{rank_correlation((errors + 1) * measured, measured):.3f}"
        if np.ptp(measured) > 0.01 * measured.max()
        else "-"
    )
    return f"{100 * np.median(errors):+.1f} / {100 * np.abs(errors).mean():.1f} / {ranks}"


def predict_rates(
    family: Family, predictions: tuple[VolumePrediction, ...], exponent: float | None
) -> tuple[Numbers, Numbers] | None:
    """Rates as predicted and as measured; None where none were measured."""
    if family.shapes[0].giga_updates_per_s is None:
        return None
    fits = replace(CORRECTED_FITS, overlap_exponent=exponent)
    rates = [combine_bounds(list_bounds(family, prediction), fits) / 1e9 for prediction in predictions]
    return np.array(rates), np.array([shape.giga_updates_per_s for shape in family.shapes])


def print_left_out() -> None:
    """Print each family's error when the model's constants are fitted to the other families."""
    families = list_families()
    predicted = {family.name: predict_family(family, VolumeMode.CORRECTED) for family in families}
    with_volumes = [family for family in families if family.shapes[0].volumes is not None]
    with_rates = [family for family in families if family.shapes[0].giga_updates_per_s is not None]
    sizes = [ratio / 40 for ratio in range(34, 47)]
    dram = {
        family.name: [measure_dram(family, predicted[family.name], ratio) for ratio in sizes] for family in with_volumes
    }
    print_choice("loads from DRAM, if the part of its size that L2 keeps were fitted", sizes, dram, 1.0)
    misses = [Fit(s / 50, h, -r / 4) for s in range(10, 36, 2) for h in (3, 4, 5, 6, 7, 8, 10) for r in range(2, 13)]
    l1 = {family.name: [measure_l2(family, predicted[family.name], fit) for fit in misses] for family in with_volumes}
    print_choice(
        "loads from L2, with l1_miss fitted", misses, l1, CORRECTED_FITS.l1_miss, l1_in_use(with_volumes, predicted)
    )
    exponents = [step / 8 for step in range(12, 41)]
    rates = {
        family.name: [measure_rates(family, predicted[family.name], power) for power in exponents]
        for family in with_rates
    }
    in_use = CORRECTED_FITS.overlap_exponent or 1.0
    print_choice("performance, with the overlap exponent fitted", exponents, rates, in_use)


def measure_dram(family: Family, predictions: tuple[VolumePrediction, ...], ratio: float) -> float:
    """Mean error in % of the loads from DRAM if L2 were that much larger."""
    found = []
    for one, shape in zip(predictions, family.shapes, strict=True):
        device = replace(one.device, l2_bytes=int(one.device.l2_bytes * ratio))
        setting = Setting(launch=one.launch, device=device, blocks_per_sm=one.blocks_per_sm)
        load = derive_volumes(one.counts, setting, CORRECTED_FITS).volumes.dram_load
        found.append(abs(load / (shape.volumes or (load,))[0] - 1))
    return 100 * statistics.mean(found)


def measure_l2(family: Family, predictions: tuple[VolumePrediction, ...], fit: Fit) -> float:
    """Mean error in % of the loads from L2 with another fit of L1's misses."""
    found = []
    for one, shape in zip(predictions, family.shapes, strict=True):
        volumes = one.volumes
        again = volumes.l1_load - volumes.l2_load_compulsory
        load = volumes.l2_load_compulsory + again * fit.at(one.l1_oversubscription)
        found.append(abs(load / (shape.volumes or (0, 0, load))[2] - 1))
    return 100 * statistics.mean(found)


def l1_in_use(families: list[Family], predicted: dict[str, tuple[VolumePrediction, ...]]) -> dict[str, float]:
    """The same with the fit in use, which is on no grid."""
    return {family.name: measure_l2(family, predicted[family.name], CORRECTED_FITS.l1_miss) for family in families}


def measure_rates(family: Family, predictions: tuple[VolumePrediction, ...], exponent: float) -> float:
    """Mean error in % of the rates with another exponent."""
    rates = predict_rates(family, predictions, exponent)
    return 0.0 if rates is None else 100 * float(np.abs(rates[0] / rates[1] - 1).mean())


def print_choice(
    title: str,
    candidates: Sequence[object],
    errors: dict[str, list[float]],
    in_use: object,
    used: dict[str, float] | None = None,
) -> None:
    """Print each family's mean error with what is in use, with what suits it best, and with what suits the others best."""
    print(f"{title}: mean error in %; in use {in_use}")
    print(f"{'family':19} {'in use':>7} {'own best':>9} {'fitted to the others':>21}")
    for name, own in errors.items():
        others = [
            sum(values) for values in zip(*(found for other, found in errors.items() if other != name), strict=True)
        ]
        best, foreign = int(np.argmin(own)), int(np.argmin(others))
        now = used[name] if used else own[list(candidates).index(in_use)]
        print(
            f"{name:19} {now:7.1f} {own[best]:9.1f} {own[foreign]:21.1f}  ({candidates[best]}; {candidates[foreign]})"
        )


def print_reproduction() -> None:
    path = find_reference()
    if path is None:
        print("all published configurations: not at hand (set GPA_LSP_REFERENCE)")
        return
    document = read_json(path)
    configs = [config for config in document["configs"] if config["version"] == "paper"]
    print(f"published configurations: {len(configs)}, differences: {len(list_differences(document, configs))}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--accuracy", action="store_true", help="tables of accuracy alone")
    arguments = parser.parse_args()
    if not arguments.accuracy:
        print_configurations()
        print_recovery(arguments.times)
    print_accuracy()
    print_left_out()
    print_reproduction()


if __name__ == "__main__":
    main()
