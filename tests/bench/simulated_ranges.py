"""Errors of simulated times in each regime, and how often the range of a regime holds launches of a repository that is left out.

Usage: ``python -m tests.bench.simulated_ranges [--corpus FOLDER] [--write]``; ``--write`` keeps what was simulated in ``tests/simulator``, for the
test that holds the ranges of :mod:`~gpa_lsp.execution.simulator.regimes` to it.

The launches are those of ``simulation``, whose arguments are described, and those of the pairs, whose arguments stand in
:mod:`~tests.bench.simulating_pairs`; each at its own GPU and clocks.
"""

import argparse
import json
import os
import tempfile
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from gpa_lsp.execution.prediction.launch_sources import LaunchChoice
from gpa_lsp.execution.prediction.simulation import simulate_code
from gpa_lsp.execution.simulator.profile_document import DocumentLaunch
from gpa_lsp.execution.simulator.regimes import REGIMES, is_time_known
from gpa_lsp.foundation.errors import GpaError
from gpa_lsp.kernel.names import demangle
from gpa_lsp.profile.read import read_profile
from tests.bench.simulating_pairs import describe_launch, find_arguments
from tests.simulator.ranges import KNOWN, Row, find_range, leave_out


def simulate_described(corpus: Path) -> Iterator[tuple[str, DocumentLaunch, float]]:
    """Repository, simulation and measured time in ns of launches that are described."""
    for path in sorted((corpus / "simulation").glob("*.launch.toml")):
        truth = json.loads(path.with_name(path.name.replace(".launch.toml", ".json")).read_text(encoding="utf-8"))
        found = simulate_code(next(corpus.glob(f"*/{truth['report']}")), launches=LaunchChoice(path=path))
        for one in found.launches:
            yield truth["id"].partition(".")[0], one, one.simulated.duration_ns * truth["cycles"] / one.simulated.cycles


def simulate_pairs(corpus: Path) -> Iterator[tuple[str, DocumentLaunch, float]]:
    """The same of launches of pairs, one for each report, kernel and grid."""
    repositories = {}
    for folder in ("pairs", "more_pairs"):
        for pair in json.loads((corpus / folder / "pairs.json").read_text(encoding="utf-8")):
            name = pair["id"].removeprefix("neg-").partition("-")[0]
            repositories |= {folder + "/" + pair[side]: name for side in ("before", "after")}
    for report, repository in sorted(repositories.items()):
        seen = set()
        for launch in read_profile(corpus / report).launches:
            arguments, measured = (
                find_arguments(demangle(launch.mangled_name)),
                launch.read_number("gpu__time_duration.sum"),
            )
            if arguments is None or measured is None or (launch.mangled_name, launch.grid) in seen:
                continue
            seen.add((launch.mangled_name, launch.grid))
            with tempfile.TemporaryDirectory() as made:
                described = Path(made) / "pair.launch.toml"
                described.write_text(describe_launch(launch, arguments), encoding="utf-8")
                try:
                    found = simulate_code(
                        corpus / report, kernel=launch.mangled_name, launches=LaunchChoice(path=described)
                    )
                except GpaError:
                    continue
            yield from ((repository, one, measured) for one in found.launches)


def main() -> None:
    """Print a row per regime, and how many of the launches that were left out were in its range."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", type=Path, default=os.environ.get("GPA_LSP_CORPUS"))
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    if options.corpus is None:
        parser.error("no reports are at hand; name a folder with --corpus, or set GPA_LSP_CORPUS")
    rows: list[Row] = []
    numbers: dict[str, int] = {}
    for repository, one, measured_ns in chain(simulate_described(options.corpus), simulate_pairs(options.corpus)):
        if one.simulated.unchecked or not is_time_known(one.kernel.rows.texts, one.walk.executed):
            continue  # it has no range
        number = numbers.setdefault(repository, len(numbers))
        rows.append((number, one.regime.key, round(measured_ns / one.simulated.duration_ns, 3)))
        print(f"{repository:14} {one.regime.key:8} {rows[-1][2]:6.2f}  {one.name[:80]}", flush=True)
    print("\nregime    launches  repositories  measured / simulated")
    for regime in REGIMES:
        own = [row for row in rows if row[1] == regime.key]
        found = find_range(own)
        words = "no range" if found is None else f"{found[0]:.2f} to {found[1]:.2f}"
        print(f"{regime.key:8} {len(own):9} {len({row[0] for row in own}):13}  {words}")
    held, count = leave_out(rows)
    print(f"of {count} launches with a range when their repository is left out, {held} were in it")
    if options.write:
        KNOWN.write_text("[\n" + ",\n".join(f"  {json.dumps(row)}" for row in rows) + "\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
