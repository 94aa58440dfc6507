"""Time and size of the page of a report with many kernels, against the limits: 3 s and 10 MB for 100 kernels of 500 instructions.

Each kernel has samples on every third instruction, three source files, loops, pairs of cause and victim, advice, and an answer of each kind; the
columns are made up, and what is written is all that a real report makes the page write. Ratios below 1 keep the limit.

Usage: ``python -m tests.bench.html_report [--kernels N] [--instructions N] [--times N] [-o PAGE]``.
"""

import argparse
import time
from pathlib import Path

from gpa_lsp.document.html_report.page import render_html_report
from tests.render.html_report.large_reports import make_large_report

LIMIT_S = 3.0
LIMIT_BYTES = 10_000_000


def main() -> None:
    """Print seconds and bytes, and both over their limits."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kernels", type=int, default=100)
    parser.add_argument("--instructions", type=int, default=500)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    report = make_large_report(options.kernels, options.instructions)
    spent, computed = [], []
    data = b""
    for _ in range(options.times):
        begin, begin_computing = time.perf_counter(), time.process_time()
        data = render_html_report(report).encode("utf-8", "backslashreplace")
        spent.append(time.perf_counter() - begin)
        computed.append(time.process_time() - begin_computing)
    if options.output is not None:
        options.output.write_bytes(data)
    print(f"{options.kernels} kernels of {options.instructions} instructions")
    print(f"time   {spent[0]:6.2f} s first, {min(spent):.2f} s best  {min(spent) / LIMIT_S:6.2f} of the limit")
    print(
        f"of it  {computed[0]:6.2f} s first, {min(computed):.2f} s best  {min(computed) / LIMIT_S:6.2f} on the processor"
    )
    print(f"size   {len(data) / 1e6:6.2f} MB                   {len(data) / LIMIT_BYTES:6.2f} of the limit")


if __name__ == "__main__":
    main()
