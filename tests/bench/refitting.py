"""Fitted constants of the simulated SM without one report at a time, and the error of the simulation of that report then.

Usage: ``GPA_LSP_CORPUS=FOLDER python -m tests.bench.refitting [--kernel NAME] [--most-seconds N]``; FOLDER holds measured launches (``simulation``)
and their reports. Every constant that a table marks as fitted is tried at some factors of what it is, the same on all architectures, one at a time.
For each report the factors are chosen that suit the kernels of all other reports best, and its own kernels are simulated with those. What one of them
loses by that is what it gained by being there. A constant of which no factor changes anything is not told by these kernels.
"""

import argparse
import json
import os
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import mean, median
from typing import Any
from unittest.mock import patch

from msgspec.structs import fields

from gpa_lsp.execution.prediction import simulation
from gpa_lsp.execution.prediction.launch_sources import LaunchChoice
from gpa_lsp.execution.simulator.machine import SmModel
from gpa_lsp.execution.simulator.reasons import REASONS
from gpa_lsp.execution.simulator.simulate import SimulatedLaunch, simulate_kernel
from gpa_lsp.gpu.arch.lookup import find_architecture, list_architectures
from gpa_lsp.gpu.arch.sections import Status
from gpa_lsp.kernel.model import KernelRows

_FACTORS = (0.5, 0.7, 0.85, 1.15, 1.4, 2.0)
_ALIASES = {"launched_blocks_per_cycle": "block_interval_cycles"}
"""What a constant of the tables is in the model."""
_COUNTS = ("_instructions", "_lines")
_LEAST_GAIN = 0.001
"""Of the mean score: what gains less stays as it is."""


@dataclass(frozen=True, slots=True)
class Measured:
    """A kernel as it was measured, and how to simulate it with other constants.

    Attributes:
        name: of the launch.
        report: it is in.
        truth: what was measured.
        rows: its instructions.
        model: the SM as the tables have it.
        run: simulates it.
    """

    name: str
    report: str
    truth: Mapping[str, Any]
    rows: KernelRows
    model: SmModel
    run: Callable[[Mapping[str, float]], SimulatedLaunch]


@dataclass(frozen=True, slots=True)
class Score:
    """Error of the cycles, and overlaps of stall reasons and of instructions."""

    error: float
    reasons: float
    instructions: float

    @property
    def value(self) -> float:
        """The three together; larger is better."""
        return (self.reasons + self.instructions - self.error) / 3


def list_fitted() -> list[str]:
    """Fields of the model that some table marks as fitted."""
    found: dict[str, None] = {}
    known = {one.name for one in fields(SmModel)}
    for capability in list_architectures():
        figures = find_architecture(capability).simulation
        for one in fields(figures):
            name = _ALIASES.get(one.name, one.name)
            if getattr(figures, one.name).status is Status.FITTED and name in known:
                found[name] = None
    return sorted(found)


def read_measured(folder: Path, wanted: str, most_seconds: float) -> list[Measured]:
    """Every kernel that is simulated within some seconds, walked once."""
    found = []
    for path in sorted((folder / "simulation").glob("*.launch.toml")):
        name = path.name.removesuffix(".launch.toml")
        if wanted not in name:
            continue
        truth = json.loads(path.with_name(f"{name}.json").read_text(encoding="utf-8"))
        (report,) = list(folder.glob(f"*/{truth['report']}"))[:1]
        given: list[tuple[Any, Any]] = []
        with patch.object(simulation, "simulate_kernel", partial(_keep, given)):
            simulation.simulate_code(report, kernel=truth["kernel"], launches=LaunchChoice(path=path))
        if not given:
            print(f"{name[:60]:60} is not simulated")
            continue
        ((arguments, named),) = given

        run = partial(_simulate_again, arguments, named)
        begin = time.process_time()
        model = run({}).model
        if time.process_time() - begin > most_seconds:
            print(f"{name[:60]:60} takes too long")
            continue
        found.append(Measured(name, truth["report"], truth, arguments[0].rows, model, run))
    return found


def _keep(given: list[tuple[Any, Any]], *arguments: Any, **named: Any) -> SimulatedLaunch:
    """Simulate, and note what with."""
    given.append((arguments, named))
    return simulate_kernel(*arguments, **named)


def _simulate_again(arguments: Any, named: Any, changes: Mapping[str, float]) -> SimulatedLaunch:
    return simulate_kernel(*arguments, **named, changes=changes)


def find_overlap(one: Mapping[Any, float], other: Mapping[Any, float]) -> float:
    """Overlap of two lists of shares."""
    sums = sum(one.values()) or 1.0, sum(other.values()) or 1.0
    return sum(min(one.get(key, 0.0) / sums[0], other.get(key, 0.0) / sums[1]) for key in one.keys() | other.keys())


def score(kernel: Measured, simulated: SimulatedLaunch) -> Score:
    """Hold a simulated launch against what was measured."""
    truth, rows = kernel.truth, kernel.rows
    reasons = dict(zip(REASONS, simulated.all_samples.sum(axis=0).tolist(), strict=True))
    own: dict[tuple[str, int], float] = defaultdict(float)
    for row, count in enumerate(simulated.all_samples.sum(axis=1).tolist()):
        number = int(rows.function_index[row])
        own[rows.functions[number].name if number else "", int(rows.pc_offsets[row])] += count
    measured = {
        (one.get("function", ""), int(one["pc"])): float(sum(one.get("samples", {}).values()))
        for one in truth["instructions"]
    }
    error = abs(simulated.cycles - truth["cycles"]) / truth["cycles"]
    return Score(error, find_overlap(reasons, truth["reasons"]), find_overlap(own, measured))


class Fits:
    """Scores of kernels with one constant changed, each worked out once."""

    def __init__(self, kernels: list[Measured]) -> None:
        self._kernels = kernels
        self.plain = {one.name: self.try_out(one, {}) for one in kernels}
        self.changed: dict[tuple[str, float], dict[str, Score]] = {}

    def try_out(self, kernel: Measured, factors: Mapping[str, float]) -> Score:
        """A kernel with some constants changed; those that count something stay whole."""
        changes = {}
        for name, factor in factors.items():
            before = getattr(kernel.model, name)
            changes[name] = max(1, round(before * factor)) if name.endswith(_COUNTS) else before * factor
        return score(kernel, kernel.run(changes))

    def try_all(self, names: list[str]) -> None:
        """Each constant at each factor."""
        for name in names:
            for factor in _FACTORS:
                self.changed[name, factor] = {one.name: self.try_out(one, {name: factor}) for one in self._kernels}
            gains = [
                mean(one.value for one in self.changed[name, factor].values())
                - mean(one.value for one in self.plain.values())
                for factor in _FACTORS
            ]
            listed = " ".join(f"{100 * gain:+6.2f}" for gain in gains)
            print(f"{name:28} {listed}", flush=True)

    def choose(self, names: list[str], without: str) -> dict[str, float]:
        """The factors that suit all reports but one."""
        others = [one.name for one in self._kernels if one.report != without]
        plain = mean(self.plain[one].value for one in others)
        found = {}
        for name in names:
            best = max(_FACTORS, key=lambda factor: mean(self.changed[name, factor][one].value for one in others))
            if mean(self.changed[name, best][one].value for one in others) - plain > _LEAST_GAIN:
                found[name] = best
        return found

    def hold_out(self, names: list[str]) -> dict[str, Score]:
        """The kernels of each report with the factors chosen without it."""
        found = {}
        for report in dict.fromkeys(one.report for one in self._kernels):
            factors = self.choose(names, report)
            print(f"without {report[:44]:44} {', '.join(f'{name} × {factor:g}' for name, factor in factors.items())}")
            for one in self._kernels:
                if one.report == report:
                    found[one.name] = self.try_out(one, factors)
        return found


def print_scores(title: str, scores: Mapping[str, Score]) -> None:
    """Means and medians."""
    listed = list(scores.values())
    print(
        f"{title:28} cycles {mean(one.error for one in listed):.3f} off, reasons {median(one.reasons for one in listed):.3f}, "
        f"instructions {median(one.instructions for one in listed):.3f} (medians); mean score {mean(one.value for one in listed):.4f}"
    )


def main() -> None:
    """Print what each factor gains, and what refits without a report give."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kernel", default="")
    parser.add_argument("--most-seconds", type=float, default=0.5)
    options = parser.parse_args()
    kernels = read_measured(Path(os.environ["GPA_LSP_CORPUS"]), options.kernel, options.most_seconds)
    names = list_fitted()
    fits = Fits(kernels)
    print(f"{len(kernels)} kernels; change of the mean score, in hundredths, at {', '.join(map(str, _FACTORS))} times")
    fits.try_all(names)
    held = fits.hold_out(names)
    everything = {one.name: fits.try_out(one, fits.choose(names, "")) for one in kernels}
    print_scores("as in the tables", fits.plain)
    print_scores("refitted on all", everything)
    print_scores("refitted without the report", held)


if __name__ == "__main__":
    main()
