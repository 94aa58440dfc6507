"""A function of 22,000 instructions decoded, structured and joined, against nvdisasm's own time on the same bytes.

The function is made by repeating the code of the largest fixture kernels; jumps are relative, so every copy is sound code. The line table is
that of one copy, so only its part of the instructions has lines; reading line tables is timed on its own on the real function.

Usage: ``python -m tests.bench.large_function [--instructions N] [--times N]``.
"""

import argparse
import os
import statistics
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
from gpa_lsp.code.binary.line_table import read_line_table
from gpa_lsp.code.binary.model import INSTRUCTION_BYTES, Cubin, Function
from gpa_lsp.code.binary.tool_location import find_tool
from gpa_lsp.code.control_flow.build import build_flow_graph
from gpa_lsp.kernel.join import join_profile
from gpa_lsp.profile.model import Device, Launch, LoadedFunction, Module, Profile, StallSamples
from tests.conftest import ROOT

_SOURCE = ROOT / "fixtures" / "cubins" / "sm_90" / "huge_body_original.cubin"
_BASE = 0x7F0000000000
_EXIT, _BRANCH = 0x94D, 0x947
"""The lowest twelve bits of the two opcodes, on every architecture."""


def repeat_function(cubin: Cubin, function: Function, instruction_count: int) -> Function:
    """The function with its code repeated up to a number of instructions."""
    copies = -(-instruction_count * 16 // function.size_bytes)
    image = (function.code * copies)[: instruction_count * 16]
    return replace(function, image=image, code_start=0, size_bytes=len(image), sub_functions=(), call_symbols={})


def chain_function(function: Function, instruction_count: int) -> Function:
    """The function repeated up to at least a number of instructions, its copies run one after the other: an EXIT jumps to the next copy.

    A branch counts its bytes from the next instruction, from bit 32 on; bits 87 to 90 name the always-true predicate. Without sub-functions.
    """
    words = np.frombuffer(function.code, dtype="<u8").reshape(-1, 2).copy()
    exits = np.flatnonzero(words[:, 0] & np.uint64(0xFFF) == _EXIT)
    ahead_bytes = (INSTRUCTION_BYTES * (len(words) - 1 - exits)).astype(np.uint64)
    guards = words[exits, 0] & np.uint64(0xF000)
    words[exits, 0] = guards | np.uint64(_BRANCH) | ahead_bytes << np.uint64(32)
    words[exits, 1] = words[exits, 1] >> np.uint64(32) << np.uint64(32) | np.uint64(0xF << 23)
    copies = -(-instruction_count * INSTRUCTION_BYTES // function.size_bytes)
    image = words.tobytes() * (copies - 1) + function.code
    return replace(function, image=image, code_start=0, size_bytes=len(image), sub_functions=(), call_symbols={})


def time_median(work: Callable[[], object], times: int) -> float:
    """Median wall seconds of several runs."""
    spent = []
    for _ in range(times):
        begin = time.perf_counter()
        work()
        spent.append(time.perf_counter() - begin)
    return statistics.median(spent)


def make_profile(cubin: Cubin, function: Function) -> Profile:
    """One launch with a sample of each of 18 reasons on every instruction."""
    count = function.size_bytes // 16
    ones = np.ones((count, 18), dtype=np.int64)
    samples = StallSamples(
        addresses=np.uint64(_BASE) + 16 * np.arange(count, dtype=np.uint64),
        reasons=tuple(f"reason_{number:02}" for number in range(18)),
        all_samples=ones,
        latency_samples=ones // 2,
    )
    device = Device(name="bench", compute_capability=(9, 0), sm_count=1, sm_clock_hz=1e9)
    launch = Launch(
        index=0, mangled_name=function.name, plain_name="", demangled_name="", module_id=1, grid=(1, 1, 1),
        block=(32, 1, 1), device=device, created_unix_s=None, context_id=None, stream_id=None, metrics={},
        samples=samples, samples_truncated=False,
    )  # fmt: skip
    loaded = (LoadedFunction(name=function.name, address=_BASE),)
    module = Module(module_id=1, image=cubin.image, compute_capability=(9, 0), functions=loaded)
    return Profile(path=None, format_name="bench", tool_version=None, modules={1: module}, launches=(launch,))


def main() -> None:
    """Print each step and the ratio of the whole to nvdisasm alone."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--instructions", type=int, default=22_000)
    parser.add_argument("--times", type=int, default=5)
    options = parser.parse_args()
    nvdisasm = find_tool("nvdisasm")
    if nvdisasm is None:
        sys.exit("nvdisasm is not installed")
    real = read_cubin(_SOURCE.read_bytes())
    original = max(real.functions.values(), key=lambda function: function.size_bytes)
    function = repeat_function(real, original, options.instructions)
    cubin = replace(real, functions={function.name: function})
    with tempfile.TemporaryDirectory() as folder:
        code = Path(folder) / "code.bin"
        code.write_bytes(function.code)
        command = [nvdisasm, "-b", f"SM{cubin.sm}", code]
        alone = time_median(lambda: subprocess.run(command, stdout=subprocess.DEVNULL, check=True), options.times)

        def decode_cold() -> None:
            os.environ["GPA_LSP_CACHE_DIR"] = tempfile.mkdtemp(dir=folder)
            disassemble(cubin, [function.name])

        cold = time_median(decode_cold, options.times)
        warm = time_median(lambda: disassemble(cubin, [function.name]), options.times)
        instructions = disassemble(cubin, [function.name])[function.name]
        structure = time_median(lambda: build_flow_graph(function, instructions, None), options.times)
        lines = time_median(lambda: read_line_table(real, original.name), options.times)
        profile = make_profile(cubin, function)
        import gpa_lsp.kernel.join as join_module  # the join reads the image; here it is given the repeated function

        join_module.read_cubin = lambda image, path=None: cubin  # type: ignore[assignment]
        join = time_median(lambda: join_profile(profile), options.times) - warm - structure
    rows = (
        ("nvdisasm alone", alone),
        ("disassembled and decoded, cold", cold),
        ("the same from the cache", warm),
        ("structured", structure),
        (f"line table of {original.size_bytes // 16} instructions", lines),
        ("joined with samples", join),
    )
    for name, seconds in rows:
        print(f"{name:40} {1000 * seconds:8.1f} ms")
    whole = cold + structure + join
    print(f"{'whole, cold':40} {1000 * whole:8.1f} ms = {whole / alone:.2f} x nvdisasm alone")


if __name__ == "__main__":
    main()
