"""Single-dependency coverage and the check of ``wait``, kernel by kernel over the corpus, for both blamers.

*before* and *after* are the paper's node coverage, *group* the share of scoreboard and wait samples that have one group or producer (of waits for
several, the least share that has the most frequent one alone),
*explained* that of long- and short-scoreboard samples with a cause; *r* is the correlation of ``wait`` with the model (predecessor's stall count − 1)
× issues.

Usage: ``python -m tests.bench.coverage [--least-samples N]``.
"""

import argparse
import sys
from statistics import median

from gpa_lsp.diagnosis.blame.blame import blame_kernel
from gpa_lsp.foundation.catalogue import list_members
from gpa_lsp.kernel.join import join_profile
from gpa_lsp.kernel.names import shorten_name
from gpa_lsp.profile.read import read_profile
from tests.conftest import find_corpus

_COLUMNS = ("before", "after", "group", "explained")


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--least-samples", type=int, default=500)
    options = parser.parse_args()
    corpus = find_corpus()
    if corpus is None:
        sys.exit("the corpus of real reports is not at hand")
    kernels = [
        (path.stem, kernel)
        for path in sorted((corpus / "ncu").iterdir())
        for kernel in join_profile(read_profile(path))[0]
        if kernel.total_samples >= options.least_samples
    ]
    for blamer in list_members("gpa_lsp.diagnosis.blame.blamers"):
        print(
            f"\n{blamer}\n{'report':34} {'kernel':30} {'samples':>9} "
            + " ".join(f"{name:>9}" for name in _COLUMNS)
            + "     r"
        )
        rows: list[list[float | None]] = []
        for report, kernel in kernels:
            found = blame_kernel(kernel, blamer)
            coverage = found.coverage
            row = [coverage.before_ratio, coverage.after_ratio, coverage.group_ratio, coverage.explained_ratio]
            rows.append(row)
            wait = found.wait_check.correlation if found.wait_check is not None else None
            name = shorten_name(kernel.name)[:30]
            cells = " ".join(f"{_show(value):>9}" for value in row)
            print(f"{report:34} {name:30} {kernel.total_samples:9} {cells} {_show(wait):>5}")
        for title, choose in (("median", median), ("least", min)):
            known = [[row[column] for row in rows] for column in range(len(_COLUMNS))]
            figures = [choose([value for value in column if value is not None]) for column in known]
            print(f"{title:75} " + " ".join(f"{_show(value):>9}" for value in figures))


def _show(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


if __name__ == "__main__":
    main()
