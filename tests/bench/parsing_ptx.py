"""PTX: how long parsing and finding basic blocks take, for every fixture kernel together and for a module made of many copies of the largest one.

Usage: ``python -m tests.bench.parsing_ptx [--times N] [--kernels N]``.
"""

import argparse
import time
from collections.abc import Callable
from pathlib import Path

from gpa_lsp.code.binary.cubin import read_cubin
from gpa_lsp.code.binary.embedded_ptx import read_ptx_text
from gpa_lsp.code.ptx.blocks import find_blocks
from gpa_lsp.code.ptx.model import PtxModule
from gpa_lsp.code.ptx.parse import parse_ptx

CUBINS = Path(__file__).resolve().parent.parent.parent / "fixtures" / "cubins" / "sm_90"


def read_fixture(path: Path) -> str:
    return "\n".join(read_ptx_text(read_cubin(path.read_bytes(), path=path)))


def repeat_kernels(text: str, copies: int) -> str:
    """The text with its functions so many times, each time under another name."""
    start = text.index(".visible .entry")
    name = text[start:].split("(", maxsplit=1)[0].rsplit(maxsplit=1)[-1]
    return text[:start] + "\n".join(text[start:].replace(name, f"{name}_{copy}") for copy in range(copies))


def measure(what: Callable[[], object], times: int) -> float:
    """Least seconds of several tries."""
    tries = []
    for _ in range(times):
        start = time.perf_counter()
        what()
        tries.append(time.perf_counter() - start)
    return min(tries)


def parse_whole(text: str) -> PtxModule:
    module = parse_ptx(text, name="bench.ptx")
    for function in module.functions.values():
        len(function.instructions)
    return module


def report(title: str, text: str, times: int) -> None:
    module = parse_whole(text)
    count = sum(len(function.instructions) for function in module.functions.values())
    whole = measure(lambda: parse_whole(text), times)
    outline = measure(lambda: parse_ptx(text, name="bench.ptx"), times)
    blocks = measure(lambda: [find_blocks(function) for function in module.functions.values()], times)
    print(
        f"{title:28} {len(text) / 1e6:6.2f} MB {count:7} instructions {len(module.functions):4} functions  "
        f"parse {whole * 1e3:7.1f} ms ({whole / max(count, 1) * 1e6:4.1f} µs each), returns after {outline * 1e3:6.1f} ms, "
        f"blocks {blocks * 1e3:6.1f} ms"
    )


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--times", type=int, default=3)
    arguments.add_argument("--kernels", type=int, default=500)
    given = arguments.parse_args()
    for name in ("tiny_blocks_original", "device_calls_original", "shared_reduction_original", "huge_body_original"):
        report(name, read_fixture(CUBINS / f"{name}.cubin"), given.times)
    huge = read_fixture(CUBINS / "huge_body_original.cubin")
    report("six times huge_body", repeat_kernels(huge, 6), given.times)
    small = read_fixture(CUBINS / "shared_reduction_original.cubin")
    report(f"{given.kernels} small kernels", repeat_kernels(small, given.kernels), given.times)


if __name__ == "__main__":
    main()
