"""How many launch configurations a second are predicted: in this process, in several, and with a journal.

Usage: ``python -m tests.bench.exploring [--jobs N]``; the kernels are those of :mod:`tests.bench.predicting`.
"""

import argparse
import tempfile
import time
from pathlib import Path

from gpa_lsp.execution.prediction.exploration.explore import LocalWorkers, Workers, count_cores, evaluate_space
from gpa_lsp.execution.prediction.exploration.journal import Journal
from gpa_lsp.execution.prediction.exploration.model import build_space
from gpa_lsp.execution.prediction.exploration.subjects import prepare_exploration
from tests.bench.predicting import KEPT, write_project

_KERNELS = ("stream", "stencil")


def main() -> None:
    """Print one row per kernel and way of working."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=count_cores())
    jobs = parser.parse_args().jobs
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source = write_project(folder)
        for kernel in _KERNELS:
            begin = time.perf_counter()
            subject = prepare_exploration(source, kernel=kernel, compile_settings=KEPT)
            print(f"{kernel:8} {'prepared':22} {time.perf_counter() - begin:7.2f} s")
            space = build_space((), ("1,2y,2x",), dimensions=subject.dimensions)
            ways: tuple[tuple[str, Workers], ...] = (
                ("here", LocalWorkers(1)),
                (f"{jobs} processes", LocalWorkers(jobs)),
            )
            for words, workers in ways:
                begin = time.perf_counter()
                ranked, _ = evaluate_space(space, subject.evaluate, workers)
                seconds = time.perf_counter() - begin
                predicted = sum(one.seconds is not None for one in ranked)
                print(
                    f"{kernel:8} {words:22} {seconds:7.2f} s for {len(space)} ({predicted} predicted): {1e3 * seconds / len(space):.2f} ms each"
                )
            begin = time.perf_counter()
            with Journal(folder / f"{kernel}.journal", subject.subject) as journal:
                evaluate_space(space, subject.evaluate, LocalWorkers(1), journal=journal)
            seconds = time.perf_counter() - begin
            print(f"{kernel:8} {'here, with a journal':22} {seconds:7.2f} s: {1e3 * seconds / len(space):.2f} ms each")


if __name__ == "__main__":
    main()
