"""How long cancelling takes: ``python -m tests.bench.cancelling [--runs N]``.

From the request to the moment in which no process of the command is left, for commands that go at once, that do not listen, that left their
session, that print without end, and for a server that is killed. Prints, asserts nothing.
"""

import argparse
import asyncio
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path

from gpa_lsp.editor.permission import RUN
from gpa_lsp.editor.protocol.measure_on_save import Measuring
from gpa_lsp.editor.settings import Settings
from gpa_lsp.profile.collect.allowance import Allowance
from gpa_lsp.profile.collect.command_run import CommandRun
from tests.collect.processes import MARK, find_marked, wait_for_file
from tests.collect.scripts import ENDLESS, FAMILY, HANG, STUBBORN, write_program
from tests.collect.test_command_run import SERVER
from tests.conftest import ROOT

READY = "open(__import__('sys').argv[1] + '/grandchild', 'w').close()\n"

PROGRAMS = {
    "goes when asked": READY + "import time\n" + HANG,
    "does not listen": READY + STUBBORN,
    "left its session, does not listen": FAMILY + HANG,
    "prints without end": READY + ENDLESS,
}


def print_times(name: str, times_s: list[float]) -> None:
    times = sorted(1000 * time_s for time_s in times_s)
    print(
        f"{name:44} p50 {statistics.median(times):7.1f} ms   p99 {times[int(0.99 * len(times))]:7.1f} ms   max {times[-1]:7.1f} ms"
    )


def wait_until_gone(mark: str) -> None:
    while find_marked(mark):
        time.sleep(0.001)


async def measure_cancel(program: str) -> tuple[float, float]:
    """Seconds until nothing is left, and until the result is there."""
    with tempfile.TemporaryDirectory() as name:
        folder, mark = Path(name), uuid.uuid4().hex
        environment = {**os.environ, MARK: mark}
        running = CommandRun(
            [program, name, "stay"],
            folder=folder,
            timeout_s=600,
            take_lines=lambda lines: None,
            environment=environment,
        )
        await asyncio.to_thread(wait_for_file, folder / "grandchild")
        await asyncio.sleep(0.02)
        started_s = time.perf_counter()
        running.cancel()
        gone = asyncio.create_task(asyncio.to_thread(wait_until_gone, mark))
        await running.wait()
        told_s = time.perf_counter() - started_s
        await gone
        return time.perf_counter() - started_s, told_s


class _Silent:
    """A server that agrees to everything and shows nothing."""

    def start_progress(self, title: str, cancel: object) -> "_Silent":
        return self

    def report(self, text: str, ratio: float | None) -> None: ...
    def end(self, text: str) -> None: ...
    def log(self, text: str) -> None: ...
    def warn(self, text: str) -> None: ...
    def inform(self, text: str) -> None: ...
    def finished(self, result: object) -> None: ...

    async def confirm(self, text: str, actions: tuple[str, ...]) -> str:
        return RUN


async def measure_leaving(program: str) -> float:
    """Seconds that the server's orderly end takes in the middle of a measurement."""
    with tempfile.TemporaryDirectory() as name:
        measuring = Measuring(
            _Silent(), is_relevant=lambda file: True, allowance=Allowance(Path(name) / "allowed.json")
        )
        options = Settings(profile_command=(program, name, "stay"), debounce_s=0.0)
        measuring.configure(options, [Path(name)], is_trusted=True)
        measuring.measure_now()
        await asyncio.to_thread(wait_for_file, Path(name) / "grandchild")
        started_s = time.perf_counter()
        await measuring.leave()
        return time.perf_counter() - started_s


async def measure_delay(program: str, duration_s: float) -> list[float]:
    """How late the event loop is while a command prints without end, in seconds."""
    with tempfile.TemporaryDirectory() as name:
        running = CommandRun([program, name], folder=Path(name), timeout_s=600, take_lines=lambda lines: None)
        await asyncio.to_thread(wait_for_file, Path(name) / "grandchild")
        delays = []
        until_s = time.perf_counter() + duration_s
        while time.perf_counter() < until_s:
            before_s = time.perf_counter()
            await asyncio.sleep(0.005)
            delays.append(time.perf_counter() - before_s - 0.005)
        running.cancel()
        await running.wait()
        return delays


def measure_server_death(program: str, number: int) -> float:
    """Seconds from a signal to the server until nothing is left, the server included."""
    with tempfile.TemporaryDirectory() as name:
        mark = uuid.uuid4().hex
        server = subprocess.Popen(
            [sys.executable, "-c", SERVER, name, program, name, "stay"],
            env={**os.environ, MARK: mark, "PYTHONPATH": str(ROOT)},
            stderr=subprocess.DEVNULL,
        )
        wait_for_file(Path(name) / "grandchild")
        started_s = time.perf_counter()
        server.send_signal(number)
        server.wait()
        wait_until_gone(mark)
        return time.perf_counter() - started_s


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=50)
    runs = parser.parse_args().runs
    with tempfile.TemporaryDirectory() as folder:
        programs = {
            name: write_program(Path(folder) / f"program{number}", body)
            for number, (name, body) in enumerate(PROGRAMS.items())
        }
        for name, program in programs.items():
            times = [asyncio.run(measure_cancel(program)) for _ in range(runs)]
            print_times(f"{name}: gone", [gone for gone, _ in times])
            print_times(f"{name}: told", [told for _, told in times])
        family = programs["left its session, does not listen"]
        with tempfile.TemporaryDirectory() as cache:
            os.environ["GPA_LSP_CACHE_DIR"] = cache
            print_times("server leaves: gone", [asyncio.run(measure_leaving(family)) for _ in range(runs)])
        print_times(
            "delay of the loop by endless output", asyncio.run(measure_delay(programs["prints without end"], 3.0))
        )
        for number in (signal.SIGKILL, signal.SIGTERM):
            deaths = [measure_server_death(family, number) for _ in range(max(1, runs // 5))]
            print_times(f"server ended by {signal.Signals(number).name}: gone", deaths)


if __name__ == "__main__":
    main()
