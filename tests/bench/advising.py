"""Blame and advice: a function of 22,000 and of 100,000 instructions with samples of every reason on every PC, how the time grows, and real reports.

The functions are made by repeating the code of the largest fixture kernel, as in :mod:`tests.bench.large_function`; the growth is the slope of
a straight line through the logarithms of sizes and times. Memory is the process' largest resident size, of a process of its own. On the corpus
the time is compared with what decoding the same kernels takes (read, disassemble without cache, join).

Usage: ``python -m tests.bench.advising [--times N] [--blamer NAME] [--sizes N ...]``.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np

from gpa_lsp.advice.advise import advise_kernel
from gpa_lsp.arch.lookup import find_architecture
from gpa_lsp.binary.cubin import read_cubin
from gpa_lsp.binary.disassembler import disassemble
from gpa_lsp.blame.blame import DEFAULT_BLAMER, blame_kernel
from gpa_lsp.kernel.join import join_profile
from gpa_lsp.kernel.model import FunctionSamples, Kernel
from gpa_lsp.kernel.routines import index_routines
from gpa_lsp.profile.model import Device, Launch, Metric
from gpa_lsp.profile.read import read_profile
from gpa_lsp.profile.stall_reasons import STALL_REASONS
from gpa_lsp.program.build import build_flow_graph
from tests.bench.large_function import repeat_function, time_median
from tests.conftest import ROOT, find_corpus

_SOURCE = ROOT / "fixtures" / "cubins" / "sm_90" / "huge_body_original.cubin"
_SIZES = (5_000, 11_000, 22_000, 44_000, 100_000)


def make_kernel(instruction_count: int) -> Kernel:
    """A joined kernel of that many instructions, with samples of every reason and executions on each."""
    real = read_cubin(_SOURCE.read_bytes(), path=_SOURCE)
    original = max(real.functions.values(), key=lambda function: function.size_bytes)
    function = repeat_function(real, original, instruction_count)
    cubin = replace(real, functions={function.name: function})
    instructions = disassemble(cubin, [function.name])[function.name]
    count = len(instructions)
    every = np.random.default_rng(1).integers(1, 40, size=(count, len(STALL_REASONS)))
    section = FunctionSamples(
        name=function.name,
        function=function,
        instructions=instructions,
        graph=build_flow_graph(function, instructions, None),
        control=instructions.control,
        lines=None,
        chain_index=np.full(count, -1, dtype=np.int32),
        routine_index=index_routines(function, instructions.pc_offsets),
        pc_offsets=instructions.pc_offsets,
        all_samples=every,
        latency_samples=every // 2,
        executions=np.full(count, 1000, dtype=np.int64),
    )
    device = Device(name="bench", compute_capability=(9, 0), sm_count=132, sm_clock_hz=1e9)
    duration = Metric(name="gpu__time_duration.sum", value=1e6)
    launch = Launch(
        index=0, mangled_name=function.name, plain_name="", demangled_name="", module_id=1, grid=(4096, 1, 1),
        block=(256, 1, 1), device=device, created_unix_s=None, context_id=None, stream_id=None,
        metrics={duration.name: duration}, samples=None, samples_truncated=False,
    )  # fmt: skip
    return Kernel(
        mangled_name=function.name,
        name=function.name,
        profile_path=None,
        module=None,
        cubin=cubin,
        device=device,
        architecture=find_architecture((9, 0)),
        launches=(launch,),
        reasons=tuple(sorted(STALL_REASONS)),
        functions=(section,),
    )


def time_sizes(sizes: list[int], blamer: str, times: int) -> None:
    """Print seconds of blame and advice by size, and how they grow."""
    print(f"{'instructions':>12} {'blame s':>9} {'advice s':>9} {'edges':>9} {'largest MiB':>12}")
    blamed: list[float] = []
    advised: list[float] = []
    for size in sizes:
        kernel = make_kernel(size)
        blame = blame_kernel(kernel, blamer)
        blamed.append(time_median(lambda one=kernel: blame_kernel(one, blamer), times))  # type: ignore[misc]
        advised.append(time_median(lambda one=kernel, other=blame: advise_kernel(one, other), times))  # type: ignore[misc]
        command = [sys.executable, "-m", "tests.bench.advising", "--only", str(size), "--blamer", blamer]
        largest = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout.strip()
        print(f"{size:12,} {blamed[-1]:9.2f} {advised[-1]:9.2f} {len(blame.edges):9,} {largest:>12}")
    for name, seconds in (("blame", blamed), ("advice", advised)):
        exponent = np.polyfit(np.log(sizes), np.log(seconds), 1)[0]
        print(f"{name} grows with the {exponent:.2f}th power of the size")


def time_corpus(blamer: str, times: int) -> None:
    """Print for each real report the time of blame and advice beside that of decoding."""
    corpus = find_corpus()
    if corpus is None:
        print("the corpus of real reports is not at hand")
        return
    print(f"\n{'report':36} {'kernels':>7} {'decode ms':>10} {'blame ms':>9} {'advice ms':>9} {'ratio':>6}")
    for path in sorted((corpus / "ncu").iterdir()):

        def decode(path: Path = path) -> tuple[Kernel, ...]:
            with tempfile.TemporaryDirectory() as folder:
                os.environ["GPA_LSP_CACHE_DIR"] = folder
                return join_profile(read_profile(path))[0]

        kernels = [kernel for kernel in decode() if kernel.total_samples]
        blames = [blame_kernel(kernel, blamer) for kernel in kernels]
        decoding = time_median(decode, times)
        blaming = time_median(lambda some=kernels: [blame_kernel(kernel, blamer) for kernel in some], times)  # type: ignore[misc]

        pairs = list(zip(kernels, blames, strict=True))
        advising = time_median(lambda some=pairs: [advise_kernel(*pair) for pair in some], times)  # type: ignore[misc]
        ratio = (blaming + advising) / decoding
        row = f"{len(kernels):7} {1000 * decoding:10.0f} {1000 * blaming:9.0f} {1000 * advising:9.0f} {ratio:6.2f}"
        print(f"{path.stem:36} {row}")


def main() -> None:
    """Time sizes and real reports; with ``--only N`` print the largest resident size of one run in MiB."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--blamer", default=DEFAULT_BLAMER)
    parser.add_argument("--sizes", type=int, nargs="+", default=list(_SIZES))
    parser.add_argument("--only", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.only is not None:
        kernel = make_kernel(options.only)
        advise_kernel(kernel, blame_kernel(kernel, options.blamer))
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10)
        return
    time_sizes(options.sizes, options.blamer, options.times)
    time_corpus(options.blamer, options.times)


if __name__ == "__main__":
    main()
