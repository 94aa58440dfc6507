"""All analyses: of ten kernels of real reports, of ten made ones, one by one, and how they grow with the size of a kernel.

A made kernel repeats the code of the largest fixture kernel, with samples on every instruction and no counters; what it costs to say what is
unknown is in there too. The limit is 0.3 s for a report of ten kernels, roofline included.

Usage: ``python -m tests.bench.analysing [--times N] [--instructions N] [--sizes N ...]``.
"""

import argparse
from collections.abc import Sequence
from itertools import islice

import numpy as np

from gpa_lsp.diagnosis.analyses.analyse_kernel import analyse_kernel, list_analyses
from gpa_lsp.diagnosis.analyses.roofline.place import place_kernel
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.diagnosis.blame.blame import blame_kernel
from gpa_lsp.diagnosis.blame.model import KernelBlame
from gpa_lsp.kernel.join import join_profile
from gpa_lsp.kernel.model import Kernel
from gpa_lsp.profile.read import read_profile
from tests.bench.advising import make_kernel
from tests.bench.large_function import time_median
from tests.conftest import find_corpus

LIMIT_S = 0.3
KERNELS = 10

Blamed = tuple[Kernel, KernelBlame | None]


def blame(kernel: Kernel) -> Blamed:
    """A kernel with its blame."""
    return kernel, blame_kernel(kernel) if kernel.total_samples else None


def analyse(blamed: Blamed) -> None:
    """What the pipeline does after blaming."""
    kernel, found = blamed
    analyse_kernel(Subject(kernel, found, place_kernel(kernel)))


def time_kernels(title: str, kernels: Sequence[Blamed], times: int) -> None:
    """Print the time of all analyses of some kernels, and of each of them."""
    instructions = sum(len(function.pc_offsets) for kernel, _ in kernels for function in kernel.functions)
    print(f"{title}: {len(kernels)} kernels, {instructions:,} instructions")
    total = time_median(lambda: [analyse(one) for one in kernels], times)
    print(f"  all               {1000 * total:8.1f} ms   {total / LIMIT_S:5.2f} of the limit of {LIMIT_S} s")
    placed = time_median(lambda: [place_kernel(kernel) for kernel, _ in kernels], times)
    print(f"  placing           {1000 * placed:8.1f} ms   {placed / total:5.2f} of all")
    facts = [Subject(kernel, found, place_kernel(kernel)) for kernel, found in kernels]
    for name, analysis in list_analyses().items():
        seconds = time_median(lambda one=analysis: [one.answer(some) for some in facts], times)  # type: ignore[misc]
        print(f"  {name:17} {1000 * seconds:8.1f} ms   {seconds / total:5.2f} of all")


def time_sizes(sizes: Sequence[int], times: int) -> None:
    """Print how the time grows with the size of a kernel."""
    seconds = []
    for size in sizes:
        one = blame(make_kernel(size))
        seconds.append(time_median(lambda some=one: analyse(some), times))  # type: ignore[misc]
        print(f"  {size:9,} instructions {1000 * seconds[-1]:8.1f} ms")
    exponent = np.polyfit(np.log(sizes), np.log(seconds), 1)[0]
    print(f"  grows with the {exponent:.2f}th power of the size")


def list_real() -> list[Blamed]:
    """The first kernels of the corpus; empty where it is not at hand."""
    corpus = find_corpus()
    if corpus is None:
        return []
    paths = sorted((corpus / "ncu").iterdir())
    kernels = (kernel for path in paths for kernel in join_profile(read_profile(path))[0])
    return [blame(kernel) for kernel in islice(kernels, KERNELS)]


def main() -> None:
    """Time all of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--instructions", type=int, default=2_000)
    parser.add_argument("--sizes", type=int, nargs="+", default=[2_000, 20_000, 100_000])
    options = parser.parse_args()
    real = list_real()
    if real:
        time_kernels("real reports", real, options.times)
    else:
        print("the corpus of real reports is not at hand")
    time_kernels("made", [blame(make_kernel(options.instructions))] * KERNELS, options.times)
    time_sizes(options.sizes, options.times)


if __name__ == "__main__":
    main()
