"""Table III of the GPA paper, by simulation: rank and estimate of the paper's optimizer beside what the paper's edit gains.

Usage: ``python -m tests.bench.gpa_table [--rodinia FOLDER] [--machine GPU] [--row NAME] [--profiles FOLDER]``. The folder holds Rodinia's
CUDA kernels (``GPA_LSP_RODINIA``): its own ``cuda``, or the ``rodinia`` of the paper's artifact. Each row of ``gpa_table.toml`` is simulated before
and after the edit on one GPU, and what is advised is said of the simulated profile of the version before. The paper's columns were measured on a
V100, for which the compilers of today make no code.
"""

import argparse
import json
import os
import re
import statistics
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import tomli

from gpa_lsp import api
from gpa_lsp.diagnosis.advice.model import Standing
from gpa_lsp.execution.prediction.launch_sources import LaunchChoice
from gpa_lsp.execution.prediction.simulation import SimulationSettings, simulate_code
from gpa_lsp.execution.simulator.profile_document import make_document
from gpa_lsp.foundation.errors import GpaError
from gpa_lsp.report.model import KernelReport

REMEDIES = {
    "Block Increase": ("block_increase", "sm_imbalance"),
    "Code Reorder": ("code_reordering",),
    "Loop Unrolling": ("loop_unrolling",),
    "Strength Reduction": ("strength_reduction",),
    "Thread Increase": ("thread_increase", "block_shape"),
    "Warp Balance": ("warp_balance", "barrier_removal"),  # the paper's optimizer is about every stall at a barrier
}
"""Optimization of the paper → ours that advise the same edit."""
FIRST = 3
_SEED = 7

Row = dict[str, Any]


class Found(NamedTuple):
    """Result of simulation and advice for one row.

    Attributes:
        rank: of the paper's optimizer among the advice on the kernel, or among that on what is outside of it, which has a line of its own, from 1;
            None where it is not advised.
        estimate, low, high: of that advice.
        gain: simulated time before by simulated time after.
        first: what is advised, best first.
        refusal: why the optimizer does not apply; empty where it does.
    """

    rank: int | None
    estimate: float | None
    low: float | None
    high: float | None
    gain: float
    first: tuple[str, ...]
    refusal: str


def read_rows() -> tuple[Row, ...]:
    """The rows of the table; one that continues another row holds what that row came to."""
    rows: list[Row] = []
    for row in tomli.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))["row"]:
        base = next((one for one in rows if (one["name"], one["remedy"]) == (row["name"], row.get("after"))), None)
        rows.append(row if base is None else {**base, **row, "both": [*base.get("both", ()), *base["edit"]]})
    return tuple(rows)


def make_source(row: Row, text: str, edits: Sequence[Sequence[str]]) -> str:
    """The device code of a row: macros and functions of its file, edited.

    Raises:
        GpaError: the file lacks a function, or what an edit replaces.
    """
    head = [*row.get("head", ())]
    defined = {line.split()[1] for line in head if line.startswith("#define")}
    macros = re.findall(r"^#define \w+(?:\(.*?\))?[ \t]+\S.*$", text, re.MULTILINE)
    head += [line for line in macros if re.split(r"\W", line.split()[1])[0] not in defined]
    parts = [_cut_function(text, name) for name in row["functions"]]
    source = "\n".join(parts)
    for pattern, replacement in edits:
        source, count = re.subn(pattern, replacement, source)
        if not count:
            raise GpaError(f"{row['name']}: nothing is {pattern!r}")
    return "\n".join([*dict.fromkeys(head), source, ""])


def _cut_function(text: str, name: str) -> str:
    """One device function of a file, with its comments."""
    found = re.search(rf"(?:__global__|__device__)(?:\s+\w+\*?)*?\s+\*?{name}\s*\([^)]*\)\s*\{{", text)
    if found is None:
        raise GpaError(f"there is no {name}")
    depth, end = 1, found.end()
    while depth:
        depth += {"{": 1, "}": -1}.get(text[end], 0)
        end += 1
    return text[found.start() : end]


def write_graph(folder: Path) -> None:
    """Rodinia's graph1MW_6 in kind: a million nodes of one to eleven edges, in the middle of a search."""
    draw, count = np.random.default_rng(_SEED), 1_000_000
    degrees = draw.integers(1, 12, count)
    starts = np.cumsum(degrees) - degrees
    np.save(folder / "nodes.npy", np.stack([starts, degrees], axis=1).astype(np.int32).ravel())
    np.save(folder / "edges.npy", draw.integers(0, count, degrees.sum()).astype(np.int32))
    visited = draw.random(count) < 0.3
    np.save(folder / "visited.npy", visited.astype(np.uint8))
    np.save(folder / "mask.npy", (visited & (draw.random(count) < 0.8)).astype(np.uint8))


def write_points(folder: Path) -> None:
    """Points of streamcluster that would all stay with their centers, as nearly all do."""
    points = np.zeros((65536, 8), np.int32)
    points[:, 0] = np.float32(1.0).view(np.int32)
    np.save(folder / "points.npy", points.ravel())


def write_tree(folder: Path) -> None:
    """A tree of a million records, 256 keys a node: a root, inner nodes and leaves; and ranges to be looked up."""
    keys = 256
    nodes = np.zeros((4000, 2 * (keys + 1) + 3), np.int32)
    indices, values = nodes[:, 1 : keys + 2], nodes[:, keys + 2 : 2 * keys + 3]
    last = np.iinfo(np.int32).max
    values[:] = last
    leaves, inner = 3840, 15
    values[0, :inner], indices[0, :inner] = np.arange(inner) * keys * keys, 1 + np.arange(inner)
    for one in range(inner):
        values[1 + one, :keys] = (one * keys + np.arange(keys)) * keys
        indices[1 + one, :keys] = 1 + inner + one * keys + np.arange(keys)
    for one in range(leaves):
        values[1 + inner + one, :keys] = one * keys + np.arange(keys)
        indices[1 + inner + one, :keys] = one * keys + np.arange(keys)
    np.save(folder / "knodes.npy", nodes.ravel())
    starts = np.random.default_rng(_SEED).integers(0, leaves * keys - 3000, 6000).astype(np.int32)
    np.save(folder / "starts.npy", starts)
    np.save(folder / "ends.npy", starts + 2999)


DATA: dict[str, Callable[[Path], None]] = {"bfs": write_graph, "streamcluster": write_points, "b+tree": write_tree}
"""First word of a row's name → what its arrays hold."""


def simulate_side(row: Row, rodinia: Path, machine: str, folder: Path, *, is_edited: bool) -> KernelReport:
    """A row's kernel before or after the edit, simulated and advised; taken from the folder where it is there.

    Raises:
        GpaError: it cannot be compiled or simulated.
    """
    path = next((path for file in row["files"] for path in sorted(rodinia.rglob(file)) if "hip" not in str(path)), None)
    if path is None:
        raise GpaError(f"there is no {row['files'][0]}")
    text = path.read_text(encoding="utf-8", errors="replace")
    edits = [*row.get("both", ()), *(row.get("edit", ()) if is_edited else ())]
    launch = row["launch"]
    for pattern, replacement in row.get("blocks", ()) if is_edited else ():
        launch = re.sub(pattern, replacement, launch)
    folder.mkdir(parents=True, exist_ok=True)
    source, described, profile = (folder / f"kernel{suffix}" for suffix in (".cu", ".launch.toml", ".gpa-profile.json"))
    code = make_source(row, text, edits)
    is_same = profile.exists() and source.read_text() == code and described.read_text() == launch
    if not is_same:
        source.write_text(code, encoding="utf-8")
        described.write_text(launch, encoding="utf-8")
        if (write := DATA.get(row["name"].partition(",")[0])) is not None:
            write(folder)
        found = simulate_code(
            source, launches=LaunchChoice(path=described), settings=SimulationSettings(machine=machine)
        )
        if not found.launches:
            raise GpaError("; ".join(one.message for one in found.problems) or "nothing was simulated")
        profile.write_text(json.dumps(make_document(found.launches, found.problems)), encoding="utf-8")
    return api.load(profile, sources=[folder]).kernels[0]


def measure_row(row: Row, rodinia: Path, machine: str, profiles: Path) -> Found:
    """One row of the table.

    Raises:
        GpaError: a side cannot be simulated.
    """
    stem = re.sub(r"\W+", "_", f"{row['name']} {row['remedy']} {machine}")
    before, after = (
        simulate_side(row, rodinia, machine, profiles / f"{stem}_{side}", is_edited=side == "after")
        for side in ("before", "after")
    )
    assert before.duration_ns and after.duration_ns and before.advice  # they were simulated
    advice, names = before.advice.advice, (*REMEDIES[row["remedy"]], *row.get("ours", ()))
    one = next((one for one in advice if one.optimizer in names), None)
    is_outside = one is not None and one.standing is Standing.OUTSIDE
    line = [other for other in advice if (other.standing is Standing.OUTSIDE) == is_outside]
    refusal = "; ".join(str(silent.message) for silent in before.advice.silences if silent.optimizer in names)
    speedup = None if one is None else one.speedup
    return Found(
        rank=None if one is None else line.index(one) + 1,
        estimate=None if speedup is None else speedup.estimate,
        low=None if speedup is None else speedup.low,
        high=None if speedup is None else speedup.high,
        gain=before.duration_ns / after.duration_ns,
        first=tuple(f"{one.optimizer} {one.speedup.estimate:.2f}" for one in advice[:FIRST]),
        refusal=refusal if one is None else "",
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rodinia", type=Path, default=os.environ.get("GPA_LSP_RODINIA"))
    parser.add_argument("--machine", default="A100 PCIe 40GB")
    parser.add_argument("--row", default="")
    parser.add_argument(
        "--profiles", type=Path, help="a folder to keep simulated profiles in (default: a temporary one)"
    )
    options = parser.parse_args()
    if options.rodinia is None:
        parser.error("no Rodinia is at hand; name its folder with --rodinia, or set GPA_LSP_RODINIA")
    rows = [row for row in read_rows() if options.row in f"{row['name']} {row['remedy']}"]
    print(f"{'kernel':36} {'remedy':18} rank  ours (range)       simulated   paper: estimated achieved")
    found: list[Found] = []
    with tempfile.TemporaryDirectory() as folder:
        for row in rows:
            try:
                one = measure_row(row, Path(options.rodinia), options.machine, options.profiles or Path(folder))
            except GpaError as error:
                print(f"{row['name']:36} {row['remedy']:18} not simulated: {error}", flush=True)
                continue
            found.append(one)
            ours = "–" if one.estimate is None else f"{one.estimate:.2f} ({one.low:.2f}–{one.high:.2f})"
            print(
                f"{row['name']:36} {row['remedy']:18} {one.rank or '–':>4}  {ours:18} {one.gain:9.2f}   "
                f"{row['estimated']:16.2f} {row['achieved']:8.2f}   {', '.join(one.first)} {one.refusal}",
                flush=True,
            )
    if found:
        among = sum(one.rank is not None and one.rank <= FIRST for one in found)
        errors = [abs(one.estimate - one.gain) / one.gain for one in found if one.estimate is not None]
        off = f"{statistics.fmean(errors):.1%} off on average" if errors else "never priced"
        print(f"\n{among} of {len(found)} among the first {FIRST}; {off} from what is simulated, on {len(errors)} rows")


if __name__ == "__main__":
    main()
