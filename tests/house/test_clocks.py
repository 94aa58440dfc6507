"""Work is limited by what it does, never by the clock: on a busy machine the clock runs while the work does not."""

import ast
from collections.abc import Iterator

import pytest

from tests.conftest import ROOT
from tests.house.count_house import parse_where

PACKAGE = ROOT / "gpa_lsp"
_CLOCKS = {"monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "by_clock", "wait_for"}
_LIMITS = {"timeout", "clock_s"}
ALLOWED = {
    "cli/installation.py": "other programs are asked for their version, and may hang",
    "foundation/kept_files.py": "files have an age",
    "cli/commands/profile.py": "ncu is asked for its help, and may hang",
    "cli/terminal.py": "a bar is drawn for a person",
    "profile/collect/allowance.py": "a permission has a date",
    "profile/collect/command_run.py": "the user's program runs on a GPU, and waits for it",
    "profile/collect/measured_reports.py": "files of other runs have an age",
    "profile/collector/run.py": "the user's program runs on a GPU, and waits for it",
    "execution/compiler/compile.py": "how long a compiler took is told",
    "execution/compiler/nvrtc_processes.py": "a library that was not there is looked for again after a while",
    "execution/compiler/job.py": "files that were written just now are not trusted",
    "execution/local_gpu/local_gpu.py": "a kernel runs on a GPU",
    "execution/local_gpu/timing.py": "kernels run on a GPU",
    "report/history/database.py": "another process holds a lock",
    "editor/protocol/client.py": "an editor is waited for",
    "editor/progress.py": "a bar is drawn for a person",
    "editor/protocol/loader.py": "files have an age, and an editor is not told more often than it can draw",
    "editor/protocol/user_runs.py": "the user's program is ended with the server",
    "editor/protocol/profile_reader.py": "what a person waits for is sent early",
    "editor/protocol/server.py": "a stream that nobody reads is left",
    "editor/protocol/session.py": "an editor waits for an answer",
    "editor/jobs/verified.py": "a person waits for a menu",
    "editor/protocol/wire.py": "a stream that nobody reads is left",
    "execution/prediction/exploration/explore.py": "a cluster is reached through a network",
    "foundation/processes/async_worker.py": "a pause between two looks",
    "foundation/processes/supervision.py": "a pause between two looks",
    "foundation/processes/watchdog.py": "the clock that stands behind processor time, for what sleeps",
    "foundation/processes/watchdog_windows.py": "the clock that stands behind processor time, for what sleeps",
    "foundation/processes/watched_command.py": "the clock that stands behind processor time; processes that were killed are waited for",
    "foundation/processes/worker.py": "a process without a job goes after a while",
    "execution/programs/run.py": "how far a program is, is told to a person",
    "execution/programs/session.py": "how far a program is, is told to a person",
    "execution/record/run.py": "the user's program runs on a GPU, and waits for it",
}
"""Files that look at a clock, and why no work is ended by it."""


def find_clocks(tree: ast.AST) -> Iterator[int]:
    """Lines on which a program looks at a clock, or gives something a time by the clock."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            of = node.func.value if isinstance(node.func, ast.Attribute) else None
            is_time = name == "time" and isinstance(of, ast.Name) and of.id == "time"
            if name in _CLOCKS or is_time or any(one.arg in _LIMITS for one in node.keywords):
                yield node.lineno


def test_no_work_is_limited_by_the_clock() -> None:
    trees = parse_where(rf"\b(?:{'|'.join(_CLOCKS | _LIMITS)})\b|\btime\.time\b")
    found = {path.relative_to(PACKAGE).as_posix(): lines for path, tree in trees if (lines := list(find_clocks(tree)))}
    strangers = {file: lines for file, lines in found.items() if file not in ALLOWED}
    assert not strangers, "limit work by processor time (TimeLimits, work_time), or say in ALLOWED what waits for whom"
    assert not ALLOWED.keys() - found.keys(), "these look at no clock"


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("import time\nend = time.monotonic() + 5", [2]),
        ("from time import perf_counter\nperf_counter()", [2]),
        ("subprocess.run(command, timeout=5)", [1]),
        ("import time\ntime.thread_time()\nlimits = TimeLimits.for_work(5)", []),
    ],
)
def test_clocks_are_found(text: str, lines: list[int]) -> None:
    assert list(find_clocks(ast.parse(text))) == lines
