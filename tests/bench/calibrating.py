"""How far the advisor's estimates are off on simulated edits: coverage and width of its printed ranges, remedy by remedy.

Usage: ``python -m tests.bench.calibrating [--profiles FOLDER] [--machine GPU ...] [--family NAME]``. Profiles are simulated once and kept in
the folder. Each row is an edit of a family of kernels (``fixtures/edits``) on one GPU: what it gained, at which place its remedy was advised,
and at what price. No estimate was fitted on these edits. An edit that loses counts as promised where its range begins at :data:`PROMISE`.
"""

import argparse
import statistics
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from gpa_lsp.diagnosis.advice.model import Advice
from tests.bench.edits import MACHINES, Edit, list_cases, read_families, simulate_edits

PROMISE = 1.03
GAIN = 1.05
"""Edits that gain less are not held to be worth advising."""

_ANY = "all"
_FIRST = 3


class Priced(NamedTuple):
    """One edit with the advice on it.

    Attributes:
        place: of the advice, from 1; 0 where the remedy was not advised.
    """

    edit: Edit
    place: int
    advice: Advice | None


def collect(profiles: Path, machines: Sequence[str], wanted: str) -> list[Priced]:
    """The edits of all families, each printed."""
    found = []
    for family, size, machine in list_cases(read_families(wanted), machines):
        for one in simulate_edits(family, size, machine, profiles):
            if isinstance(one, str):
                print(f"not simulated: {one}", flush=True)
                continue
            if not one.remedies:
                continue
            places = [
                (place, advice) for place, advice in enumerate(one.list_advice(), 1) if advice.optimizer in one.remedies
            ]
            priced = Priced(one, *(places[0] if places else (0, None)))
            print(f"{one.name:70} {one.achieved:6.2f}× {_describe(priced)}", flush=True)
            found.append(priced)
    return found


def _describe(one: Priced) -> str:
    if one.advice is None:
        return f"not advised: {', '.join(one.edit.remedies)}"
    speedup = one.advice.speedup
    return f"#{one.place} {one.advice.optimizer:28} {speedup.estimate:5.2f}× ({speedup.low:.2f}–{speedup.high:.2f})"


def print_remedies(found: Sequence[Priced]) -> None:
    """Coverage, width and error of each remedy's ranges; then how often the remedy was advised."""
    rows: dict[str, list[tuple[bool, float, float]]] = defaultdict(list)
    families: dict[str, set[str]] = defaultdict(set)
    for edit, _, advice in found:
        if advice is None:
            continue
        speedup = advice.speedup
        held = speedup.low * 0.98 <= edit.achieved <= speedup.high * 1.02
        row = (held, speedup.high / speedup.low, abs(speedup.estimate - edit.achieved) / edit.achieved)
        for name in (advice.optimizer, _ANY):
            rows[name].append(row)
            families[name].add(edit.family)
    print(f"\n{'remedy':32} edits families  held  width  mean error  median")
    for remedy, every in sorted(rows.items(), key=lambda item: (item[0] == _ANY, item[0])):
        held, widths, errors = zip(*every, strict=True)
        print(
            f"{remedy:32} {len(every):5} {len(families[remedy]):8} {statistics.fmean(held):5.0%} {statistics.median(widths):6.2f} "
            f"{statistics.fmean(errors):11.1%} {statistics.median(errors):7.1%}"
        )
    gains = [one for one in found if one.edit.achieved >= GAIN]
    losses = [one for one in found if one.edit.achieved < 1]
    promised = [one for one in losses if one.advice is not None and one.advice.speedup.low >= PROMISE]
    first = sum(0 < one.place <= _FIRST for one in gains)
    anywhere = sum(one.place > 0 for one in gains)
    print(
        f"{len(gains)} edits gain {GAIN}× or more: the remedy of {first} is in the first {_FIRST}, of {anywhere} anywhere"
    )
    print(f"{len(losses)} edits lose: {len(promised)} of them were promised {PROMISE}× or more")


def main() -> None:
    """Print a row per edit and per remedy."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--profiles", type=Path, help="a folder to keep simulated profiles in (default: a temporary one)"
    )
    parser.add_argument("--machine", action="append", help=f"GPUs (default: {', '.join(MACHINES)})")
    parser.add_argument("--family", default="")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = collect(options.profiles or Path(folder), options.machine or MACHINES, options.family)
    print_remedies(found)


if __name__ == "__main__":
    main()
