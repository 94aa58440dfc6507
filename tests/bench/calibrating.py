"""Errors of the advisor's estimates on simulated edits, remedy by remedy: coverage and width of its ranges with each family left out.

Usage: ``python -m tests.bench.calibrating [--profiles FOLDER] [--machine GPU ...] [--family NAME] [--write]``. Profiles are simulated once and kept
in the folder. ``--write`` writes ``gpa_lsp/diagnosis/advice/calibration.toml``, which the ranges come from; nothing of measured pairs goes into it.
"""

import argparse
import math
import statistics
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from gpa_lsp.diagnosis.advice import pricing
from gpa_lsp.diagnosis.advice.model import DEBUG_BUILD
from gpa_lsp.diagnosis.advice.pricing import ALL_REMEDIES, LEAST_HELD, NO_GAIN, WIDEST, Calibration, find_calibration
from tests.bench.edits import MACHINES, list_cases, read_families, simulate_edits

LEAST_MODEL = 1.1
"""Values of the model below it say nothing of an exponent."""
TAIL = 0.15
"""The part of the families that may be beyond each end of a range."""

# Of ln(achieved). With it, ranges as wide hold more of what is left out than without.
_OFFSET = 0.07

FEWEST_FAMILIES = math.ceil(2 / TAIL) - 1
"""Families of kernels, for figures of a remedy's own: with fewer, one family alone would be an end of its range, and all remedies together count."""

_STEEPEST = 4.0

MOST_GAIN = 1.05
"""Of an edit of a kernel that is called "at the limit"."""


class Found(NamedTuple):
    """One edit whose remedy was advised.

    Attributes:
        model: the estimate before it was calibrated.
        bound: what the range ends at, at most.
    """

    remedy: str
    family: str
    model: float
    achieved: float
    bound: float

    def find_exponent(self, offset: float = 0.0) -> float:
        """Exponent of the model's value that gives what was achieved times e^offset."""
        return max(-_STEEPEST, min(_STEEPEST, (math.log(self.achieved) + offset) / math.log(self.model)))


def collect(profiles: Path, machines: Sequence[str], wanted: str, limited: dict[str, tuple[float, str]]) -> list[Found]:
    """The edits of all families, each printed.

    Args:
        limited: kernels that are called "at the limit" → the most that an edit of them gains which is not advised beside, and its name; filled.
    """
    found = []
    for family, size, machine in list_cases(read_families(wanted), machines):
        for one in simulate_edits(family, size, machine, profiles):
            if isinstance(one, str):
                print(f"not simulated: {one}", flush=True)
                continue
            places = [
                (place, advice) for place, advice in enumerate(one.list_advice(), 1) if advice.optimizer in one.remedies
            ]
            if one.is_at_the_limit:
                kernel = one.name.replace(f"→{one.end} ", " ")
                limited[kernel] = max(limited.get(kernel, (0.0, "")), (0.0 if places else one.achieved, one.name))
            if not places:
                print(f"{one.name:70} {one.achieved:6.2f}× not advised: {', '.join(one.remedies)}", flush=True)
                continue
            place, advice = places[0]
            speedup = advice.speedup
            model = speedup.estimate ** (1 / find_calibration(advice.optimizer).middle)
            print(
                f"{one.name:70} {one.achieved:6.2f}× #{place} {advice.optimizer:28} {speedup.estimate:5.2f}× "
                f"({speedup.low:.2f}–{speedup.high:.2f})",
                flush=True,
            )
            found.append(Found(advice.optimizer, one.family, model, one.achieved, speedup.bound))
    return found


def calibrate(found: Iterable[Found]) -> Calibration:
    """Exponents of some edits; every family counts alike.

    Of n families (n + 1) · TAIL may be beyond an end of the range, so that the next family is in it at the stated rate.

    Source: Vovk, Gammerman, Shafer, Algorithmic Learning in a Random World, 2005 (conformal prediction).
    """
    by_family: dict[str, list[Found]] = defaultdict(list)
    for one in found:
        if one.model >= LEAST_MODEL:
            by_family[one.family].append(one)
    beyond = max(0.0, TAIL * (len(by_family) + 1) - 1) / len(by_family)
    low, high = (
        _find_quantile(
            sorted((one.find_exponent(offset), 1 / len(every)) for every in by_family.values() for one in every), part
        )
        for part, offset in ((beyond, _OFFSET), (1 - beyond, -_OFFSET))
    )
    middle = statistics.median(statistics.median(one.find_exponent() for one in every) for every in by_family.values())
    return Calibration(
        edits=sum(map(len, by_family.values())),
        families=len(by_family),
        held=1.0,
        low=round(max(0.0, min(low, middle)), 2),
        middle=round(min(1.0, max(0.1, middle)), 2),  # no more is expected than what was counted gives
        high=round(max(high, middle), 2),
        offset=_OFFSET,
    )


def _find_quantile(weighed: Sequence[tuple[float, float]], part: float) -> float:
    whole, passed = sum(weight for _, weight in weighed), 0.0
    for value, weight in weighed:
        passed += weight
        if passed >= part * whole - 1e-9:
            return value
    return weighed[-1][0]


def calibrate_all(found: Sequence[Found]) -> dict[str, Calibration]:
    """The calibration of all remedies together (without that of a compiler option, which every family has), and that of each: its own exponents
    where it has enough families."""
    known = {ALL_REMEDIES: calibrate([one for one in found if one.remedy != DEBUG_BUILD])}
    for remedy in sorted({one.remedy for one in found}):
        own = [one for one in found if one.remedy == remedy]
        families = {one.family for one in own if one.model >= LEAST_MODEL}
        is_own = len(families) >= FEWEST_FAMILIES
        known[remedy] = (
            calibrate(own) if is_own else replace(known[ALL_REMEDIES], edits=len(own), families=len(families))
        )
    return known


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
    """Remedy → its edits, each by what all other families say."""
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
            rows[ALL_REMEDIES].append(row)
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
    others = "all but " + DEBUG_BUILD  # every family has that edit
    rows[others] = [one for one in rows[ALL_REMEDIES] if one.remedy != DEBUG_BUILD]
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


def print_limited(limited: Mapping[str, tuple[float, str]]) -> None:
    """Print gains of edits that are not advised, for kernels that are called "at the limit"."""
    wrong = sorted(one for one in limited.values() if one[0] > MOST_GAIN)
    print(
        f"\nat the limit: {len(limited)} kernels, of which {len(wrong)} gain more than {MOST_GAIN - 1:.0%} by an edit that is not advised"
    )
    for achieved, name in wrong:
        print(f"{name:70} {achieved:6.2f}×")


def write(found: Sequence[Found]) -> None:
    """Write the table of the package."""
    lines = ["# Written by `python -m tests.bench.calibrating --write`; see `Calibration` in pricing.py."]
    rows = leave_out(found)
    for remedy, known in calibrate_all(found).items():
        one = replace(known, held=round(measure_held(rows[remedy]), 2))
        lines += ["", f"[{remedy}]", *(f"{name} = {getattr(one, name)}" for name in one.__struct_fields__)]
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
    with tempfile.TemporaryDirectory() as folder:
        limited: dict[str, tuple[float, str]] = {}
        found = collect(options.profiles or Path(folder), options.machine or MACHINES, options.family, limited)
    if len({one.family for one in found}) > 1:
        print_left_out(found)
    print_limited(limited)
    if options.write:
        write(found)


if __name__ == "__main__":
    main()
