"""When sources are compiled: on opening and saving, after a pause while editing, never without trust; the latest text counts."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from msgspec.structs import replace

from gpa_lsp.editor.protocol import unmeasured_sources as compile_schedule
from gpa_lsp.editor.protocol.unmeasured_sources import CompileSchedule, StaticProcess
from gpa_lsp.editor.settings import Settings
from gpa_lsp.editor.static.results import StaticJob, StaticResult
from gpa_lsp.foundation.errors import ToolError
from tests.lsp.loop_waiting import settle, wait_until


class Process(StaticProcess):
    """Remembers jobs and answers when it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.jobs: list[StaticJob] = []
        self.cancelled: list[str] = []
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        self.error: Exception | None = None
        self.has_left = False

    async def examine(self, job: StaticJob) -> StaticResult:
        self.jobs.append(job)
        try:
            await self.may_answer.wait()
        except asyncio.CancelledError:
            self.cancelled.append(job.text)
            raise
        if self.error is not None:
            raise self.error
        return StaticResult(path=job.path, text=job.text)

    async def leave(self) -> None:
        self.has_left = True


class Host:
    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self.results: list[StaticResult] = []

    def read_open(self, local_path: str) -> str | None:
        return self.texts.get(local_path)

    def take_static(self, result: StaticResult) -> None:
        self.results.append(result)


class Setting:
    """A desk over a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.host, self.process = Host(), Process()
        self.desk = CompileSchedule(self.host, self.process)
        self.settings = Settings()
        self.path = self.edit("one")
        self.configure()

    def configure(self, *, is_trusted: bool = True, **changes: object) -> None:
        self.settings = replace(self.settings, **changes)  # type: ignore[arg-type]
        self.desk.configure(self.settings, (self.folder,), tuple(self.host.texts), is_trusted=is_trusted)

    def edit(self, text: str, name: str = "k.cu") -> str:
        path = str(self.folder / name)
        self.host.texts[path] = text
        return path

    @property
    def told(self) -> list[str]:
        return [result.text for result in self.host.results]


@pytest_asyncio.fixture
async def setting(tmp_path: Path) -> AsyncIterator[Setting]:
    made = Setting(tmp_path.resolve())
    await wait_until(lambda: made.told == ["one"])
    yield made
    made.process.may_answer.set()
    await made.desk.leave()


async def test_opening_and_saving_compile_what_the_editor_holds(setting: Setting) -> None:
    setting.edit("two")
    setting.desk.opened(setting.path)
    await wait_until(lambda: setting.told == ["one", "two"])
    job = setting.process.jobs[-1]
    assert (job.path, job.roots, job.architecture) == (Path(setting.path), (setting.folder,), None)


async def test_a_text_that_was_compiled_is_not_compiled_again(setting: Setting) -> None:
    setting.desk.opened(setting.path)
    await settle()
    assert len(setting.process.jobs) == 1
    setting.configure(static_architecture=(9, 0))
    await wait_until(lambda: len(setting.process.jobs) == 2)
    assert setting.process.jobs[-1].architecture == (9, 0)


async def test_the_latest_text_counts(setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is being compiled may end within some time; after that it is given up."""
    monkeypatch.setattr(compile_schedule, "_PATIENCE_S", 0.01)
    setting.process.may_answer.clear()
    setting.edit("slow")
    setting.desk.opened(setting.path)
    await wait_until(lambda: len(setting.process.jobs) == 2)
    setting.edit("latest")
    setting.desk.opened(setting.path)
    await wait_until(lambda: setting.process.cancelled == ["slow"])
    setting.process.may_answer.set()
    await wait_until(lambda: setting.told == ["one", "latest"])


async def test_a_job_that_ends_in_time_is_not_cancelled(setting: Setting) -> None:
    setting.process.may_answer.clear()
    setting.edit("quick")
    setting.desk.opened(setting.path)
    await wait_until(lambda: len(setting.process.jobs) == 2)
    setting.edit("latest")
    setting.desk.opened(setting.path)
    setting.process.may_answer.set()
    await wait_until(lambda: setting.told == ["one", "quick", "latest"])
    assert setting.process.cancelled == []


async def test_without_trust_nothing_runs_and_what_runs_ends(setting: Setting) -> None:
    setting.process.may_answer.clear()
    setting.edit("two")
    setting.desk.opened(setting.path)
    await wait_until(lambda: len(setting.process.jobs) == 2)
    setting.configure(is_trusted=False)
    await wait_until(lambda: setting.process.cancelled == ["two"])
    setting.process.may_answer.set()
    setting.desk.opened(setting.path)
    await settle()
    assert setting.told == ["one"] and len(setting.process.jobs) == 2
    setting.configure(is_trusted=True)
    await wait_until(lambda: setting.told == ["one", "two"])


async def test_only_sources_below_the_workspace_are_compiled(setting: Setting, tmp_path: Path) -> None:
    for name in ("k.cuh", "k.cpp", "k.py"):
        setting.desk.opened(setting.edit("x", name))
    elsewhere = "/made/up/k.cu"
    setting.host.texts[elsewhere] = "x"
    setting.desk.opened(elsewhere)
    await settle()
    assert len(setting.process.jobs) == 1


async def test_the_setting_turns_it_off(setting: Setting) -> None:
    setting.configure(compiles_sources=False)
    setting.edit("two")
    setting.desk.opened(setting.path)
    await settle()
    assert setting.told == ["one"]


async def test_a_closed_file_is_not_told_of(setting: Setting) -> None:
    setting.process.may_answer.clear()
    setting.edit("two")
    setting.desk.opened(setting.path)
    await wait_until(lambda: len(setting.process.jobs) == 2)
    setting.desk.closed(setting.path)
    del setting.host.texts[setting.path]
    await wait_until(lambda: setting.process.cancelled == ["two"])
    setting.process.may_answer.set()
    await settle()
    assert setting.told == ["one"]


async def test_a_process_that_dies_costs_one_answer(setting: Setting) -> None:
    setting.process.error = ToolError("static analysis process", "ended")
    setting.edit("two")
    setting.desk.opened(setting.path)
    await wait_until(lambda: len(setting.process.jobs) == 2)
    await settle()
    setting.process.error = None
    setting.desk.opened(setting.path)
    await wait_until(lambda: setting.told == ["one", "two"])


async def test_leaving_ends_the_process(setting: Setting) -> None:
    await setting.desk.leave()
    assert setting.process.has_left
    setting.edit("two")
    setting.desk.opened(setting.path)
    await settle()
    assert setting.told == ["one"]
