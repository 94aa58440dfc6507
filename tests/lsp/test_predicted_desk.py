"""When sources are emulated: after they were compiled, and when descriptions are saved, edited or written by others; the latest texts count."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import pytest_asyncio
from msgspec.structs import replace

from gpa_lsp.editor.predicted.results import (
    PredictedJob,
    PredictedResult,
    TemplateJob,
    TemplateResult,
    TrialsJob,
    TrialsResult,
)
from gpa_lsp.editor.predicted.trials import choose_machine
from gpa_lsp.editor.protocol import emulation_schedule
from gpa_lsp.editor.protocol.emulation_schedule import EmulationProcess, EmulationSchedule
from gpa_lsp.editor.protocol.loader import ProgressDisplay
from gpa_lsp.editor.settings import Settings
from gpa_lsp.foundation.errors import ToolError
from gpa_lsp.foundation.processes.python_children import Step
from tests.editor.predictions import LAUNCH, TRIAL
from tests.lsp.loop_waiting import settle, wait_until


class Process(EmulationProcess):
    """Remembers jobs and answers when it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.jobs: list[PredictedJob] = []
        self.trials: list[TrialsJob] = []
        self.cancelled: list[str] = []
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        self.error: Exception | None = None
        self.has_left = False

    async def predict(self, job: PredictedJob, tell: Callable[[Step], object] | None = None) -> PredictedResult:
        self.jobs.append(job)
        if tell is not None:
            tell(Step(words="emulating scale", done=1, total=2))
        try:
            await self.may_answer.wait()
        except asyncio.CancelledError:
            self.cancelled.append(job.text)
            raise
        if self.error is not None:
            raise self.error
        return PredictedResult(job=job, launches=(LAUNCH,))

    async def find_trials(self, job: TrialsJob) -> TrialsResult:
        self.trials.append(job)
        return TrialsResult(job=job.base, trials=(TRIAL,))

    async def write_template(self, job: TemplateJob) -> TemplateResult:
        return TemplateResult(text=f"# of {job.kernel}\n")

    async def leave(self) -> None:
        self.has_left = True


class Bar(ProgressDisplay):
    def __init__(self, title: str) -> None:
        self.title = title
        self.reports: list[tuple[str, float | None]] = []
        self.has_ended = False

    def report(self, text: str, ratio: float | None) -> None:
        self.reports.append((text, ratio))

    def end(self, text: str) -> None:
        self.has_ended = True


class Host:
    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self.results: list[PredictedResult] = []
        self.trials: list[TrialsResult] = []
        self.bars: list[Bar] = []
        self.cancels: list[Callable[[], None]] = []

    def read_open(self, local_path: str) -> str | None:
        return self.texts.get(local_path)

    def take_predicted(self, result: PredictedResult) -> None:
        self.results.append(result)

    def take_trials(self, result: TrialsResult) -> None:
        self.trials.append(result)

    def start_progress(self, title: str, cancel: Callable[[], None]) -> ProgressDisplay:
        self.bars.append(Bar(title))
        self.cancels.append(cancel)
        return self.bars[-1]


class Setting:
    """A desk over a folder with a described source, which was emulated once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.description = folder / "k.launch.toml"
        self.description.write_text("first")
        self.host, self.process = Host(), Process()
        self.desk = EmulationSchedule(self.host, self.process)
        self.settings = Settings(compiles_sources=False, poll_seconds=60.0)
        self.path = self.edit("one")
        self.configure()

    def configure(self, *, is_trusted: bool = True, **changes: object) -> None:
        self.settings = replace(self.settings, **changes)  # type: ignore[arg-type]
        self.desk.configure(self.settings, (self.folder,), tuple(self.host.texts), is_trusted=is_trusted)

    def edit(self, text: str, name: str = "k.cu") -> str:
        path = str(self.folder / name)
        self.host.texts[path] = text
        return path

    def compile(self, *, has_failed: bool = False) -> None:
        self.desk.compiled(self.path, self.host.texts[self.path], has_failed=has_failed)

    @property
    def told(self) -> list[tuple[str, str]]:
        return [(result.job.text, result.job.launches_text) for result in self.host.results]


@pytest_asyncio.fixture
async def setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Setting]:
    monkeypatch.setattr(emulation_schedule, "_PAUSE_S", 0.02)
    monkeypatch.setattr(emulation_schedule, "_PATIENCE_S", 0.01)
    made = Setting(tmp_path.resolve())
    await wait_until(lambda: made.told == [("one", "first")] and len(made.host.trials) == 1)
    yield made
    made.process.may_answer.set()
    await made.desk.leave()


async def test_a_compiled_source_is_emulated_with_its_description_and_then_explored(setting: Setting) -> None:
    setting.edit("two")
    setting.compile()
    await wait_until(lambda: setting.told[1:] == [("two", "first")])
    job = setting.process.jobs[-1]
    assert (job.path, job.roots, job.launches_path) == (Path(setting.path), (setting.folder,), setting.description)
    await wait_until(lambda: [one.base.text for one in setting.process.trials] == ["one", "two"])


async def test_what_was_emulated_is_not_emulated_again_and_errors_are_waited_out(setting: Setting) -> None:
    setting.compile()
    setting.edit("broken")
    setting.compile(has_failed=True)
    await settle()
    assert len(setting.process.jobs) == 1
    setting.configure(emulation_machine="V100")
    await wait_until(lambda: [job.machine for job in setting.process.jobs] == [None, "V100"])


async def test_what_was_compiled_is_emulated_and_not_what_is_being_typed(setting: Setting) -> None:
    setting.edit("two")
    setting.compile()
    setting.edit("two and a h")
    await wait_until(lambda: setting.told[1:] == [("two", "first")])
    description = str(setting.description)
    setting.host.texts[description] = "second"
    setting.desk.changed(description)
    await wait_until(lambda: setting.told[2:] == [("two", "second")])


async def test_the_compiler_is_waited_for_but_not_for_ever(setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    setting.edit("two")
    setting.configure(compiles_sources=True)
    await settle()
    assert len(setting.process.jobs) == 1
    setting.compile()
    await wait_until(lambda: len(setting.process.jobs) == 2)
    monkeypatch.setattr(emulation_schedule, "_WAIT_S", 0.01)
    setting.edit("three")
    setting.desk.opened(setting.path)
    await wait_until(lambda: setting.told[-1] == ("three", "first"))


async def test_a_description_counts_as_the_editor_holds_it_after_a_pause(setting: Setting) -> None:
    description = str(setting.description)
    for text in ("second", "seco", "unsaved"):
        setting.host.texts[description] = text
        setting.desk.changed(description)
    await wait_until(lambda: setting.told[1:] == [("one", "unsaved")])
    del setting.host.texts[description]
    setting.desk.closed(description)
    await wait_until(lambda: setting.told[2:] == [("one", "first")])


async def test_a_description_that_somebody_else_writes_is_seen(setting: Setting) -> None:
    setting.desk._settings = replace(setting.settings, poll_seconds=0.01)
    polling = setting.desk._polling
    assert polling is not None
    polling.cancel()
    await asyncio.sleep(0)
    setting.desk.opened(setting.path)
    setting.description.write_text("second text")
    await wait_until(lambda: setting.told[-1] == ("one", "second text"))
    setting.description.unlink()
    await wait_until(lambda: setting.told[-1] == ("one", ""))
    assert [job.launches_text for job in setting.process.jobs] == ["first", "second text"], "nothing is run for none"


async def test_work_on_texts_that_are_out_of_date_is_given_up(setting: Setting) -> None:
    setting.process.may_answer.clear()
    setting.edit("slow")
    setting.compile()
    await wait_until(lambda: len(setting.process.jobs) == 2)
    setting.compile()  # the same text: no reason to begin again
    await settle()
    assert setting.process.cancelled == []
    setting.edit("latest")
    setting.compile()
    await wait_until(lambda: setting.process.cancelled == ["slow"])
    setting.process.may_answer.set()
    await wait_until(lambda: setting.told == [("one", "first"), ("latest", "first")])


async def test_without_trust_nothing_runs_and_what_runs_ends(setting: Setting) -> None:
    setting.process.may_answer.clear()
    setting.edit("two")
    setting.compile()
    await wait_until(lambda: len(setting.process.jobs) == 2)
    setting.configure(is_trusted=False)
    await wait_until(lambda: setting.process.cancelled == ["two"])
    setting.process.may_answer.set()
    setting.desk.opened(setting.path)
    setting.compile()
    setting.desk.changed(str(setting.description))
    assert await setting.desk.write_template(setting.path, "k") is None
    await settle()
    assert len(setting.told) == 1 and len(setting.process.jobs) == 2
    setting.configure(is_trusted=True)
    await wait_until(lambda: setting.told[1:] == [("two", "first")])


async def test_only_described_sources_below_the_workspace_are_emulated(setting: Setting) -> None:
    for path in (setting.edit("x", "k.cuh"), setting.edit("x", "k.py"), "/made/up/k.cu"):
        setting.host.texts[path] = "x"
        setting.desk.opened(path)
        setting.desk.compiled(path, "x", has_failed=False)
    other = setting.edit("x", "other.cu")
    setting.desk.opened(other)
    await wait_until(lambda: setting.told[1:] == [("x", "")])
    assert len(setting.process.jobs) == 1
    found = await setting.desk.write_template(other, "_Z1kv")
    assert found is not None and found[1].text == "# of _Z1kv\n"
    assert found[0].launches_path == setting.folder / "other.launch.toml"


async def test_the_settings_turn_it_off_and_bound_it(setting: Setting) -> None:
    setting.configure(emulation_s=1.5, emulation_memory_bytes=64 << 20, exploration_s=0.0)
    await wait_until(lambda: len(setting.told) == 2)
    job = setting.process.jobs[-1]
    assert (job.seconds, job.memory_bytes) == (1.5, 64 << 20)
    setting.configure(emulates=False)
    setting.edit("two")
    setting.desk.opened(setting.path)
    await settle()
    assert len(setting.told) == 2 and len(setting.process.trials) == 1


async def test_reports_of_another_gpu_are_predicted_for(setting: Setting) -> None:
    assert setting.process.jobs[-1].measured_on is None
    setting.desk.take_gpu("NVIDIA GeForce RTX 5090")
    await wait_until(lambda: len(setting.process.jobs) == 2)
    setting.desk.take_gpu("NVIDIA GeForce RTX 5090")
    await settle()
    (_, job) = setting.process.jobs
    assert job.measured_on == "NVIDIA GeForce RTX 5090"
    assert choose_machine(job) == "RTX 5090"
    assert choose_machine(replace(job, machine="A100")) == "A100"
    assert choose_machine(replace(job, architecture=(8, 0))) is None
    assert choose_machine(replace(job, measured_on="a GPU of tomorrow")) is None


async def test_other_blocks_are_looked_for_though_the_same_was_asked_for_meanwhile(setting: Setting) -> None:
    setting.process.may_answer.clear()
    setting.edit("two")
    setting.compile()
    await wait_until(lambda: len(setting.process.jobs) == 2)
    setting.desk.take_gpu("a GPU of tomorrow")
    setting.compile()
    setting.desk.take_gpu(None)
    setting.process.may_answer.set()
    await wait_until(lambda: setting.process.trials[-1].base == setting.process.jobs[-1])
    assert setting.process.jobs[-1].text == "two" and setting.process.jobs[-1].measured_on == "a GPU of tomorrow"


async def test_a_closed_file_is_not_told_of(setting: Setting) -> None:
    setting.process.may_answer.clear()
    setting.edit("two")
    setting.compile()
    await wait_until(lambda: len(setting.process.jobs) == 2)
    del setting.host.texts[setting.path]
    setting.desk.closed(setting.path)
    await wait_until(lambda: setting.process.cancelled == ["two"])
    setting.process.may_answer.set()
    await settle()
    assert len(setting.told) == 1


async def test_a_process_that_dies_costs_one_answer(setting: Setting) -> None:
    setting.process.error = ToolError("prediction process", "ended")
    setting.edit("two")
    setting.compile()
    await wait_until(lambda: len(setting.process.jobs) == 2)
    await settle()
    setting.process.error = None
    setting.compile()
    await wait_until(lambda: setting.told[1:] == [("two", "first")])


async def test_a_bar_comes_for_long_work_and_cancels_it(setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    assert setting.host.bars == [], "quick work has none"
    monkeypatch.setattr("gpa_lsp.editor.protocol.late_progress._MOMENT_S", 0.01)
    setting.process.may_answer.clear()
    setting.edit("slow")
    setting.compile()
    await wait_until(lambda: bool(setting.host.bars and setting.host.bars[0].reports))
    (bar,) = setting.host.bars
    words, ratio = bar.reports[0]
    assert bar.title == "Emulating k.cu" and words.startswith("emulating scale, ") and ratio == 0.5
    setting.host.cancels[0]()
    await wait_until(lambda: bar.has_ended and setting.process.cancelled == ["slow"])
    assert len(setting.told) == 1


async def test_leaving_ends_the_process(setting: Setting) -> None:
    await setting.desk.leave()
    assert setting.process.has_left
    setting.edit("two")
    setting.compile()
    await settle()
    assert len(setting.process.jobs) == 1
