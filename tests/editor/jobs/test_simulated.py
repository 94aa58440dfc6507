"""Simulation of launches: on save while that is quick, when asked for always, and never for texts that are out of date."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import pytest_asyncio

from gpa_lsp.editor.jobs import background_job
from gpa_lsp.editor.jobs.predicted import Predictions
from gpa_lsp.editor.jobs.simulated import Simulations
from gpa_lsp.editor.predicted.results import SimulationResult
from gpa_lsp.editor.settings import Settings
from tests.editor.jobs.workshop import Process, Workshop
from tests.editor.views import make_profile, make_snapshot
from tests.lsp.loop_waiting import settle, wait_until
from tests.report_builder import build_kernel


class Simulating(Workshop):
    """A described source, and what its person heard."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.seconds = 0.5
        self.process = Process(self._answer)
        self.describe("[[launch]]")
        self.predictions = Predictions(self.site, Process(lambda job: None))
        self.job = Simulations(self.site, self.predictions, self.process)
        self.configure(self.predictions, self.job)

    def _answer(self, job: object) -> SimulationResult:
        words = ("k: 8 cycles",)
        return SimulationResult(job=job, words=words, kernels=("k",), seconds=self.seconds)  # type: ignore[arg-type]

    def describe(self, text: str) -> None:
        (self.folder / "k.launch.toml").write_text(text)

    def set(self, *, is_trusted: bool = True, **changes: object) -> None:
        self.configure(self.predictions, self.job, is_trusted=is_trusted, **changes)

    @property
    def texts(self) -> list[str]:
        return [one.base.text for one in self.process.asked]

    async def save(self, text: str = "") -> None:
        if text:
            self.edit(text)
        self.job.saved(self.path)
        await settle()


@pytest_asyncio.fixture
async def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Simulating]:
    monkeypatch.setattr(background_job, "_PATIENCE_S", 0.01)
    made = Simulating(tmp_path.resolve())
    yield made
    await made.job.leave()
    await made.predictions.leave()


async def test_a_save_simulates_each_text_once(shop: Simulating) -> None:
    for text in ("one", "one", "two"):
        await shop.save(text)
    assert shop.texts == ["one", "two"] and shop.said == [], "nobody asked"
    assert shop.included == [shop.process.asked[0].target] * 2
    assert shop.process.asked[0].seconds == shop.process.asked[0].total_seconds == Settings().simulation_s
    assert await shop.job.simulate(shop.path, None)
    await settle()
    assert shop.process.asked[-1].total_seconds is None and shop.said == ["simulated k: 8 cycles"]


async def test_what_took_long_is_tried_less_and_less_often_and_each_save_says_so(shop: Simulating) -> None:
    shop.seconds = 3.0
    for number in range(12):
        await shop.save(str(number))
        words = shop.documents.find_findings(shop.path).unsimulated
        assert words == (None if number in (0, 2, 5, 10) else "not simulated on save: it took 3 s; click to simulate")
    assert shop.texts == ["0", "2", "5", "10"]
    shop.seconds = 0.5
    for text in ("quick", "again", *"abcdefgh"):
        await shop.save(text)
    assert shop.texts[-2:] == ["g", "h"]


async def test_what_took_long_waits_until_somebody_asks_or_it_is_described_anew(shop: Simulating) -> None:
    shop.seconds = 3.0
    await shop.save("a")
    await shop.save("b")
    assert shop.texts == ["a"]
    await shop.job.simulate(shop.path, "k")
    await settle()
    assert [one.kernel for one in shop.process.asked] == [None, "k"]
    assert shop.process.asked[1].seconds > Settings().simulation_s
    shop.describe("[[launch]] # smaller")
    await shop.save()
    assert shop.texts == ["a", "b", "b"]
    shop.set(simulation_s=5.0)
    await shop.save("c")
    assert shop.texts[-1] == "c"


async def test_the_next_save_cancels_what_goes_on_unless_nothing_has_changed(shop: Simulating) -> None:
    shop.process.may_answer.clear()
    await shop.job.simulate(shop.path, "k")
    await shop.save()
    await asyncio.sleep(0.05)
    assert shop.process.cancelled == []
    await shop.save("two")
    await wait_until(lambda: shop.process.cancelled != [])
    shop.process.may_answer.set()
    await wait_until(lambda: shop.included != [])
    assert shop.texts == ["one", "two"] and shop.said == ["not simulated: it was cancelled"]


def measure(shop: Simulating) -> None:
    kernel = build_kernel("    k.cu:3    EXIT    ; selected=1", name="k()")
    profile = make_profile(kernel, texts={"k.cu": "one"}, folder=str(shop.folder))
    shop.snapshot = make_snapshot(profile)


@pytest.mark.parametrize(
    "change",
    [
        lambda shop: shop.set(simulates_on_save=False),
        lambda shop: shop.describe(""),
        measure,
        lambda shop: shop.documents.close(shop.path),
        lambda shop: shop.set(emulates=False),
    ],
    ids=["switched off", "not described", "measured", "not open", "not to be emulated"],
)
async def test_a_save_that_simulates_nothing(shop: Simulating, change: Callable[[Simulating], None]) -> None:
    change(shop)
    await shop.save()
    assert shop.process.asked == []


async def test_losing_trust_ends_what_goes_on(shop: Simulating) -> None:
    shop.process.may_answer.clear()
    await shop.save()
    shop.set(is_trusted=False)
    await wait_until(lambda: shop.process.cancelled != [])
    assert shop.included == [] and shop.excluded[-1] is None
