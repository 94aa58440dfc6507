"""Commands end when they should, and nothing they started is left, whatever it does to stay."""

import asyncio
import os
import re
import signal
import subprocess
import sys
import textwrap
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpa_lsp.foundation.processes import watchdog, watched_command
from gpa_lsp.foundation.processes.watched_command import RUN_VARIABLE, Ending, find_strays
from gpa_lsp.profile.collect.command_run import CommandRun
from gpa_lsp.profile.collect.model import CommandResult
from tests.collect.processes import MARK, find_marked, hear_interrupts, wait_for_file, wait_until_gone
from tests.collect.scripts import ENDLESS, FAMILY, HANG, STUBBORN, write_program
from tests.conftest import ROOT
from tests.patience import LIMIT_S, wait_until_so

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks at processes through /proc")

PYTHON = sys.executable
WATCHDOG = Path(watchdog.__file__)


@pytest.fixture
def mark() -> Iterator[str]:
    """A mark of this test's processes; what a failing test leaves is killed."""
    value = uuid.uuid4().hex
    yield value
    for process_id in find_marked(value):
        os.kill(process_id, signal.SIGKILL)


async def start(
    command: list[str], folder: Path, mark: str, lines: list[str], timeout_s: float = LIMIT_S
) -> CommandRun:
    environment = {**os.environ, MARK: mark}
    return CommandRun(command, folder=folder, timeout_s=timeout_s, take_lines=lines.extend, environment=environment)


async def run(
    command: list[str], folder: Path, mark: str, timeout_s: float = LIMIT_S
) -> tuple[CommandResult, list[str]]:
    lines: list[str] = []
    result = await (await start(command, folder, mark, lines, timeout_s)).wait()
    return result, lines


async def see(condition: str, lines: list[str]) -> None:
    await wait_until_so(lambda: condition in lines, condition)


async def test_a_command_that_ends_well(tmp_path: Path, mark: str) -> None:
    body = "import os,sys; print(os.getcwd()); print('to stderr', file=sys.stderr); print(repr(sys.stdin.read()))"
    result, lines = await run([PYTHON, "-c", body], tmp_path, mark)
    assert sorted(lines) == sorted([str(tmp_path), "to stderr", "''"])
    assert (result.ending, result.status, result.signal, result.left_running) == (Ending.ENDED, 0, None, ())
    assert result.is_success
    assert sorted(result.tail) == sorted(lines)
    assert find_marked(mark) == {}


async def test_exit_status_and_signals_are_told(tmp_path: Path, mark: str) -> None:
    result, _ = await run([PYTHON, "-c", "raise SystemExit(7)"], tmp_path, mark)
    assert (result.ending, result.status, result.signal) == (Ending.ENDED, 7, None)
    result, _ = await run([PYTHON, "-c", "import os; os.kill(os.getpid(), 11)"], tmp_path, mark)
    assert (result.ending, result.status, result.signal) == (Ending.ENDED, None, 11)


async def test_programs_that_are_not_there_or_cannot_be_executed(tmp_path: Path, mark: str) -> None:
    result, _ = await run(["no-such-program-anywhere"], tmp_path, mark)
    assert (result.ending, result.status) == (Ending.NOT_STARTED, 127)
    assert result.tail == ("no-such-program-anywhere: No such file or directory",)
    (tmp_path / "data").write_text("no program")
    result, _ = await run([str(tmp_path / "data")], tmp_path, mark)
    assert (result.ending, result.status) == (Ending.NOT_STARTED, 126)
    result, _ = await run([PYTHON, "-c", ""], tmp_path / "gone", mark)
    assert result.ending is Ending.NOT_STARTED
    assert result.tail == (f"{tmp_path / 'gone'}: No such file or directory",)


async def test_the_folder_it_runs_in_has_no_say_in_what_the_watchdog_imports(tmp_path: Path, mark: str) -> None:
    for module in ("json", "subprocess", "select", "sitecustomize", "gpa_lsp"):
        (tmp_path / f"{module}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    environment = {**os.environ, MARK: mark, "PYTHONPATH": str(tmp_path), "PYTHONSTARTUP": str(tmp_path / "json.py")}
    lines: list[str] = []
    started = CommandRun(
        ["/bin/echo", "done"], folder=tmp_path, timeout_s=LIMIT_S, take_lines=lines.extend, environment=environment
    )
    assert (await started.wait()).is_success
    assert lines == ["done"]
    assert not (tmp_path / "ran").exists()


async def test_cancelling_ends_those_that_left_and_those_that_do_not_listen(tmp_path: Path, mark: str) -> None:
    program = write_program(tmp_path / "app", FAMILY + HANG)
    running = await start([program, str(tmp_path), "stay"], tmp_path, mark, [])
    for name in ("parent", "child", "grandchild"):
        await asyncio.to_thread(wait_for_file, tmp_path / name)
    assert len(find_marked(mark)) == 4  # with the watchdog
    running.cancel()
    result = await running.wait()
    assert result.ending is Ending.CANCELLED
    assert result.left_running == ()
    assert find_marked(mark) == {}


async def test_cancelling_twice_and_afterwards_does_no_harm(tmp_path: Path, mark: str) -> None:
    running = await start(["/bin/sleep", "3600"], tmp_path, mark, [])
    running.cancel()
    running.cancel()
    assert (await running.wait()).ending is Ending.CANCELLED
    running.cancel()
    assert (await running.wait()).ending is Ending.CANCELLED


async def test_cancelling_before_the_command_has_begun(tmp_path: Path, mark: str) -> None:
    running = await start([PYTHON, "-c", f"open({str(tmp_path / 'ran')!r}, 'w')"], tmp_path, mark, [])
    running.cancel()
    assert (await running.wait()).ending is Ending.CANCELLED
    assert find_marked(mark) == {}


@pytest.fixture
def patient_watchdog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that gives a command which listens as much time to leave as a slow machine takes."""
    text, count = re.subn(r"^GRACE_S = 0\.04$", f"GRACE_S = {LIMIT_S}", WATCHDOG.read_text(), flags=re.MULTILINE)
    assert count == 1
    (tmp_path / "patient").mkdir()
    (tmp_path / "patient" / WATCHDOG.name).write_text(text)
    monkeypatch.setattr(watched_command, "_WATCHDOG", tmp_path / "patient" / WATCHDOG.name)


@pytest.mark.usefixtures("patient_watchdog")
async def test_a_polite_command_may_clean_up(tmp_path: Path, mark: str) -> None:
    body = textwrap.dedent("""
        import signal, sys, time
        def leave(number, frame):
            print("leaving", flush=True)
            sys.exit(3)
        signal.signal(signal.SIGTERM, leave)
        print("ready", flush=True)
        time.sleep(3600)
    """)
    lines: list[str] = []
    running = await start([PYTHON, "-S", "-c", body], tmp_path, mark, lines)
    await see("ready", lines)
    running.cancel()
    result = await running.wait()
    assert (result.ending, result.status) == (Ending.CANCELLED, 3)
    assert lines == ["ready", "leaving"]


async def test_a_command_that_does_not_listen_is_killed(tmp_path: Path, mark: str) -> None:
    lines: list[str] = []
    running = await start([PYTHON, "-S", "-c", STUBBORN], tmp_path, mark, lines)
    await see("ready", lines)
    running.cancel()
    result = await running.wait()
    assert (result.ending, result.signal) == (Ending.CANCELLED, signal.SIGKILL)
    assert find_marked(mark) == {}


async def test_time_is_limited(tmp_path: Path, mark: str) -> None:
    program = write_program(tmp_path / "app", FAMILY + HANG)
    result, _ = await run([program, str(tmp_path), "orphan"], tmp_path, mark, timeout_s=1.0)
    assert result.ending is Ending.TIMED_OUT
    assert result.duration_s >= 1.0
    assert find_marked(mark) == {}


@pytest.mark.parametrize("relation", ["stay", "orphan"])
async def test_nothing_is_left_behind_by_a_command_that_ends_well(tmp_path: Path, mark: str, relation: str) -> None:
    program = write_program(tmp_path / "app", FAMILY)
    result, _ = await run([program, str(tmp_path), relation], tmp_path, mark)
    assert (result.ending, result.status) == (Ending.ENDED, 0)
    assert find_marked(mark) == {}


async def test_cancelling_the_task_that_waits_cancels_the_command(tmp_path: Path, mark: str) -> None:
    program = write_program(tmp_path / "app", FAMILY + HANG)
    running = await start([program, str(tmp_path), "stay"], tmp_path, mark, [])
    await asyncio.to_thread(wait_for_file, tmp_path / "grandchild")
    waiting = asyncio.create_task(running.wait())
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await asyncio.to_thread(wait_until_gone, mark)
    assert (await running.wait()).ending is Ending.CANCELLED


async def test_a_command_that_prints_without_end(tmp_path: Path, mark: str) -> None:
    lines: list[str] = []
    running = await start([PYTHON, "-S", "-c", ENDLESS], tmp_path, mark, lines)
    await wait_until_so(lambda: sum("not shown" in line for line in lines) >= 3)
    running.cancel()
    result = await running.wait()
    assert result.ending is Ending.CANCELLED
    assert len(result.tail) <= 240
    assert lines[0] == "0123456789 step"
    assert len(lines) < 100_000
    assert find_marked(mark) == {}


async def test_the_last_lines_are_shown_although_too_many_were_printed(tmp_path: Path, mark: str) -> None:
    _, lines = await run([PYTHON, "-S", "-c", "for number in range(100_000): print(number)"], tmp_path, mark)
    assert lines[0] == "0"
    assert lines[-2:] == ["99998", "99999"]
    assert len(lines) < 20_000


async def test_the_last_lines_are_shown_when_the_end_takes_a_while(tmp_path: Path, mark: str) -> None:
    body = "import time\nfor number in range(100_000): print(number)\nprint('end', end='', flush=True); time.sleep(0.5)"
    _, lines = await run([PYTHON, "-S", "-c", body], tmp_path, mark)
    assert lines[-3:] == ["99998", "99999", "end"]


async def test_one_who_cannot_show_the_output_does_not_stop_the_command(tmp_path: Path, mark: str) -> None:
    def refuse(lines: object) -> None:
        raise RuntimeError("no window")

    environment = {**os.environ, MARK: mark}
    started = CommandRun(
        ["/bin/echo", "done"], folder=tmp_path, timeout_s=LIMIT_S, take_lines=refuse, environment=environment
    )
    result = await started.wait()
    assert result.is_success
    assert result.tail == ("done",)


async def test_nothing_is_left_when_the_watchdog_is_killed(tmp_path: Path, mark: str) -> None:
    program = write_program(tmp_path / "app", FAMILY + HANG)
    running = await start([program, str(tmp_path), "stay"], tmp_path, mark, [])
    await asyncio.to_thread(wait_for_file, tmp_path / "grandchild")
    os.kill(running.watchdog_id, signal.SIGKILL)
    result = await running.wait()
    assert result.ending is Ending.LOST
    assert find_marked(mark) == {}


async def test_the_watchdog_ends_the_command_when_it_is_asked_to_end_itself(tmp_path: Path, mark: str) -> None:
    lines: list[str] = []
    running = await start([PYTHON, "-S", "-c", STUBBORN], tmp_path, mark, lines)
    await see("ready", lines)
    os.kill(running.watchdog_id, signal.SIGTERM)
    assert (await running.wait()).ending is Ending.CANCELLED
    assert find_marked(mark) == {}


SERVER = """
import asyncio, sys
from pathlib import Path
from gpa_lsp.profile.collect.command_run import CommandRun

async def serve():
    running = CommandRun(sys.argv[2:], folder=Path(sys.argv[1]), timeout_s=3600, take_lines=lambda lines: None)
    await running.wait()

asyncio.run(serve())
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_nothing_is_left_when_the_server_dies(tmp_path: Path, mark: str, number: int) -> None:
    program = write_program(tmp_path / "app", FAMILY + HANG)
    server = subprocess.Popen(
        [PYTHON, "-c", SERVER, str(tmp_path), program, str(tmp_path), "stay"],
        env={**os.environ, MARK: mark, "PYTHONPATH": str(ROOT)},
        stderr=subprocess.DEVNULL,
        preexec_fn=hear_interrupts,  # noqa: PLW1509 - there are no threads here
    )
    try:
        wait_for_file(tmp_path / "grandchild")
        assert len(find_marked(mark)) == 5
        server.send_signal(number)
        server.wait(LIMIT_S)
    finally:
        server.kill()
    wait_until_gone(mark)


async def test_strays_are_those_of_the_run(tmp_path: Path, mark: str) -> None:
    running = await start(["/bin/sh", "-c", f"echo ${RUN_VARIABLE}; exec sleep 3600"], tmp_path, mark, lines := [])
    await wait_until_so(lambda: lines)
    assert set(find_strays(lines[0])) == set(find_marked(mark))
    assert list(find_strays("0" * 16)) == []
    running.cancel()
    await running.wait()
