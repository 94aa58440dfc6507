"""Saving measures: after a pause, one at a time, only what was confirmed, and nothing stays behind."""

import asyncio
import os
import sys
import uuid
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from gpa_lsp.editor import progress
from gpa_lsp.editor.permission import ALWAYS, NEVER, RUN
from gpa_lsp.editor.protocol.user_runs import Measuring
from gpa_lsp.editor.settings import Settings
from gpa_lsp.profile.collect.allowance import Allowance
from gpa_lsp.profile.collect.measured_reports import find_measured_folder
from gpa_lsp.profile.collect.model import Phase, RunResult
from tests.collect.processes import MARK, find_marked, wait_for_file
from tests.collect.scripts import FAMILY, HANG, write_program
from tests.patience import LIMIT_S, wait_until_so

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks at processes through /proc")

NCU = """
import os, sys, time
with open(sys.argv[1], "w") as report:
    report.write("NVR " + " ".join(sys.argv[2:]))
with open("runs", "a") as runs:
    runs.write(" ".join(sys.argv[2:]) + "\\n")
print('==PROF== Profiling "saxpy" - 0: 0%....50%....100% - 19 passes')
"""


class FakeBar:
    def __init__(self) -> None:
        self.reports: list[str] = []
        self.ends: list[str] = []

    def report(self, text: str, ratio: float | None) -> None:
        assert ratio is None
        self.reports.append(text)

    def end(self, text: str) -> None:
        self.ends.append(text)


class FakeHost:
    """Remembers what it is told; answers questions as it was told to."""

    def __init__(self) -> None:
        self.bars: list[FakeBar] = []
        self.logs: list[str] = []
        self.warnings: list[str] = []
        self.messages: list[str] = []
        self.wishes: list[bool] = []
        self.questions: list[tuple[str, tuple[str, ...]]] = []
        self.results: list[RunResult] = []
        self.answer: str | None = RUN
        self.thinking: asyncio.Event | None = None
        self.cancel: Callable[[], None] = lambda: None

    def start_progress(self, title: str, cancel: Callable[[], None]) -> FakeBar:
        assert title == "Measuring"
        self.bars.append(FakeBar())
        self.cancel = cancel
        return self.bars[-1]

    async def confirm(self, text: str, actions: tuple[str, ...], *, is_explicit: bool) -> str | None:
        self.wishes.append(is_explicit)
        self.questions.append((text, actions))
        if self.thinking is not None:
            await self.thinking.wait()
        return self.answer

    def log(self, text: str) -> None:
        self.logs += text.split("\n")

    def warn(self, text: str) -> None:
        self.warnings.append(text)

    def inform(self, text: str) -> None:
        self.messages.append(text)

    def show_times(self, text: str) -> None:
        raise AssertionError(text)

    explain = show_times


class Desk:
    """A workspace, a host, and what measures in it."""

    def __init__(self, folder: Path, mark: str) -> None:
        self.workspace = folder / "work"
        self.workspace.mkdir()
        self.mark = mark
        self.host = FakeHost()
        self.allowance = Allowance(folder / "data" / "allowed.json")
        self.measuring = self.make_measuring()
        self.source = self.workspace / "saxpy.cu"
        self.use(NCU)

    def make_measuring(self) -> Measuring:
        return Measuring(
            self.host,
            is_relevant=lambda file: file.suffix == ".cu",
            finished=self.host.results.append,
            allowance=self.allowance,
        )

    def use(self, body: str, *arguments: str, is_trusted: bool = True, **options: object) -> None:
        program = write_program(self.workspace.parent / "ncu", body)
        profile = (program, *(arguments or ("${output}", "${fileBasename}", "${kernel}")))
        chosen = Settings(profile_command=profile, **{"debounce_s": 0.05, "profile_timeout_s": LIMIT_S, **options})  # type: ignore[arg-type]
        self.measuring.configure(chosen, [self.workspace], is_trusted=is_trusted)

    async def until(self, condition: Callable[[], bool]) -> None:
        await wait_until_so(condition)

    async def until_gone(self) -> None:
        """Wait until none of the processes is left: a user who leaves does not wait long for their end."""
        await wait_until_so(lambda: find_marked(self.mark).keys() <= {os.getpid()}, lambda: find_marked(self.mark))

    async def result(self, count: int = 1) -> RunResult:
        await self.until(lambda: len(self.host.results) >= count)
        return self.host.results[count - 1]

    def runs(self) -> list[str]:
        file = self.workspace / "runs"
        return file.read_text().splitlines() if file.exists() else []

    async def settle(self) -> None:
        """Wait until the pause after a save is over, and the work that follows it, too, as far as the user lets it."""
        await self.until(lambda: self.measuring._timer is None and (self._is_idle() or self._is_asking()))

    def _is_idle(self) -> bool:
        return self.measuring._work is None or self.measuring._work.done()

    def _is_asking(self) -> bool:
        return self.measuring._is_asking and self.host.thinking is not None and not self.host.thinking.is_set()


@pytest.fixture
async def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Desk]:
    monkeypatch.setenv("GPA_LSP_CACHE_DIR", str(tmp_path / "cache"))
    mark = uuid.uuid4().hex
    monkeypatch.setenv(MARK, mark)
    made = Desk(tmp_path, mark)
    yield made
    await made.measuring.leave()
    await made.until_gone()


@pytest.fixture
def no_time_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stop the clock of progress bars."""
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: 0.0))


@pytest.mark.usefixtures("no_time_passes")
async def test_saving_measures(desk: Desk) -> None:
    desk.measuring.saved(desk.source, "saxpy(float*)")
    result = await desk.result()
    assert result.is_success
    assert result.report is not None
    assert result.report.parent == find_measured_folder(desk.workspace)
    assert result.report.read_text() == "NVR saxpy.cu saxpy(float*)"
    (bar,) = desk.host.bars
    assert bar.reports[0] == "profiling, 0 s"
    assert bar.reports[-1].startswith("profiling, 1 launch measured, last saxpy, ")
    assert len(bar.ends) == 1
    assert bar.ends[0].startswith("measured in ")
    assert desk.host.logs[0].startswith("> ")
    assert '==PROF== Profiling "saxpy" - 0: 0%....50%....100% - 19 passes' in desk.host.logs
    assert desk.host.logs[-1] == f"[the report is {result.report}]"
    assert desk.host.warnings == []
    assert list(desk.workspace.iterdir()) == [desk.workspace / "runs"]


@pytest.mark.usefixtures("no_time_passes")
async def test_building_comes_first(desk: Desk) -> None:
    desk.use(NCU, build_command=("/bin/sh", "-c", "echo building $GPA_LSP_FILE_BASENAME"))
    desk.measuring.saved(desk.source)
    assert (await desk.result()).is_success
    assert "building saxpy.cu" in desk.host.logs
    assert desk.host.bars[0].reports[0] == "building, 0 s"


async def test_saves_in_a_row_are_one(desk: Desk) -> None:
    desk.use(NCU, debounce_s=0.2)
    for number in range(5):
        desk.measuring.saved(desk.workspace / f"{number}.cu")
    await desk.result()
    await desk.settle()
    assert desk.runs() == ["4.cu "]


async def test_of_two_folders_the_one_a_file_really_lies_in_is_measured(desk: Desk, tmp_path: Path) -> None:
    second, link = tmp_path / "second", tmp_path / "link"
    second.mkdir()
    link.symlink_to(second)
    desk.use(NCU)
    desk.measuring.configure(desk.measuring._settings, [desk.workspace, second], is_trusted=True)
    assert desk.measuring.contains(link / "k.cu")
    assert not desk.measuring.contains(tmp_path / "third" / "k.cu")
    desk.measuring.saved(link / "k.cu")
    await desk.result()
    assert (second / "runs").exists()
    assert desk.runs() == []


async def test_other_files_do_not_measure(desk: Desk) -> None:
    desk.measuring.saved(desk.workspace / "README.md")
    await desk.settle()
    assert desk.host.questions == []


async def test_nothing_measures_without_a_command_or_on_save_when_not_wanted(desk: Desk) -> None:
    desk.measuring.configure(Settings(), [desk.workspace], is_trusted=True)
    desk.measuring.saved(desk.source)
    desk.measuring.measure_now(desk.source)
    assert desk.host.messages[0].startswith("set gpaLsp.profile.command")
    desk.use(NCU, profiles_on_save=False)
    desk.measuring.saved(desk.source)
    await desk.settle()
    assert desk.host.questions == []
    desk.measuring.measure_now(desk.source)
    assert (await desk.result()).is_success


async def test_nothing_runs_in_a_workspace_that_is_not_trusted(desk: Desk) -> None:
    desk.use(NCU, is_trusted=False)
    desk.measuring.saved(desk.source)
    desk.measuring.measure_now(desk.source)
    await desk.settle()
    assert desk.host.warnings == ["nothing is run in a workspace that is not trusted"]
    assert (desk.host.questions, desk.runs()) == ([], [])


async def test_losing_trust_ends_what_runs(desk: Desk) -> None:
    desk.use(FAMILY + HANG, str(desk.workspace), "stay")
    desk.measuring.saved(desk.source)
    await asyncio.to_thread(wait_for_file, desk.workspace / "grandchild")
    desk.use(NCU, is_trusted=False)
    assert (await desk.result()).is_cancelled


async def test_the_question_shows_the_very_command(desk: Desk) -> None:
    desk.use(NCU, "${output}", "two words", "\u202etxt.exe", build_command=("make", "-j4"))
    desk.host.answer = NEVER
    desk.measuring.saved(desk.source)
    await desk.until(lambda: bool(desk.host.questions))
    text, actions = desk.host.questions[0]
    assert actions == (RUN, ALWAYS, NEVER)
    assert f"in {desk.workspace}: make -j4 and then " in text
    assert "'${output}' 'two words' '\\u202etxt.exe'" in text


async def test_run_once_is_for_one_run(desk: Desk) -> None:
    for count in (1, 2):
        desk.measuring.saved(desk.source)
        await desk.result(count)
        assert len(desk.host.questions) == count
    desk.measuring.measure_now(desk.source)
    await desk.result(3)
    assert desk.host.wishes == [False, False, True]
    assert desk.allowance.list_entries() == ()


async def test_always_is_for_one_command(desk: Desk) -> None:
    desk.host.answer = ALWAYS
    for count in (1, 2):
        desk.measuring.saved(desk.source)
        await desk.result(count)
    assert len(desk.host.questions) == 1
    desk.use(NCU, "${output}", "other")
    desk.measuring.saved(desk.source)
    await desk.result(3)
    assert len(desk.host.questions) == 2


async def test_always_is_remembered_and_run_is_not(desk: Desk) -> None:
    desk.host.answer = ALWAYS
    desk.measuring.saved(desk.source)
    await desk.result()
    assert len(desk.allowance.list_entries()) == 1
    desk.measuring = desk.make_measuring()
    desk.use(NCU)
    desk.measuring.saved(desk.source)
    await desk.result(2)
    assert len(desk.host.questions) == 1


async def test_never_means_never_on_save(desk: Desk) -> None:
    desk.host.answer = NEVER
    desk.measuring.saved(desk.source)
    await desk.until(lambda: bool(desk.host.questions))
    desk.measuring.saved(desk.source)
    await desk.settle()
    assert (len(desk.host.questions), desk.runs(), desk.host.messages) == (1, [], [])
    desk.host.answer = RUN
    desk.measuring.measure_now(desk.source)
    await desk.result()
    assert len(desk.host.questions) == 2


async def test_without_an_answer_nothing_runs_and_the_way_out_is_said(desk: Desk) -> None:
    desk.host.answer = None
    desk.measuring.saved(desk.source)
    await desk.until(lambda: bool(desk.host.messages))
    assert desk.host.messages[0].startswith(
        f"nothing was run; the command is confirmed with: gpa-lsp serve allow --workspace {desk.workspace} -- "
    )
    desk.measuring.saved(desk.source)
    await desk.settle()
    assert (len(desk.host.questions), len(desk.host.messages), desk.runs()) == (1, 1, [])


async def test_a_command_too_long_to_be_read_is_not_asked_about(desk: Desk) -> None:
    desk.use(NCU, "x" * 5_000)
    desk.measuring.saved(desk.source)
    await desk.until(lambda: bool(desk.host.messages))
    assert desk.host.questions == []


async def test_saving_again_while_the_user_thinks(desk: Desk) -> None:
    desk.host.thinking = asyncio.Event()
    desk.measuring.saved(desk.workspace / "old.cu")
    await desk.until(lambda: bool(desk.host.questions))
    desk.measuring.saved(desk.workspace / "new.cu")
    await desk.settle()
    desk.host.thinking.set()
    await desk.result()
    await desk.settle()
    assert len(desk.host.questions) == 1
    assert desk.runs() == ["new.cu "]


async def test_cancelling_while_the_user_thinks(desk: Desk) -> None:
    desk.host.thinking = asyncio.Event()
    desk.measuring.saved(desk.source)
    await desk.until(lambda: bool(desk.host.questions))
    desk.measuring.cancel()
    desk.host.thinking.set()
    await desk.settle()
    assert desk.runs() == []


async def test_a_newer_save_takes_the_place_of_what_runs(desk: Desk) -> None:
    desk.use(f"import sys\nif sys.argv[2] == 'old.cu':\n    sys.argv[1:] = [{str(desk.workspace)!r}, 'stay']\n"
             + "".join(f"    {line}\n" for line in (FAMILY + HANG).splitlines()) + NCU)  # fmt: skip
    desk.measuring.saved(desk.workspace / "old.cu")
    await asyncio.to_thread(wait_for_file, desk.workspace / "grandchild")
    desk.measuring.saved(desk.workspace / "new.cu")
    assert desk.host.bars[0].ends == ["cancelled"]
    assert (await desk.result(1)).is_cancelled
    assert (await desk.result(2)).is_success
    assert desk.runs() == ["new.cu "]


async def test_cancelling_from_the_progress_bar(desk: Desk) -> None:
    desk.use(FAMILY + HANG, str(desk.workspace), "stay")
    desk.measuring.saved(desk.source)
    await asyncio.to_thread(wait_for_file, desk.workspace / "grandchild")
    assert desk.measuring.is_running
    desk.host.cancel()
    assert desk.host.bars[0].ends == ["cancelled"]
    result = await desk.result()
    assert result.is_cancelled
    assert find_marked(desk.mark).keys() <= {os.getpid()}
    assert desk.host.bars[0].ends == ["cancelled"]
    assert desk.host.warnings == []
    assert not desk.measuring.is_running
    desk.host.cancel()


async def test_cancelling_during_the_pause(desk: Desk) -> None:
    desk.measuring.saved(desk.source)
    desk.measuring.cancel()
    await desk.settle()
    assert desk.host.questions == []


@pytest.mark.parametrize("moment", ["pause", "question", "run"])
async def test_leaving_ends_everything(desk: Desk, moment: str) -> None:
    desk.use(FAMILY + HANG, str(desk.workspace), "stay", debounce_s=0.05)
    if moment == "question":
        desk.host.thinking = asyncio.Event()
    desk.measuring.saved(desk.source)
    if moment == "question":
        await desk.until(lambda: bool(desk.host.questions))
    if moment == "run":
        await asyncio.to_thread(wait_for_file, desk.workspace / "grandchild")
    await desk.measuring.leave()
    await desk.until_gone()
    desk.measuring.saved(desk.source)
    await desk.settle()
    assert desk.host.results == []


async def test_the_same_failure_is_told_once(desk: Desk) -> None:
    desk.use("print('==ERROR== ERR_NVGPUCTRPERM - The user')\nraise SystemExit(1)")
    for count in (1, 2):
        desk.measuring.saved(desk.source)
        await desk.result(count)
    assert len(desk.host.warnings) == 1
    assert "only administrators" in desk.host.warnings[0]
    assert any("NVreg_RestrictProfilingToAdminUsers=0" in line for line in desk.host.logs)
    desk.measuring.measure_now(desk.source)
    await desk.result(3)
    assert len(desk.host.warnings) == 2


async def test_a_build_that_fails_is_told(desk: Desk) -> None:
    desk.use(NCU, build_command=("/bin/sh", "-c", "echo 'saxpy.cu(3): error'; exit 2"))
    desk.measuring.saved(desk.source)
    result = await desk.result()
    assert result.phase is Phase.BUILD
    assert desk.host.warnings == ["measuring failed: building failed with status 2; its output says more"]
    assert "saxpy.cu(3): error" in desk.host.logs


async def test_a_command_that_cannot_be_filled_in_is_told(desk: Desk) -> None:
    desk.use(NCU, "${flie}")
    desk.measuring.measure_now(desk.source)
    await desk.until(lambda: bool(desk.host.warnings))
    assert desk.host.warnings[0].startswith("the command cannot be run: ${flie} is not a variable")


async def test_time_is_limited(desk: Desk) -> None:
    desk.use(HANG.replace("time", "__import__('time')"), profile_timeout_s=0.5)
    desk.measuring.saved(desk.source)
    result = await desk.result()
    assert result.explanation is not None
    assert result.explanation.name == "timed-out"
    assert desk.host.warnings[0].startswith("measuring failed: the command was ended after 0.5 s")


async def test_the_folder_a_command_runs_in_is_the_innermost_one(desk: Desk, tmp_path: Path) -> None:
    inner = desk.workspace / "inner"
    inner.mkdir()
    program = write_program(tmp_path / "ncu", NCU)
    options = Settings(profile_command=(program, "${output}", "${workspaceFolder}"), debounce_s=0.0)
    desk.measuring.configure(options, [tmp_path / "elsewhere", desk.workspace, inner], is_trusted=True)
    desk.measuring.saved(inner / "a.cu")
    await desk.result()
    assert (inner / "runs").read_text() == f"{inner}\n"


async def test_without_a_folder_nothing_runs(desk: Desk) -> None:
    program = write_program(desk.workspace.parent / "ncu", NCU)
    desk.measuring.configure(Settings(profile_command=(program,), debounce_s=0.0), [], is_trusted=True)
    desk.measuring.saved(desk.source)
    await desk.until(lambda: bool(desk.host.warnings))
    assert "without a workspace folder" in desk.host.warnings[0]


async def test_a_confirmation_that_cannot_be_stored_holds_for_now(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "data").write_text("in the way")
    desk.host.answer = ALWAYS
    desk.measuring.saved(desk.source)
    assert (await desk.result()).is_success
    assert desk.host.warnings[0].startswith("the confirmation holds only until the editor is closed: ")
