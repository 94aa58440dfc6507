"""Errors of the advisor's estimates on simulated edits, remedy by remedy: coverage and width of its ranges with each family left out.

Usage: ``python -m tests.bench.calibrating [--profiles FOLDER] [--machine GPU ...] [--family NAME] [--write]``. Profiles are simulated once and kept
in the folder. ``--write`` writes ``gpa_lsp/diagnosis/advice/calibration.toml``, which the ranges come from; nothing of measured pairs goes into it.
"""

import argparse
import math
import re
import statistics
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import asdict

from gpa_lsp.diagnosis.advice import pricing
from gpa_lsp.diagnosis.advice.model import DEBUG_BUILD
from gpa_lsp.diagnosis.advice.pricing import ALL_REMEDIES, LEAST_HELD, NO_GAIN, WIDEST, Calibration, find_calibration
from tests.bench.edits import MACHINES, Family, list_cases, read_families, simulate_edits

LEAST_MODEL = 1.1
"""Values of the model below it say nothing of an exponent."""
TAIL = 0.12
"""The part of the families that may be beyond each end of a range."""

_STEEPEST = 4.0

FIRST = 3  # Pieces of advice that are read

IDLE = 1.03
"""Edits below it gain nothing."""

_ARROW = re.compile(r"→\d+")

MOST_GAIN = 1.05
"""Of an edit of a kernel that is called "at the limit"."""


class Found(NamedTuple):
    """One edit.

    Attributes:
        place: of the advice of its remedy; None where none is advised, and all below is empty.
        is_limited: whether the kernel is called "at the limit".
        model: the estimate before it was calibrated.
        bound: what the range ends at, at most.
    """

    name: str
    family: str
    achieved: float
    is_limited: bool
    place: int | None = None
    remedy: str = ""
    estimate: float = 1.0
    low: float = 1.0
    high: float = 1.0
    model: float = 1.0
    bound: float = math.inf

    @property
    def exponent(self) -> float:
        """Exponent of the model's value that gives what was achieved."""
        return max(-_STEEPEST, min(_STEEPEST, math.log(self.achieved) / math.log(self.model)))

    def find_deviation(self, middle: float) -> float:
        """Logarithm of what was achieved by what was expected, for a model's value of e."""
        log = math.log(self.model)
        return (math.log(self.achieved) - middle * log) / math.sqrt(log)

    def describe(self, remedies: Sequence[str]) -> str:
        """A row of text."""
        if self.place is None:
            return f"{self.name:70} {self.achieved:6.2f}× not advised: {', '.join(remedies)}"
        return (
            f"{self.name:70} {self.achieved:6.2f}× #{self.place} {self.remedy:28} {self.estimate:5.2f}× "
            f"({self.low:.2f}–{self.high:.2f})"
        )


def collect(profiles: Path, machines: Sequence[str], wanted: str) -> list[Found]:
    """The edits of all families, each printed; as many at a time as there are processors."""
    found = []
    with ProcessPoolExecutor() as pool:
        for edits in pool.map(_collect_one, list_cases(read_families(wanted), machines), repeat(profiles)):
            for edit, text in edits:
                print(text, flush=True)
                found += [] if edit is None else [edit]
    return found


def _collect_one(case: tuple[Family, dict[str, int], str], profiles: Path) -> list[tuple[Found | None, str]]:
    """The edits of a family at one size on one GPU, with their rows of text."""
    found: list[tuple[Found | None, str]] = []
    for one in simulate_edits(*case, profiles):
        if isinstance(one, str):
            found.append((None, f"not simulated: {one}"))
            continue
        edit = Found(one.name, one.family, one.achieved, one.is_at_the_limit)
        for place, advice in enumerate(one.list_advice(), 1):
            if advice.optimizer in one.remedies:
                speedup = advice.speedup
                ends = (speedup.estimate, speedup.low, speedup.high)
                model = speedup.estimate ** (1 / find_calibration(advice.optimizer).middle)
                edit = Found(*edit[:4], place, advice.optimizer, *ends, model, speedup.bound)
                break
        found.append((edit, edit.describe(one.remedies)))
    return found


def calibrate(found: Iterable[Found]) -> Calibration:
    """Middle exponent and ends of some edits; every family counts alike.

    Of n families (n + 1) · TAIL may be beyond an end of the range, so that the next family is in it at the stated rate.

    Source: Vovk, Gammerman, Shafer, Algorithmic Learning in a Random World, 2005 (conformal prediction).
    """
    by_family: dict[str, list[Found]] = defaultdict(list)
    for one in found:
        if one.model >= LEAST_MODEL:
            by_family[one.family].append(one)
    middle = statistics.median(statistics.median(one.exponent for one in every) for every in by_family.values())
    middle = round(min(1.0, max(0.1, middle)), 2)  # no more is expected than what was counted gives
    deviations = sorted((one.find_deviation(middle), 1 / len(every)) for every in by_family.values() for one in every)
    beyond = max(0.0, TAIL * (len(by_family) + 1) - 1) / len(by_family)
    return Calibration(
        edits=sum(map(len, by_family.values())),
        families=len(by_family),
        held=1.0,
        low=min(0.0, round(_find_quantile(deviations, beyond), 2)),
        middle=middle,
        high=max(0.0, round(_find_quantile(deviations, 1 - beyond), 2)),
    )


def _find_quantile(weighed: Sequence[tuple[float, float]], part: float) -> float:
    whole, passed = sum(weight for _, weight in weighed), 0.0
    for value, weight in weighed:
        passed += weight
        if passed >= part * whole - 1e-9:
            return value
    return weighed[-1][0]


def calibrate_all(found: Sequence[Found]) -> dict[str, Calibration]:
    """The calibration of a compiler option, which every family has, and of all other remedies together."""
    of_debug = [one for one in found if one.remedy == DEBUG_BUILD]
    others = [one for one in found if one.remedy != DEBUG_BUILD]
    return {name: calibrate(every) for name, every in ((ALL_REMEDIES, others), (DEBUG_BUILD, of_debug)) if every}


class LeftOut(NamedTuple):
    """Range of an edit, from a calibration that does not know the edit's family."""

    remedy: str
    family: str
    low: float  # of the range
    high: float
    error: float  # of the estimate, of what was achieved
    is_held: bool

    @property
    def is_number(self) -> bool:
        """Whether the range would be printed, did those of its remedy hold."""
        return self.low > NO_GAIN and self.high <= WIDEST * self.low


def leave_out(found: Sequence[Found]) -> dict[str, list[LeftOut]]:
    """Remedy → its edits, each by what all other families say; all remedies together are so without the compiler option, which every family has."""
    rows: dict[str, list[LeftOut]] = defaultdict(list)
    for family in sorted({one.family for one in found}):
        calibrations = calibrate_all([other for other in found if other.family != family])
        for one in found:
            if one.family != family:
                continue
            known = calibrations.get(one.remedy, calibrations[ALL_REMEDIES])
            low, estimate, high = (min(one.bound, max(1.0, end)) for end in known.spread(one.model))
            is_held = low * 0.98 <= one.achieved <= high * 1.02
            row = LeftOut(one.remedy, family, low, high, abs(estimate - one.achieved) / one.achieved, is_held)
            rows[one.remedy].append(row)
            rows[ALL_REMEDIES] += [row] if one.remedy != DEBUG_BUILD else []
    return rows


def measure_held(rows: Iterable[LeftOut]) -> float:
    """The part of the ranges that are numbers that held; 1 of none."""
    held = [one.is_held for one in rows if one.is_number]
    return statistics.fmean(held) if held else 1.0


def list_printed(rows: Mapping[str, Sequence[LeftOut]]) -> list[LeftOut]:
    """The numbers that are printed: those of remedies whose ranges hold often enough."""
    holding = {remedy for remedy, every in rows.items() if measure_held(every) >= LEAST_HELD}
    return [one for one in rows[ALL_REMEDIES] if one.is_number and one.remedy in holding]


def print_left_out(found: Sequence[Found]) -> None:
    """Coverage, width and error of each remedy, with the family of each edit left out, and why some ranges are no number; then of those printed."""
    rows = leave_out(found)
    print(
        f"\n{'remedy, its families left out':32} edits families  held  width  mean error  median  wide  from nothing  held of numbers"
    )
    for remedy, every in sorted(rows.items(), key=lambda item: (item[0] == ALL_REMEDIES, item[0])):
        families = len({one.family for one in every})
        held, wide, idle = (
            statistics.fmean(parts)
            for parts in zip(
                *((one.is_held, one.high > WIDEST * one.low, one.low <= NO_GAIN) for one in every), strict=True
            )
        )
        width = statistics.median(one.high / one.low for one in every)
        errors = [one.error for one in every]
        print(
            f"{remedy:32} {len(every):5} {families:8} {held:5.0%} {width:6.2f} {statistics.fmean(errors):11.1%} "
            f"{statistics.median(errors):7.1%} {wide:5.0%} {idle:13.0%} {measure_held(every):16.0%}"
        )
    printed = list_printed(rows)
    if printed:
        width = statistics.median(one.high / one.low for one in printed)
        print(f"{len(printed)} are printed as numbers, of which {measure_held(printed):.0%} hold, {width:.2f} wide")


def print_advised(found: Iterable[Found]) -> None:
    """Print how many gains are advised, how many edits that gain nothing are promised to, and what kernels "at the limit" gain.

    Builds for debugging do not count here.
    """
    edits = [one for one in found if " -G→" not in one.name]
    gains = [one for one in edits if one.achieved >= LEAST_MODEL]
    first = sum(one.place is not None and one.place <= FIRST for one in gains)
    idle = [one for one in edits if one.achieved < IDLE]
    promised = sum(one.low >= NO_GAIN for one in idle)
    print(
        f"\nof {len(gains)} gains {first} are among the first {FIRST}; of {len(idle)} edits without gain {promised} are promised one"
    )
    limited: dict[str, list[Found]] = defaultdict(list)
    for one in edits:
        if one.is_limited:
            limited[_ARROW.sub("", one.name)].append(one)
    wrong = [one for every in limited.values() for one in every if one.place is None and one.achieved > MOST_GAIN]
    print(
        f"at the limit: {len(limited)} kernels; not advised, but gaining more than {MOST_GAIN - 1:.0%}: {len(wrong)} edits"
    )
    for one in wrong:
        print(f"{one.name:70} {one.achieved:6.2f}×")


def write(found: Sequence[Found]) -> None:
    """Write the table of the package: of each remedy what held; middle and ends where they are its own."""
    lines = ["# Written by `python -m tests.bench.calibrating --write`; see `Calibration` in pricing.py."]
    rows, known = leave_out(found), calibrate_all(found)
    for remedy in sorted(rows, key=lambda name: (name != ALL_REMEDIES, name)):
        every, own = rows[remedy], known.get(remedy)
        table = {} if own is None else asdict(own)
        table |= {"edits": len(every), "families": len({one.family for one in every})}
        table["held"] = round(measure_held(every), 2)
        lines += ["", f"[{remedy}]", *(f"{name} = {value}" for name, value in table.items())]
    Path(pricing.__file__).with_name("calibration.toml").write_text("\n".join([*lines, ""]), encoding="utf-8")


def main() -> None:
    """Print a row per edit and per remedy."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--profiles", type=Path, help="a folder to keep simulated profiles in (default: a temporary one)"
    )
    parser.add_argument("--machine", action="append", help=f"GPUs (default: {', '.join(MACHINES)})")
    parser.add_argument("--family", default="")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    if options.write and (options.family or options.machine):
        parser.error("--write is for all families on all GPUs")
    with tempfile.TemporaryDirectory() as folder:
        found = collect(options.profiles or Path(folder), options.machine or MACHINES, options.family)
    print_advised(found)
    advised = [one for one in found if one.place is not None]
    if len({one.family for one in advised}) > 1:
        print_left_out(advised)
    if options.write:
        write(advised)


if __name__ == "__main__":
    main()
