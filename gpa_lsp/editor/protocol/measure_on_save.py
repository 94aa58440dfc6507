"""Measures again when a source is saved: after a pause, one measurement at a time, and only what the user has confirmed."""

import asyncio
import logging
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from gpa_lsp.editor.permission import Permission, find_workspace, is_below
from gpa_lsp.editor.progress import WorkProgress
from gpa_lsp.editor.protocol.measuring_client import MeasuringClient
from gpa_lsp.editor.settings import Settings
from gpa_lsp.editor.threads import call_in_thread
from gpa_lsp.profile.collect.allowance import Allowance
from gpa_lsp.profile.collect.command_run import MeasurementRun
from gpa_lsp.profile.collect.explain import (
    describe_result,
    list_log_lines,
    show_command,
)
from gpa_lsp.profile.collect.measured_reports import choose_output, keep_report
from gpa_lsp.profile.collect.model import Measurement, Phase, RunResult
from gpa_lsp.profile.collect.variables import (
    CommandError,
    Values,
    expand_command,
    list_environment,
    uses_variable,
)

logger = logging.getLogger(__name__)

LEAVE_LIMIT_S = 0.5  # So long is waited for processes that were ended, when the client leaves


class _Request(Struct, frozen=True):
    file: Path | None
    kernel: str | None
    is_explicit: bool
    number: int


class Measuring:
    """Measures when it is time to.

    Args:
        audience: asks and is told.
        is_relevant: whether saving a file is a reason to measure.
        allowance: what the user has confirmed before; None for the user's own file.
    """

    def __init__(
        self, audience: MeasuringClient, *, is_relevant: Callable[[Path], bool], allowance: Allowance | None = None
    ) -> None:
        self._audience = audience
        self._is_relevant = is_relevant
        self._permission = Permission(audience, allowance)
        self._settings = Settings()
        self._roots: tuple[Path, ...] = ()
        self._is_trusted = False
        self._number = 0
        self._wanted: _Request | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._work: asyncio.Task[None] | None = None
        self._run: MeasurementRun | None = None
        self._progress: WorkProgress | None = None
        self._told = ""
        self._is_asking = False
        self._has_left = False

    def configure(self, settings: Settings, roots: Sequence[Path], *, is_trusted: bool) -> None:
        """Take settings, workspace folders, and whether the user trusts them; where they are not trusted (any more) nothing runs (on)."""
        self._settings, self._roots, self._is_trusted = settings, tuple(roots), is_trusted
        if not is_trusted or settings.profile_command is None:
            self.cancel()

    @property
    def is_measuring(self) -> bool:
        """A measurement is going on, or waits for an answer."""
        return self._run is not None or self._is_asking

    def contains(self, file: Path) -> bool:
        """Whether a file lies in one of the workspace folders."""
        return any(is_below(file, root) for root in self._roots)

    def saved(self, file: Path, kernel: str | None = None) -> None:
        """A file was saved: measure after a pause. What is being measured is out of date, and ends now."""
        settings = self._settings
        if (
            settings.profile_command is None
            or not settings.profiles_on_save
            or not self._is_trusted
            or not self._is_relevant(file)
        ):
            return
        self._request(file, kernel, is_explicit=False, delay_s=settings.debounce_s)

    def measure_now(self, file: Path | None = None, kernel: str | None = None) -> None:
        """The user asks for a measurement."""
        if not self._is_trusted:
            self._audience.warn("nothing is run in a workspace that is not trusted")
        elif self._settings.profile_command is None:
            self._audience.inform(
                "set gpaLsp.profile.command to the command that measures, for example "
                'gpa-lsp profile --kernel "${kernel}" -o "${output}" -- ./app'
            )
        else:
            self._request(file, kernel, is_explicit=True, delay_s=0.0)

    def cancel(self) -> None:
        """End the measurement that goes on or is about to, if any. Returns at once; its processes are gone within a tenth of a second."""
        self._number += 1
        self._wanted = None
        self._stop()
        self.stop_asking()

    async def leave(self) -> None:
        """End everything, and wait until it has ended, but never long."""
        self._has_left = True
        self.cancel()
        if self._work is not None and not self._work.done():
            if self._run is None:
                self._work.cancel()  # it waits for the user
            await asyncio.wait({self._work}, timeout=LEAVE_LIMIT_S)

    # When

    def _request(self, file: Path | None, kernel: str | None, *, is_explicit: bool, delay_s: float) -> None:
        if self._has_left:
            return
        self._number += 1
        self._wanted = _Request(file, kernel, is_explicit, self._number)
        self._stop()
        if is_explicit:
            self.stop_asking()  # a question nobody answered must not stand in the way of the next one
        self._timer = asyncio.get_running_loop().call_later(delay_s, self._begin)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._run is not None:
            self._run.cancel()
        if self._progress is not None:
            self._progress.end("cancelled")

    def stop_asking(self) -> None:
        """A question that nobody answered makes room for another one."""
        if self._is_asking and self._work is not None:
            self._work.cancel()
            self._work = None

    def _begin(self) -> None:
        self._timer = None
        if self._work is None or self._work.done():
            self._work = asyncio.get_running_loop().create_task(self._work_off())

    async def _work_off(self) -> None:
        """One request after the other; while the pause after a save lasts there is none."""
        while self._timer is None and (request := self._wanted) is not None:
            self._wanted = None
            try:
                await self._serve(request)
            except Exception as error:
                logger.exception("measuring failed")
                self._audience.warn(f"measuring failed: {error}")

    def _is_current(self, request: _Request) -> bool:
        return request.number == self._number and not self._has_left

    # What

    async def _serve(self, request: _Request) -> None:
        settings, workspace = self._settings, find_workspace(self._roots, request.file)
        if settings.profile_command is None or not (settings.profiles_on_save or request.is_explicit):
            return  # the settings have changed meanwhile
        if workspace is None:
            self._audience.warn("nothing is measured without a workspace folder, where the commands would run")
            return
        self._is_asking = True
        try:
            is_permitted = await self._permission.is_given(
                workspace, settings.build_command, settings.profile_command, is_explicit=request.is_explicit
            )
        finally:
            self._is_asking = False
        if not is_permitted or not self._is_current(request):
            return
        try:
            measurement = await call_in_thread(lambda: _prepare(settings, workspace, request))
        except (CommandError, OSError) as error:
            self._audience.warn(f"the command cannot be run: {error}")
            return
        if not self._is_current(request):
            return
        self._permission.use()
        result = await self._measure(measurement)
        if result.report is not None:
            report = result.report
            result = replace(result, report=await call_in_thread(lambda: keep_report(report, workspace)))
        self._tell(result, request)

    async def _measure(self, measurement: Measurement) -> RunResult:
        progress = self._progress = WorkProgress(
            lambda: self._audience.start_progress("Measuring", self.cancel), "starting"
        )

        def take_lines(lines: Sequence[str]) -> None:
            self._audience.log("\n".join(lines))
            progress.take_lines(lines)

        def tell_phase(phase: Phase) -> None:
            command = measurement.build if phase is Phase.BUILD else measurement.profile
            self._audience.log(f"> {show_command(command or ())}")
            progress.begin(phase)

        run = self._run = MeasurementRun(measurement, take_lines, tell_phase)
        text = "failed"
        try:
            result = await run.run()
            text = describe_result(result)
            return result
        finally:
            self._run = self._progress = None
            progress.end(text)

    def _tell(self, result: RunResult, request: _Request) -> None:
        if self._has_left:
            return
        self._audience.log("\n".join(list_log_lines(result)))
        text = describe_result(result)
        is_news = request.is_explicit or text != self._told
        if not result.is_cancelled:
            self._told = text
            if not result.is_success and is_news:
                self._audience.warn(text)  # once, not at each save
        self._audience.finished(result)


def _prepare(settings: Settings, workspace: Path, request: _Request) -> Measurement:
    """Fill in the variables.

    Raises:
        CommandError: that cannot be done.
        OSError: there is no place for the report.
    """
    assert settings.profile_command is not None
    output = choose_output(workspace)
    values = Values(workspace=workspace, file=request.file, kernel=request.kernel, output=output)
    environment = {**os.environ, **list_environment(values)}
    return Measurement(
        folder=workspace,
        build=None if settings.build_command is None else expand_command(settings.build_command, values, environment),
        profile=expand_command(settings.profile_command, values, environment),
        timeout_s=settings.profile_timeout_s,
        environment=environment,
        output=output,
        needs_output=uses_variable(settings.profile_command, "output"),
    )
