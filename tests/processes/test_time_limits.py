"""Processor time of other processes, and what exceeds a limit."""

import subprocess
import sys

import pytest

from gpa_lsp.foundation.errors import ToolError
from gpa_lsp.foundation.processes.watched_command import TimeLimits, parse_ps_time, read_processor_time, run_limited

posix_only = pytest.mark.skipif(sys.platform == "win32", reason="needs ps")
WORKS_THEN_WAITS = """
import time
while time.process_time() < 0.3: pass
print(time.process_time(), flush=True)
input()
"""


@pytest.fixture
def working():
    """A process that has worked for a third of a second and waits; and how long it says it worked."""
    with subprocess.Popen(
        [sys.executable, "-c", WORKS_THEN_WAITS], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        yield process, float(process.stdout.readline())
        process.kill()


def test_processor_time_of_a_process(working):
    process, worked_s = working
    assert read_processor_time(process) == pytest.approx(worked_s, abs=0.05)


@posix_only
def test_processor_time_by_ps(working, monkeypatch):
    process, worked_s = working
    monkeypatch.setattr("sys.platform", "darwin")
    found = read_processor_time(process)
    if found is None:
        pytest.skip("there is no ps")
    assert found == pytest.approx(worked_s, abs=1.05)  # some print whole seconds


def test_processor_time_of_what_has_ended_is_unknown(working):
    process, _ = working
    process.kill()
    process.wait()
    assert read_processor_time(process) is None


@pytest.mark.parametrize("text", ["", "soon", "1:xx", "x-00:00:01"])
def test_what_ps_should_not_print(text):
    with pytest.raises(ValueError, match=r"could not convert|invalid literal"):
        parse_ps_time(text)


@pytest.mark.parametrize(
    ("processor_s", "clock_s", "words"),
    [
        (29.0, 299.0, None),
        (None, 299.0, None),
        (31.0, 31.0, "after 30 s of processor time"),
        (1.0, 301.0, "after 300 s (1 s of processor time)"),
        (None, 301.0, "after 300 s"),
    ],
)
def test_what_exceeds(processor_s, clock_s, words):
    found = TimeLimits.for_work(30).find_excess(processor_s, clock_s)
    assert found is None if words is None else found.endswith(words)


def run(code, tmp_path, limits, **options):
    command = [sys.executable, "-c", code]
    return run_limited(
        "tool", command, limits, folder=tmp_path, output=subprocess.PIPE, errors=subprocess.DEVNULL, **options
    )


def test_a_process_that_ends_in_time_is_left_alone(tmp_path):
    with run("print('done')", tmp_path, TimeLimits(processor_s=60, clock_s=600)) as process:
        assert process.stdout.read().split() == [b"done"]
    assert process.returncode == 0


def test_who_is_killed_and_for_what_is_said(tmp_path):
    with (
        pytest.raises(ToolError, match=r"^tool: reading x\.a: timed out after 0.1 s of processor time$"),
        run("while True: pass", tmp_path, TimeLimits(processor_s=0.1, clock_s=600), work="reading x.a") as process,
    ):
        process.wait()
    assert process.returncode != 0


def test_other_errors_of_the_body_end_the_process_and_come_through(tmp_path):
    with (
        pytest.raises(KeyError),
        run("import time; time.sleep(1000)", tmp_path, TimeLimits(processor_s=60, clock_s=600)) as process,
    ):
        raise KeyError
    assert process.returncode != 0


def test_a_tool_that_cannot_be_started_is_named(tmp_path):
    gone = str(tmp_path / "gone")
    limits = TimeLimits.for_work(1)
    with (
        pytest.raises(ToolError, match=r"tool: .*gone cannot be started: No such file"),
        run_limited("tool", [gone], limits, folder=tmp_path, output=subprocess.PIPE, errors=subprocess.PIPE),
    ):
        pass
