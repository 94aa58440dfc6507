"""A measurement from start to end: build, profile, find the report, explain what went wrong."""

import time
from collections.abc import Callable
from pathlib import Path

from gpa_lsp.foundation.processes.watched_command import Ending
from gpa_lsp.profile.collect.command_run import CommandRun, TakeLines
from gpa_lsp.profile.collect.explain import explain, says_nothing_measured
from gpa_lsp.profile.collect.measured_reports import discard_output, find_written
from gpa_lsp.profile.collect.model import CommandResult, Explanation, Measurement, Phase, RunResult
from gpa_lsp.profile.collect.variables import Command

TellPhase = Callable[[Phase], None]

# Endings in the middle of things, after which a report is half a report
_STOPPED = frozenset({Ending.CANCELLED, Ending.TIMED_OUT, Ending.LOST})


class MeasurementRun:
    """One measurement; can be cancelled at any time, from anywhere.

    Args:
        measurement: what to run.
        take_lines: gets what the commands print.
        tell_phase: hears which of them begins.
    """

    def __init__(
        self, measurement: Measurement, take_lines: TakeLines, tell_phase: TellPhase = lambda phase: None
    ) -> None:
        self._measurement = measurement
        self._take_lines = take_lines
        self._tell_phase = tell_phase
        self._current: CommandRun | None = None
        self._is_cancelled = False

    def cancel(self) -> None:
        """End what runs, and start nothing more. Returns at once."""
        self._is_cancelled = True
        if self._current is not None:
            self._current.cancel()

    async def run(self) -> RunResult:
        """Do it. Cancelling the task that awaits this cancels the measurement.

        Raises:
            OSError: no process can be started at all.
        """
        started_s = time.monotonic()
        measurement = self._measurement
        if measurement.build is not None:
            built = await self._run_command(Phase.BUILD, measurement.build)
            if not built.is_success:
                return self._conclude(Phase.BUILD, built, None, started_s)
        profiled = await self._run_command(Phase.PROFILE, measurement.profile)
        return self._conclude(Phase.PROFILE, profiled, self._find_report(profiled), started_s)

    async def _run_command(self, phase: Phase, command: Command) -> CommandResult:
        if self._is_cancelled:
            return CommandResult(ending=Ending.CANCELLED, status=None, signal=None, duration_s=0.0, tail=())
        self._tell_phase(phase)
        measurement = self._measurement
        self._current = CommandRun(
            command,
            folder=measurement.folder,
            timeout_s=measurement.timeout_s,
            take_lines=self._take_lines,
            environment=measurement.environment,
        )
        if self._is_cancelled:  # by whoever was told of the phase
            self._current.cancel()
        return await self._current.wait()

    def _find_report(self, result: CommandResult) -> Path | None:
        output = self._measurement.output
        if output is None:
            return None
        if result.ending in _STOPPED:
            discard_output(output)
            return None
        return find_written(output)

    def _conclude(self, phase: Phase, result: CommandResult, report: Path | None, started_s: float) -> RunResult:
        return RunResult(
            phase=phase,
            command=result,
            explanation=self._explain(phase, result, report),
            report=report,
            duration_s=time.monotonic() - started_s,
        )

    def _explain(self, phase: Phase, result: CommandResult, report: Path | None) -> Explanation | None:
        measurement = self._measurement
        command = measurement.build if phase is Phase.BUILD and measurement.build else measurement.profile
        if result.is_success and report is not None and not says_nothing_measured(result):
            return None
        found = explain(result, program=command[0], phase=phase, timeout_s=measurement.timeout_s)
        if found is None and result.is_success and measurement.needs_output:
            return Explanation(
                name="no-report",
                summary="the command ended well, but wrote no report where it was asked to",
                remedies=("hand ${output} to the profiler: ncu --force-overwrite --export ${output} …",),
            )
        return found
