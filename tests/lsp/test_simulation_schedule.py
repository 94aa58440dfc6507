"""When launches are simulated: on save while that is quick, when asked for always, and never for texts that are out of date."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import pytest_asyncio
from msgspec.structs import replace

from gpa_lsp.editor.predicted.results import PredictedJob
from gpa_lsp.editor.protocol import simulations
from gpa_lsp.editor.protocol.simulations import SimulationProcess, SimulationSchedule
from gpa_lsp.editor.settings import Settings
from gpa_lsp.editor.simulated.results import SimulationJob, SimulationResult
from gpa_lsp.foundation.processes.python_children import Step
from tests.lsp.loop_waiting import settle, wait_until

PATH = "/p/k.cu"


class Process(SimulationProcess):
    """Remembers jobs and answers when it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.jobs: list[SimulationJob] = []
        self.cancelled: list[SimulationJob] = []
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        self.seconds = 0.5

    async def simulate(self, job: SimulationJob, tell: Callable[[Step], object] | None = None) -> SimulationResult:
        self.jobs.append(job)
        try:
            await self.may_answer.wait()
        except asyncio.CancelledError:
            self.cancelled.append(job)
            raise
        return SimulationResult(job=job, words=("k: 8 cycles",), kernels=("k",), seconds=self.seconds)

    async def leave(self) -> None: ...


class Bar:
    def report(self, text: str, ratio: float | None) -> None: ...

    def end(self, text: str) -> None: ...


class Setting:
    """A workspace with one open source, and what its audience heard."""

    def __init__(self) -> None:
        self.process = Process()
        self.job: PredictedJob | None = PredictedJob(
            path=Path(PATH), text="a", launches_path=Path("/p/k.launch.toml"), launches_text="[[launch]]", roots=(),
            architecture=None, machine=None, limit_s=60, seconds=5, memory_bytes=1,
        )  # fmt: skip
        self.measured = False
        self.heard: list[tuple[SimulationResult, bool]] = []
        self.skipped: list[float] = []
        self.schedule = SimulationSchedule(self, self.process)
        self.configure()

    def configure(self, *, is_trusted: bool = True, **changes: object) -> None:
        self.schedule.configure(replace(Settings(), **changes), is_trusted=is_trusted)  # type: ignore[arg-type]

    def edit(self, text: str) -> None:
        assert self.job is not None
        self.job = replace(self.job, text=text)

    def describe(self, text: str) -> None:
        assert self.job is not None
        self.job = replace(self.job, launches_text=text)

    @property
    def texts(self) -> list[str]:
        return [one.base.text for one in self.process.jobs]

    async def make_job(self, local_path: str) -> PredictedJob | None:
        return self.job

    def choose_target(self, local_path: str, kernel: str | None) -> Path:
        return Path("/tmp") / f"{kernel}.json"

    def is_measured(self, local_path: str) -> bool:
        return self.measured

    def take_simulated(self, result: SimulationResult, *, is_asked: bool) -> None:
        self.heard.append((result, is_asked))

    def take_skipped(self, local_path: str, seconds: float) -> None:
        self.skipped.append(seconds)

    def start_progress(self, title: str, cancel: Callable[[], None]) -> Bar:
        return Bar()


@pytest_asyncio.fixture
async def setting(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Setting]:
    monkeypatch.setattr(simulations, "_PATIENCE_S", 0.01)
    made = Setting()
    yield made
    await made.schedule.leave()


async def save(setting: Setting) -> None:
    setting.schedule.saved(PATH)
    await settle()


async def test_a_save_simulates_each_text_once(setting: Setting) -> None:
    await save(setting)
    await save(setting)
    setting.edit("b")
    await save(setting)
    assert setting.texts == ["a", "b"]
    assert [(one.job.kernel, is_asked) for one, is_asked in setting.heard] == [(None, False), (None, False)]
    assert setting.process.jobs[0].seconds == setting.process.jobs[0].total_seconds == Settings().simulation_s
    setting.schedule.simulate_now(PATH, None)
    await settle()
    assert setting.process.jobs[-1].total_seconds is None


async def test_what_took_long_is_tried_less_and_less_often_and_each_save_says_so(setting: Setting) -> None:
    setting.process.seconds = 3.0
    texts = [str(number) for number in range(12)]
    for text in texts:
        setting.edit(text)
        await save(setting)
    assert setting.texts == ["0", "2", "5", "10"]
    assert setting.skipped == [3.0] * 8
    setting.process.seconds = 0.5
    for text in ("quick", "again", *"abcdefgh"):
        setting.edit(text)
        await save(setting)
    assert setting.texts[-2:] == ["g", "h"]


async def test_what_took_long_waits_until_somebody_asks_or_it_is_described_anew(setting: Setting) -> None:
    setting.process.seconds = 3.0
    await save(setting)
    setting.edit("b")
    await save(setting)
    assert setting.texts == ["a"]
    assert setting.skipped == [3.0]
    setting.schedule.simulate_now(PATH, "k")
    await settle()
    assert [(one.job.kernel, is_asked) for one, is_asked in setting.heard[1:]] == [("k", True)]
    assert setting.process.jobs[1].seconds > Settings().simulation_s
    setting.describe("[[launch]] # smaller")
    await save(setting)
    assert setting.texts == ["a", "b", "b"]
    setting.configure(simulation_s=5.0)
    setting.edit("c")
    await save(setting)
    assert setting.texts[-1] == "c"


async def test_the_next_save_cancels_what_goes_on(setting: Setting) -> None:
    setting.process.may_answer.clear()
    await save(setting)
    setting.edit("b")
    await save(setting)
    await wait_until(lambda: setting.process.cancelled != [])
    setting.process.may_answer.set()
    await wait_until(lambda: setting.heard != [])
    assert [one.job.base.text for one, _ in setting.heard] == ["b"]


async def test_a_save_of_the_same_text_cancels_nothing(setting: Setting) -> None:
    setting.process.may_answer.clear()
    setting.schedule.simulate_now(PATH, "k")
    await settle()
    await save(setting)
    await asyncio.sleep(0.05)
    assert setting.process.cancelled == []


@pytest.mark.parametrize(
    "change",
    [
        lambda setting: setting.configure(simulates_on_save=False),
        lambda setting: setting.describe(""),
        lambda setting: setattr(setting, "measured", True),
        lambda setting: setattr(setting, "job", None),
    ],
    ids=["switched off", "not described", "measured", "not to be emulated"],
)
async def test_a_save_that_simulates_nothing(setting: Setting, change: Callable[[Setting], None]) -> None:
    change(setting)
    await save(setting)
    assert setting.process.jobs == []


async def test_losing_trust_ends_what_goes_on(setting: Setting) -> None:
    setting.process.may_answer.clear()
    await save(setting)
    setting.configure(is_trusted=False)
    await wait_until(lambda: setting.process.cancelled != [])
    assert setting.heard == []
