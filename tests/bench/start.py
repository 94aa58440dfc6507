"""Costs of a start: ``python -m tests.bench.start [--report PATH] [--runs N] [--other CHECKOUT/.venv/bin/python]``.

CPU seconds of whole processes, children included, beside ``python -c "import numpy"`` in the same run, in turn, so that a busy machine slows all of
them. Prints medians and ratios, asserts nothing. The server's is what it has used when its answer to ``initialize`` has come.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.bench.measuring import run_once
from tests.conftest import ROOT, find_corpus

COMPILED = {"PYTHONDONTWRITEBYTECODE": ""}
"""An installed package has its bytecode; an environment that forbids writing it would be measured instead."""

SMALL_REPORT = "rtx3070_daxpy_2022.3.ncu-rep"


@dataclass(frozen=True, slots=True)
class Start:
    """Program to start.

    Attributes:
        name: what it is called in the table.
        goal: how many times as long as importing numpy it may take; None for none.
        run: starts it, and returns its CPU seconds.
    """

    name: str
    goal: float | None
    run: Callable[[], float]


def list_starts(python: str, report: Path, folder: Path) -> list[Start]:
    """Programs to measure, the yardstick first. Each cache has a folder of its own."""
    warm = COMPILED | {"GPA_LSP_CACHE_DIR": str(folder / "warm"), "GPA_LSP_DATA_DIR": str(folder / "data")}

    check = [python, "-P", "-m", "gpa_lsp", "check", str(report)]

    def check_cold() -> float:
        with tempfile.TemporaryDirectory(dir=folder) as cache:
            return run_once(check, warm | {"GPA_LSP_CACHE_DIR": cache}).cpu_s

    run_once(check, warm)
    time_server(python, warm)
    return [
        Start("import numpy", None, lambda: run_once([python, "-c", "import numpy"], COMPILED).cpu_s),
        Start("check, empty cache", 5, check_cold),
        Start("check, seen before", 2, lambda: run_once(check, warm).cpu_s),
        Start("--help", 1, lambda: run_once([python, "-P", "-m", "gpa_lsp", "--help"], warm).cpu_s),
        Start("serve, answer to initialize", 2, lambda: time_server(python, warm)),
    ]


def time_server(python: str, variables: dict[str, str]) -> float:
    """CPU seconds of a language server that is killed as soon as it has answered ``initialize``."""
    process = subprocess.Popen(
        [python, "-P", "-m", "gpa_lsp", "serve"],
        env=os.environ | variables,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=tempfile.gettempdir(),
    )
    assert process.stdin is not None
    assert process.stdout is not None
    params = {"processId": None, "rootUri": None, "capabilities": {"general": {"positionEncodings": ["utf-16"]}}}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}).encode()
    process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
    process.stdin.flush()
    header = process.stdout.readline()
    assert header.startswith(b"Content-Length")
    process.kill()
    _, _, usage = os.wait4(process.pid, 0)
    process.returncode = 0
    return usage.ru_utime + usage.ru_stime


def main() -> int:
    """Measure and print."""
    corpus = find_corpus()
    parser = argparse.ArgumentParser(description=__doc__)
    known = corpus / "ncu" / SMALL_REPORT if corpus is not None else ROOT / "fixtures" / "example.gpa-profile.json"
    parser.add_argument("--report", type=Path, default=known, help="what is checked")
    parser.add_argument("--runs", type=int, default=9, help="of each")
    parser.add_argument("--other", help="the python of another checkout, measured beside this one")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        pythons = {"": sys.executable} | ({"other: ": arguments.other} if arguments.other else {})
        starts = [
            Start(prefix + start.name, start.goal, start.run)
            for prefix, python in pythons.items()
            for start in list_starts(python, arguments.report.absolute(), Path(tempfile.mkdtemp(dir=folder)))
            if not prefix or start.goal is not None
        ]
        seconds: list[list[float]] = [[] for _ in starts]
        for _ in range(arguments.runs):
            for start, found in zip(starts, seconds, strict=True):
                found.append(start.run())
    yardstick = statistics.median(seconds[0])
    print(f"{arguments.report.name}, medians of {arguments.runs} runs")
    print(f"{'CPU s':>8} {'ratio':>7} {'goal':>5}")
    for start, found in zip(starts, seconds, strict=True):
        median = statistics.median(found)
        print(f"{median:8.3f} {median / yardstick:6.2f}× {start.goal or '':>5} {start.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
