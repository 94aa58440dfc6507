"""How long compiling takes, warm: source → PTX and cubin by NVRTC, by nvcc, and out of the units kept in memory.

Usage: ``python -m tests.bench.compiling [--times N]``; the sources are the fixtures' kernels and a program with host code around one of them.
"""

import argparse
import tempfile
from pathlib import Path

from gpa_lsp.execution.compiler.compile import compile_source
from gpa_lsp.execution.compiler.host_code import find_host_code
from gpa_lsp.execution.compiler.messages import parse_messages
from gpa_lsp.execution.compiler.model import CompilerChoice, CompileSettings
from gpa_lsp.execution.compiler.nvcc_location import find_nvcc
from gpa_lsp.execution.compiler.nvrtc_processes import NvrtcProcesses, identify_nvrtc
from gpa_lsp.execution.compiler.project import find_flags
from tests.bench import time_work
from tests.conftest import ROOT

HOST = '\n#include <cstdio>\nint main() { std::printf("host\\n"); }\n'
KERNELS = ("strided_access", "shared_reduction", "bank_conflict", "register_spill", "tensor_core", "huge_body")


def main() -> None:
    """Print one row per source and compiler."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=7)
    times = parser.parse_args().times
    print(f"{'what':58} {'min ms':>8} {'median ms':>10}")
    if identify_nvrtc() is not None:
        _print_row("NVRTC's process: start, load, greet", *time_work(_start, min(times, 3)))
        for name in KERNELS:
            _time_source(ROOT / "fixtures" / "kernels" / name / "original.cu", CompilerChoice.NVRTC, times)
        source = ROOT / "fixtures" / "kernels" / KERNELS[0] / "original.cu"
        kept = CompileSettings(choice=CompilerChoice.NVRTC)
        compile_source(source, settings=kept)
        _print_row(f"kept unit {KERNELS[0]}", *time_work(lambda: compile_source(source, settings=kept), times))
    with tempfile.TemporaryDirectory() as folder:
        whole = Path(folder, "whole.cu")
        whole.write_bytes((ROOT / "fixtures" / "kernels" / KERNELS[0] / "original.cu").read_bytes() + HOST.encode())
        if identify_nvrtc() is not None:
            _time_source(whole, CompilerChoice.NVRTC, times)
        if find_nvcc(whole) is not None:
            _time_source(whole, CompilerChoice.NVCC, min(times, 5))
        _print_row(
            "host code told from device code (whole.cu)", *time_work(lambda: find_host_code(whole.read_bytes()), times)
        )
        _print_row("flags looked for where there are none", *time_work(lambda: find_flags(whole), times))
    output = '/k.cu(3): error: identifier "y" is undefined\n  y = 3;\n  ^\n\n' * 2000
    _print_row("2,000 messages", *time_work(lambda: parse_messages(output), times))


def _start() -> None:
    processes = NvrtcProcesses()
    processes.greet()
    processes.pool.close()


def _time_source(source: Path, choice: CompilerChoice, times: int) -> None:
    settings = CompileSettings(choice=choice, keeps_units=False)
    compile_source(source, settings=settings)
    name = source.parent.name if source.stem == "original" else source.name
    _print_row(f"{choice.value:6} {name}", *time_work(lambda: compile_source(source, settings=settings), times))


def _print_row(what: str, smallest: float, median: float) -> None:
    print(f"{what:58} {1000 * smallest:8.1f} {1000 * median:10.1f}")


if __name__ == "__main__":
    main()
