"""Emulation of sources: after they were compiled, and when descriptions are saved, edited or written by others; the latest texts count."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from msgspec.structs import replace

from gpa_lsp.editor.jobs import background_job, predicted
from gpa_lsp.editor.jobs.predicted import Predictions
from gpa_lsp.editor.predicted.results import PredictedJob, PredictedResult, TrialsJob, TrialsResult
from gpa_lsp.editor.predicted.trials import choose_machine
from gpa_lsp.editor.static.view import StaticResult
from tests.editor.jobs.workshop import Process, Workshop
from tests.editor.predictions import LAUNCH, TRIAL
from tests.lsp.loop_waiting import settle, wait_until


def answer(job: Any) -> Any:
    if isinstance(job, TrialsJob):
        return TrialsResult(job=job.base, trials=(TRIAL,))
    return PredictedResult(job=job, launches=(LAUNCH,))


class Emulating(Workshop):
    """A described source, which was emulated once."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.description = folder / "k.launch.toml"
        self.description.write_text("first")
        self.process = Process(answer)
        self.job = Predictions(self.site, self.process)
        self.configure(self.job, compiles_sources=False, poll_seconds=60.0)

    def compile(self, *, has_failed: bool = False) -> None:
        text = self.documents.read_open(self.path) or ""
        self.job.compiled(StaticResult(path=Path(self.path), text=text, has_failed=has_failed))

    async def begin(self, text: str) -> None:
        """Emulate a text that takes its time."""
        self.process.may_answer.clear()
        self.edit(text)
        self.compile()
        await wait_until(lambda: self.jobs[-1].text == text)

    def describe(self, text: str) -> str:
        return self.edit(text, "k.launch.toml")

    @property
    def jobs(self) -> list[PredictedJob]:
        return self.process.list_asked(PredictedJob)

    @property
    def shown(self) -> tuple[str, str] | None:
        """The texts of what is said of the source."""
        state = self.documents.find_findings(self.path).predicted
        return None if state is None else (state.result.job.text, state.result.job.launches_text)


@pytest_asyncio.fixture
async def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Emulating]:
    monkeypatch.setattr(predicted, "_PAUSE_S", 0.02)
    monkeypatch.setattr(background_job, "_PATIENCE_S", 0.01)
    made = Emulating(tmp_path.resolve())
    await wait_until(lambda: made.shown == ("one", "first") and len(made.process.asked) == 2)
    yield made
    made.process.may_answer.set()
    await made.job.leave()


async def test_a_compiled_source_is_emulated_with_its_description_and_then_explored(shop: Emulating) -> None:
    shop.edit("two")
    shop.compile()
    shop.edit("two and a h")
    await wait_until(lambda: shop.shown == ("two", "first"))
    await wait_until(lambda: [one.base.text for one in shop.process.list_asked(TrialsJob)] == ["one", "two"])
    job = shop.jobs[-1]
    assert (job.path, job.roots, job.launches_path) == (Path(shop.path), (shop.folder,), shop.description)
    state = shop.documents.find_findings(str(shop.description)).predicted
    assert state is not None and state.trials == (TRIAL,), "the description is told as well"
    shop.job.changed(shop.describe("second"))
    assert not [one for one in (shop.documents.find_findings(shop.path).predicted,) if one is None or one.trials]
    await wait_until(lambda: shop.shown == ("two", "second"))


async def test_errors_are_waited_out_and_conditions_begin_again(shop: Emulating) -> None:
    shop.compile()
    shop.edit("broken")
    shop.compile(has_failed=True)
    await settle()
    assert len(shop.jobs) == 1
    shop.configure(shop.job, emulation_machine="V100", emulation_s=1.5, emulation_memory_bytes=64 << 20)
    await wait_until(lambda: [job.machine for job in shop.jobs] == [None, "V100"])
    assert (shop.jobs[-1].seconds, shop.jobs[-1].memory_bytes) == (1.5, 64 << 20)


async def test_a_wrong_description_is_told_of_a_source_that_never_compiled(shop: Emulating) -> None:
    def fail(job: object) -> object:
        return answer(job) if not isinstance(job, PredictedJob) else PredictedResult(job=job, has_failed=True)

    shop.job.closed(shop.path)
    shop.process.answer = fail
    shop.edit("broken")
    shop.configure(shop.job, compiles_sources=True)
    shop.job.opened(shop.path)
    shop.compile(has_failed=True)
    await wait_until(lambda: shop.shown == ("broken", "first"))


async def test_the_compiler_is_waited_for_but_not_for_ever(shop: Emulating, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.edit("two")
    shop.configure(shop.job, compiles_sources=True)
    await settle()
    assert len(shop.jobs) == 1
    shop.compile()
    await wait_until(lambda: len(shop.jobs) == 2)
    monkeypatch.setattr(predicted, "_WAIT_S", 0.01)
    shop.edit("three")
    shop.job.opened(shop.path)
    await wait_until(lambda: shop.shown == ("three", "first"))


async def test_a_description_counts_as_the_editor_holds_it_after_a_pause(shop: Emulating) -> None:
    for text in ("second", "seco", "unsaved"):
        shop.job.changed(shop.describe(text))
    await wait_until(lambda: shop.shown == ("one", "unsaved"))
    assert len(shop.jobs) == 2
    shop.documents.close(str(shop.description))
    shop.job.closed(str(shop.description))
    await wait_until(lambda: shop.shown == ("one", "first"))


async def test_a_description_that_somebody_else_writes_is_seen(shop: Emulating) -> None:
    polling = shop.job._polling
    assert polling is not None
    polling.cancel()
    await asyncio.sleep(0)
    shop.configure(shop.job, poll_seconds=0.01)
    shop.job.opened(shop.path)
    shop.description.write_text("second text")
    await wait_until(lambda: shop.shown == ("one", "second text"))
    shop.description.unlink()
    await wait_until(lambda: shop.shown == ("one", ""))
    assert [job.launches_text for job in shop.jobs] == ["first", "second text"], "nothing is run for none"


async def test_other_blocks_are_looked_for_though_the_same_was_asked_for_meanwhile(shop: Emulating) -> None:
    await shop.begin("two")
    shop.job.take_gpu("a GPU of tomorrow")
    shop.compile()
    shop.job.take_gpu(None)
    shop.process.may_answer.set()
    await wait_until(lambda: shop.process.list_asked(TrialsJob)[-1].base == shop.jobs[-1])
    assert shop.jobs[-1].text == "two" and shop.jobs[-1].measured_on == "a GPU of tomorrow"


async def test_without_exploration_no_blocks_are_looked_for(shop: Emulating) -> None:
    shop.configure(shop.job, exploration_s=0.0)
    await wait_until(lambda: len(shop.jobs) == 2)
    await settle()
    assert len(shop.process.list_asked(TrialsJob)) == 1


async def test_reports_of_another_gpu_are_predicted_for(shop: Emulating) -> None:
    assert shop.jobs[-1].measured_on is None
    for _ in range(2):
        shop.job.take_gpu("NVIDIA GeForce RTX 5090")
        await wait_until(lambda: len(shop.jobs) == 2)
        await settle()
    (_, job) = shop.jobs
    assert job.measured_on == "NVIDIA GeForce RTX 5090"
    assert choose_machine(job) == "RTX 5090"
    assert choose_machine(replace(job, machine="A100")) == "A100"
    assert choose_machine(replace(job, architecture=(8, 0))) is None
    assert choose_machine(replace(job, measured_on="a GPU of tomorrow")) is None


async def test_a_closed_source_is_not_told_of(shop: Emulating) -> None:
    await shop.begin("two")
    shop.documents.close(shop.path)
    shop.job.closed(shop.path)
    await wait_until(lambda: [one.text for one in shop.process.cancelled] == ["two"])
    shop.process.may_answer.set()
    await settle()
    assert shop.shown is None


async def test_a_bar_comes_for_long_work_and_cancels_it(shop: Emulating, monkeypatch: pytest.MonkeyPatch) -> None:
    assert shop.bars == [], "quick work has none"
    monkeypatch.setattr(background_job, "_MOMENT_S", 0.01)
    await shop.begin("slow")
    await wait_until(lambda: bool(shop.bars and shop.bars[0].reports))
    (bar,) = shop.bars
    words, ratio = bar.reports[0]
    assert bar.title == "Emulating k.cu" and words.startswith("emulating scale, ") and ratio == 0.5
    bar.cancel()
    await wait_until(lambda: bar.has_ended and [one.text for one in shop.process.cancelled] == ["slow"])
    assert shop.shown == ("one", "first")
