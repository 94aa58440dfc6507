"""Accuracy of simulated speedups: measured pairs of edits, and the fixtures' twins.

Usage: ``python -m tests.bench.simulating_pairs [--corpus FOLDER] [--machine GPU] [--pair NAME] [--twins]``.

The pairs are those of real reports (``GPA_LSP_CORPUS``), simulated on the report's own code, GPU and clocks. Reports hold grid, block and shared
memory of a launch, but not its arguments: these stand here, with sizes that follow from the grids; data are uniform or zeros, which no path of these
kernels depends on. Nothing of the simulator was fitted on them, but for how long an addition of floats holds its address of L2, which is from the
counters of laks-dot. A pair counts as right where the simulated ratio goes the measured way; where either is closer to 1 than the noise, where both
are. The twins have not been measured: their ratios are printed as they are.
"""

import argparse
import json
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpa_lsp.execution.prediction.launch_sources import LaunchChoice
from gpa_lsp.execution.prediction.simulation import simulate_code
from gpa_lsp.foundation.errors import GpaError
from gpa_lsp.kernel.names import demangle
from gpa_lsp.profile.model import Launch
from gpa_lsp.profile.read import read_profile
from tests.simulator.twins import KERNELS, TWINS, simulate_fixture

NOISE = 1.05
"""A change below it is none."""
CLOSE = 1.2

_IMAGE = 16 * 2048 * 2048
_CONVOLUTION = [("images", 16), ("height", 2048), ("width", 2048), ("size", 11)]
_SIZES = [("m", 1024), ("n", 1024), ("k", 1024)]
_SMALL_PRODUCT = [*((name, "float", 1 << 20) for name in "abc"), *_SIZES, ("alpha", 1.0), ("beta", 0.5)]
_SQUARE = [("a", "float", 1_000_000), ("b", "float", 1_000_000), ("c", "float", 1_000_000)]


def _list_product(size: int) -> list[tuple[Any, ...]]:
    """Arguments of a product of square matrices: sizes, alpha, A, B, beta, C."""
    count = size * size
    sizes = [("m", size), ("n", size), ("k", size)]
    return [*sizes, ("alpha", 1.0), ("a", "float", count), ("b", "float", count), ("beta", 0.5), ("c", "float", count)]


ARGUMENTS: dict[str, list[tuple[Any, ...]]] = {
    "kernel_conv2d_baseline": [("in", "float", _IMAGE), ("filter", "float", 121), ("out", "float", _IMAGE), *_CONVOLUTION],
    "kernel_conv2d_variant_1": [("in", "float", _IMAGE), ("filter", "float", 121), ("out", "float", _IMAGE), *_CONVOLUTION],
    "kernel_conv2d_variant2": [("in", "float", _IMAGE), ("out", "float", _IMAGE), *_CONVOLUTION],
    "matrix_addition2D": [*_SQUARE, ("rows", 1000), ("columns", 1000)],
    "matrix_addition1D": [*_SQUARE, ("count", 1_000_000)],
    "sgemm_": _list_product(2048),
    "naive_gemm": _SMALL_PRODUCT,
    "sgemm_global_mem_coalesce": _SMALL_PRODUCT,
    "dot_prod": [("a", "float", 1 << 20), ("b", "float", 1 << 20), ("out", "float", 1), ("count", 1 << 20)],
    "dotmul": [(name, "float", 1 << 25) for name in "abcd"],
    "relu": [("in", "float", 1 << 25), ("out", "float", 1 << 25)],
    "reduce_v": [("in", "float", 1 << 25), ("out", "float", 1 << 17)],
    "gemv_kernel_part": [("a", "double", 1 << 26), ("x", "double", 8192), ("y", "double", 8192), ("m", 8192), ("n", 8192)],
}  # fmt: skip
"""Beginning of a kernel's name → its arguments: name and value of a number, name, type and count of an array. The longest one is meant."""

_MOST_UNIFORM = 1 << 23


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One side of a pair: a kernel as it was measured, and as it is simulated.

    Attributes:
        measured_ns: of the launch.
        simulated_ns: of the launch.
    """

    measured_ns: float
    simulated_ns: float


def simulate_measured(report: Path, name: str) -> Side | str:
    """A kernel of a report, or why it was not simulated."""
    launches = [one for one in read_profile(report).launches if name in demangle(one.mangled_name)]
    if not launches:
        return "no such kernel"
    launch = launches[0]
    arguments = find_arguments(demangle(launch.mangled_name))
    if arguments is None:
        return "its arguments are not known"
    with tempfile.TemporaryDirectory() as folder:
        described = Path(folder) / "pair.launch.toml"
        described.write_text(describe_launch(launch, arguments), encoding="utf-8")
        try:
            found = simulate_code(report, kernel=launch.mangled_name, launches=LaunchChoice(path=described))
        except GpaError as error:
            return str(error)
    if not found.launches:
        return "; ".join(one.message for one in found.problems)
    measured = launch.read_number("gpu__time_duration.sum")
    return Side(measured_ns=measured or 0.0, simulated_ns=found.launches[0].simulated.duration_ns)


def find_arguments(name: str) -> list[tuple[Any, ...]] | None:
    fitting = [one for one in ARGUMENTS if name.removeprefix("void ").startswith(one)]
    return ARGUMENTS[max(fitting, key=len)] if fitting else None


def describe_launch(launch: Launch, arguments: Sequence[tuple[Any, ...]]) -> str:
    """Describe a launch with what the report says of it, and the arguments that the report lacks."""
    shared = launch.read_count("launch__shared_mem_per_block_dynamic") or 0
    lines = ["[[launch]]", f"kernel = {json.dumps(launch.mangled_name)}"]
    lines += [f"grid = {list(launch.grid or ())}", f"block = {list(launch.block or ())}"]
    lines += [f"shared_bytes = {shared}", "arguments = ["]
    for name, *rest in arguments:
        if len(rest) == 1:
            kind = "float" if isinstance(rest[0], float) else "int"
            lines.append(f'  {{ name = "{name}", type = "{kind}", value = {rest[0]} }},')
        else:
            fill = "zeros" if rest[1] > _MOST_UNIFORM else "uniform"
            lines.append(f'  {{ name = "{name}", type = "{rest[0]}", count = {rest[1]}, fill = "{fill}" }},')
    return "\n".join([*lines, "]", ""])


def has_sign(measured: float, simulated: float) -> bool:
    """Whether a simulated change goes the measured way."""
    if max(measured, 1 / measured) < NOISE:
        return max(simulated, 1 / simulated) < NOISE
    return (simulated > 1) == (measured > 1)


def measure_pairs(corpus: Path, wanted: str) -> None:
    """A row for each measured pair."""
    pairs = json.loads((corpus / "pairs" / "pairs.json").read_text(encoding="utf-8"))
    right = close = count = 0
    print("pair                   measured simulated        before   after (simulated / measured)")
    for pair in pairs:
        if wanted not in pair["id"]:
            continue
        sides = [simulate_measured(corpus / "pairs" / pair[one], pair[f"kernel_{one}"]) for one in ("before", "after")]
        before, after = sides
        if isinstance(before, str) or isinstance(after, str):
            reason = before if isinstance(before, str) else after
            print(f"{pair['id']:22} {pair['achieved']:8.3f}         –  {str(reason)[:110]}", flush=True)
            continue
        ratio = before.simulated_ns / after.simulated_ns
        is_right = has_sign(pair["achieved"], ratio)
        is_close = 1 / CLOSE <= ratio / pair["achieved"] <= CLOSE
        count, right, close = count + 1, right + is_right, close + is_close
        errors = "  ".join(f"{one.simulated_ns / one.measured_ns:6.2f}" for one in (before, after))
        marks = f"{'' if is_right else '  wrong sign'}{'' if is_close else '  not within 20 %'}"
        print(f"{pair['id']:22} {pair['achieved']:8.3f} {ratio:9.3f}        {errors}{marks}", flush=True)
    print(f"{count} of {len(pairs)} pairs simulated: the sign of {right} right, the ratio of {close} within 20 %")


def measure_twins(machine: str, wanted: str) -> None:
    """A row for each pair of fixtures."""
    print(f"\ntwins on {machine}    simulated   cycles before and after")
    for pattern in TWINS:
        if wanted not in pattern:
            continue
        sides = [simulate_fixture(KERNELS / pattern / f"{role}.cu", machine) for role in ("original", "improved")]
        if not all(one.launches for one in sides):
            print(f"{pattern:22}         –  {'; '.join(str(one) for side in sides for one in side.problems)[:110]}")
            continue
        before, after = (one.launches[0].simulated.cycles for one in sides)
        print(f"{pattern:22} {before / after:9.3f}   {before:12,.0f} {after:12,.0f}", flush=True)


def main() -> None:
    """Print a row per pair."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", type=Path, default=os.environ.get("GPA_LSP_CORPUS"))
    parser.add_argument("--pair", default="")
    parser.add_argument("--twins", action="store_true")
    parser.add_argument("--machine", default="RTX 3080")
    options = parser.parse_args()
    if options.twins:
        measure_twins(options.machine, options.pair)
    elif options.corpus is None:
        parser.error("no reports are at hand; name a folder with --corpus, or set GPA_LSP_CORPUS")
    else:
        measure_pairs(options.corpus, options.pair)


if __name__ == "__main__":
    main()
