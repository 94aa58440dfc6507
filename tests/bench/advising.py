"""Blame and advice: functions of up to 100,000 instructions with samples of every reason on every PC, how the time grows, and real reports.

The functions are made by repeating the code of the largest fixture kernel, as in :mod:`tests.bench.large_function`; the growth is the slope of
a straight line through the logarithms of sizes and times. Memory is the process' largest resident size, of a process of its own. On the corpus
the time is compared with what decoding the same kernels takes (read, disassemble without cache, join).

With ``--shares`` only two tables in CPU time: which optimizer takes how much of all of them on the reports of one GPU, and how long the published
blamer takes beside the default one on the largest functions: those of the corpus, and kernels of it run one after the other.

Usage: ``python -m tests.bench.advising [--times N] [--blamer NAME] [--sizes N ...] [--shares]``.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from msgspec.structs import replace

from gpa_lsp.code.binary.cubin import read_cubin
from gpa_lsp.code.binary.disassembler import disassemble
from gpa_lsp.code.control_flow.build import build_flow_graph
from gpa_lsp.diagnosis.advice.advise import advise_kernel, find_obstacle, list_optimizers
from gpa_lsp.diagnosis.analyses.roofline.place import place_kernel
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.diagnosis.blame import DEFAULT_BLAMER
from gpa_lsp.diagnosis.blame.blame import blame_kernel
from gpa_lsp.gpu.arch.lookup import find_architecture
from gpa_lsp.kernel.join import join_profile
from gpa_lsp.kernel.model import FunctionSamples, Kernel
from gpa_lsp.kernel.scatter import index_routines
from gpa_lsp.profile.model import Device, Launch, Metric
from gpa_lsp.profile.read import read_profile
from gpa_lsp.profile.stall_reasons import STALL_REASONS
from tests.bench.large_function import chain_function, repeat_function, time_median
from tests.conftest import ROOT, find_corpus

_SOURCE = ROOT / "fixtures" / "cubins" / "sm_90" / "huge_body_original.cubin"
_SIZES = (5_000, 11_000, 22_000, 44_000, 100_000)

_REPORTS_OF_OPTIMIZERS = "ncu/v100_*.ncu-rep"
_SLOWEST = 6
_CHAINED = (
    ("ncu/rtx3090_mergesort_2023.1", 7_000),
    ("ncu/a100_cutlass_sm80_2024.1", 13_000),
    ("ncu/v100_miniweather_divtomult_2022.2", 13_000),
    ("ncu/v100_miniweather_baseline_2022.2", 7_000),
    ("ncu/a40_julia_relative_2022.4", 13_000),
    ("ncu/a100_selfjoin_saturated_2020.3", 7_000),
    ("pairs/rtx4090_sgemm_2d_sharedmem_blocking_without_registers", 7_000),
    ("pairs/rtx4080l_accumulate", 13_000),
)
"""Reports, and how many instructions their larger kernels are chained to."""

_LEAST_CHAINED = 300


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
        advised.append(time_median(lambda one=kernel, other=blame: advise_kernel(Subject(one, other)), times))  # type: ignore[misc]
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
        advising = time_median(lambda some=pairs: [advise_kernel(Subject(*pair)) for pair in some], times)  # type: ignore[misc]
        ratio = (blaming + advising) / decoding
        row = f"{len(kernels):7} {1000 * decoding:10.0f} {1000 * blaming:9.0f} {1000 * advising:9.0f} {ratio:6.2f}"
        print(f"{path.stem:36} {row}")


def list_sampled(path: Path) -> list[Kernel]:
    """The kernels of a report that have samples."""
    return [kernel for kernel in join_profile(read_profile(path))[0] if kernel.total_samples]


def chain_kernel(kernel: Kernel, instruction_count: int) -> Kernel:
    """A kernel of its first function, run again and again in one body, with the samples of each instruction on all its copies."""
    section = kernel.functions[0]
    assert section.function is not None and kernel.cubin is not None
    function = chain_function(section.function, instruction_count)
    cubin = replace(kernel.cubin, functions={function.name: function})
    instructions = disassemble(cubin, [function.name])[function.name]
    count = len(instructions)
    copied = np.arange(count) % len(section.pc_offsets)
    chained = replace(
        section,
        function=function,
        instructions=instructions,
        graph=build_flow_graph(function, instructions, None),
        control=instructions.control,
        lines=None,
        chain_index=np.full(count, -1, dtype=np.int32),
        routine_index=index_routines(function, instructions.pc_offsets),
        pc_offsets=instructions.pc_offsets,
        all_samples=section.all_samples[copied],
        latency_samples=section.latency_samples[copied],
        executions=section.executions[copied],
        counters={},
    )
    return replace(kernel, cubin=cubin, functions=(chained,))


def time_cpu(work: Callable[[], object], times: int) -> float:
    """Least CPU seconds of several runs."""
    spent = []
    for _ in range(times):
        begin = time.process_time()
        work()
        spent.append(time.process_time() - begin)
    return min(spent)


def time_optimizers(corpus: Path, times: int) -> None:
    """Print for some reports the CPU time of all optimizers and the share of the slowest ones."""
    for path in sorted(corpus.glob(_REPORTS_OF_OPTIMIZERS)):
        asked = [(kernel, blame_kernel(kernel), place_kernel(kernel, None)) for kernel in list_sampled(path)]
        runs: list[dict[str, float]] = []
        for _ in range(times + 1):
            spent: dict[str, float] = {}
            for kernel, blame, roofline in asked:
                subject = Subject(kernel, blame, roofline)
                for name, optimizer in list_optimizers().items():
                    begin = time.process_time()
                    if find_obstacle(optimizer, subject) is None:
                        optimizer.advise(subject)
                    spent[name] = spent.get(name, 0.0) + time.process_time() - begin
            runs.append(spent)
        fastest = min(runs[1:], key=lambda spent: sum(spent.values()))  # the first one loads grammars and tables
        total = sum(fastest.values())
        slowest = sorted(fastest.items(), key=lambda item: -item[1])[:_SLOWEST]
        shares = ", ".join(f"{name} {seconds / total:.0%}" for name, seconds in slowest)
        print(f"{path.stem:36} {1000 * total:6.0f} ms for all optimizers: {shares}")


def time_blamers(corpus: Path, times: int) -> None:
    """Print the CPU time of both blamers on the largest functions."""
    print(f"\n{'function of':50} {'instructions':>12} {'blocks':>7} {'scoreboard s':>13} {'paper s':>8} {'ratio':>6}")
    for name, size in _CHAINED:
        for kernel in list_sampled(corpus / f"{name}.ncu-rep"):
            section = max(kernel.functions, key=lambda function: len(function.pc_offsets))
            if section.graph is None or len(section.pc_offsets) < _LEAST_CHAINED:
                continue
            one = chain_kernel(kernel, size) if section is kernel.functions[0] else kernel
            seconds = [
                time_cpu(lambda one=one, blamer=blamer: blame_kernel(one, blamer), times)  # type: ignore[misc]
                for blamer in ("scoreboard", "paper")
            ]
            graph = one.functions[0].graph
            blocks = graph.block_count if graph is not None else 0
            count = len(one.functions[0].pc_offsets)
            print(
                f"{name:50} {count:12,} {blocks:7,} {seconds[0]:13.2f} {seconds[1]:8.2f} {seconds[1] / seconds[0]:6.2f}"
            )


def main() -> None:
    """Time sizes and real reports; with ``--only N`` print the largest resident size of one run in MiB."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--blamer", default=DEFAULT_BLAMER)
    parser.add_argument("--sizes", type=int, nargs="+", default=list(_SIZES))
    parser.add_argument(
        "--shares", action="store_true", help="print only what optimizers and blamers share the time by"
    )
    parser.add_argument("--only", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.only is not None:
        kernel = make_kernel(options.only)
        advise_kernel(Subject(kernel, blame_kernel(kernel, options.blamer)))
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10)
        return
    if options.shares:
        corpus = find_corpus()
        if corpus is None:
            sys.exit("the corpus of real reports is not at hand")
        time_optimizers(corpus, options.times)
        time_blamers(corpus, options.times)
        return
    time_sizes(options.sizes, options.blamer, options.times)
    time_corpus(options.blamer, options.times)


if __name__ == "__main__":
    main()
