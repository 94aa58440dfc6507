"""Volumes of a stencil: milliseconds per configuration, and of each step from a trace to an answer; accuracy beside counters of a V100.

Configurations are those of the published experiments: blocks of 1,024 and 512 threads, without folding and folded along y and z. What is
remembered between configurations of one kernel (its groups) is remembered here too, as an exploration does it.

Usage: ``python -m tests.bench.volumes [--times N]``.
"""

import argparse
import statistics
import time
from collections.abc import Callable, Iterator

import numpy as np

from gpa_lsp.volumes.answer import answer_volumes
from gpa_lsp.volumes.devices import VolumeDevice, find_device, find_paper_device
from gpa_lsp.volumes.expressions import KernelAccesses, LaunchShape, Triple, cover_updates, fold_accesses
from gpa_lsp.volumes.from_trace import list_probe_blocks, recover_expressions
from gpa_lsp.volumes.model import VolumeMode
from gpa_lsp.volumes.predict import predict_volumes
from tests.volumes.test_measured_v100 import list_rates, measure_errors, predict_all, rank_correlation
from tests.volumes.test_paper_mode import list_differences
from tests.volumes.written_kernels import DATA, find_reference, read_json, write_star
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
    rows = read_json(DATA / "measured_v100_star3d.json")["rows"]
    print("V100, 3D star of range 4, 40 shapes; mean error in %, rank correlation of performance")
    print("mode       DRAM load  DRAM store  L2 load  L2 store  performance  rank")
    for mode in VolumeMode:
        predictions = predict_all(rows, mode)
        errors = measure_errors(rows, predictions)
        predicted, measured = list_rates(rows, predictions)
        wrong = 100 * float(np.abs(predicted / measured - 1).mean())
        print(
            f"{mode.value:10} {errors[0]:9.2f} {errors[1]:11.2f} {errors[2]:8.2f} {errors[3]:9.2f} {wrong:12.1f} ",
            end="",
        )
        print(f"{rank_correlation(predicted, measured):5.3f}")


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
    arguments = parser.parse_args()
    print_configurations()
    print_recovery(arguments.times)
    print_accuracy()
    print_reproduction()


if __name__ == "__main__":
    main()
