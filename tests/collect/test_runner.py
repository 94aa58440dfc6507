"""A measurement with a fake profiler: what is run, what is found, and what is said."""

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from gpa_lsp.foundation.processes.watched_command import Ending
from gpa_lsp.profile.collect.command_run import MeasurementRun
from gpa_lsp.profile.collect.model import Measurement, Phase, RunResult
from tests.collect.processes import wait_for_file
from tests.collect.scripts import write_program
from tests.patience import LIMIT_S

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="programs are scripts with #!")

NCU = """
import sys, time
arguments = sys.argv[1:]
report = arguments[arguments.index("--export") + 1]
print('==PROF== Connected to process 1 (./app)', flush=True)
"""

WRITE = """
open(report, "wb").write(b"NVR")
print('==PROF== Profiling "saxpy" - 0: 0%....50%....100% - 19 passes')
print("==PROF== Report: " + report)
"""


async def measure(folder: Path, body: str, **more: Any) -> tuple[RunResult, list[str], list[Phase]]:
    program = write_program(folder / "ncu", NCU + body)
    output = folder / "out" / "1.ncu-rep"
    output.parent.mkdir(exist_ok=True)
    options: dict[str, Any] = {"output": output, "needs_output": True, "timeout_s": LIMIT_S, **more}
    measurement = Measurement(folder=folder, profile=(program, "--export", str(output), "./app"), **options)
    lines: list[str] = []
    phases: list[Phase] = []
    result = await MeasurementRun(measurement, lines.extend, phases.append).run()
    return result, lines, phases


async def test_a_measurement_that_goes_well(tmp_path: Path) -> None:
    result, lines, phases = await measure(tmp_path, WRITE, build=("/bin/echo", "compiling"))
    assert result.is_success
    assert result.report == tmp_path / "out" / "1.ncu-rep"
    assert phases == [Phase.BUILD, Phase.PROFILE]
    assert lines[0] == "compiling"
    assert lines[-1].startswith("==PROF== Report: ")


async def test_nothing_is_measured_when_building_fails(tmp_path: Path) -> None:
    result, lines, phases = await measure(tmp_path, WRITE, build=("/bin/sh", "-c", "echo 'a.cu(3): error'; exit 2"))
    assert (result.phase, result.command.status, result.report) == (Phase.BUILD, 2, None)
    assert result.explanation.summary == "building failed with status 2; its output says more"
    assert phases == [Phase.BUILD]
    assert lines == ["a.cu(3): error"]
    assert not result.is_success


async def test_a_report_that_is_missing_is_explained(tmp_path: Path) -> None:
    result, _, _ = await measure(tmp_path, "print('==WARNING== No kernels were profiled.')")
    assert result.explanation.name == "nothing-measured"
    result, _, _ = await measure(tmp_path, "")
    assert result.explanation.name == "no-report"
    assert not result.is_success


async def test_an_empty_report_does_not_hide_that_nothing_was_measured(tmp_path: Path) -> None:
    result, _, _ = await measure(tmp_path, WRITE + "print('==WARNING== No kernels were profiled.')")
    assert result.report is not None
    assert result.explanation.name == "nothing-measured"


async def test_a_command_that_writes_where_it_likes(tmp_path: Path) -> None:
    result, _, _ = await measure(tmp_path, "", needs_output=False)
    assert result.is_success
    assert result.report is None


async def test_what_was_measured_before_the_program_failed_is_kept(tmp_path: Path) -> None:
    failing = WRITE + "print('==ERROR== The application returned an error code (3).')\nsys.exit(3)"
    result, _, _ = await measure(tmp_path, failing)
    assert result.report is not None
    assert result.explanation.summary == "the program that was measured ended with status 3"
    assert not result.is_success


async def test_half_a_report_is_none(tmp_path: Path) -> None:
    result, _, _ = await measure(tmp_path, WRITE + "sys.stdout.flush()\ntime.sleep(3600)", timeout_s=0.7)
    assert result.command.ending is Ending.TIMED_OUT
    assert result.report is None
    assert list((tmp_path / "out").iterdir()) == []


async def test_commands_see_their_environment(tmp_path: Path) -> None:
    environment = {**os.environ, "GPA_LSP_KERNEL": "saxpy"}
    _, lines, _ = await measure(
        tmp_path, WRITE, build=("/bin/sh", "-c", 'echo "for $GPA_LSP_KERNEL"'), environment=environment
    )
    assert lines[0] == "for saxpy"


async def test_cancelling_while_building_starts_nothing_more(tmp_path: Path) -> None:
    marker = tmp_path / "building"
    profile = ("/bin/sh", "-c", f"touch {tmp_path / 'profiled'}")
    build = ("/bin/sh", "-c", f"touch {marker}; exec sleep 3600")
    run = MeasurementRun(Measurement(folder=tmp_path, build=build, profile=profile), lambda lines: None)
    working = asyncio.create_task(run.run())
    await asyncio.to_thread(wait_for_file, marker)
    run.cancel()
    result = await working
    assert result.is_cancelled
    assert result.phase is Phase.BUILD
    assert result.explanation is None
    assert not (tmp_path / "profiled").exists()


async def test_cancelling_before_anything_has_begun(tmp_path: Path) -> None:
    run = MeasurementRun(Measurement(folder=tmp_path, profile=("/bin/touch", "ran")), lambda lines: None)
    run.cancel()
    assert (await run.run()).is_cancelled
    assert not (tmp_path / "ran").exists()


async def test_cancelling_between_two_commands(tmp_path: Path) -> None:
    run: MeasurementRun

    def tell(phase: Phase) -> None:
        if phase is Phase.PROFILE:
            run.cancel()

    measurement = Measurement(folder=tmp_path, build=("/bin/true",), profile=("/bin/sleep", "600"))
    run = MeasurementRun(measurement, lambda lines: None, tell)
    assert (await run.run()).is_cancelled
