"""Rules of all background jobs, shown on the one that compiles: the latest text counts, nothing runs without trust, and work ends."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import pytest_asyncio

from gpa_lsp.editor.jobs import background_job
from gpa_lsp.editor.jobs.static import StaticFindings
from gpa_lsp.editor.static.view import StaticResult
from gpa_lsp.foundation.errors import ToolError
from tests.editor.jobs.workshop import Process, Workshop
from tests.lsp.loop_waiting import settle, wait_until


class Compiling(Workshop):
    """A source that was compiled once."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.told: list[str] = []
        self.process = Process(lambda job: StaticResult(path=job.path, text=job.text))
        self.job = StaticFindings(self.site, lambda result: self.told.append(result.text), self.process)
        self.configure(self.job)

    async def begin(self, text: str) -> None:
        """Compile a text that takes its time."""
        self.process.may_answer.clear()
        self.edit(text)
        self.job.opened(self.path)
        await wait_until(lambda: self.process.asked[-1].text == text)


@pytest_asyncio.fixture
async def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Compiling]:
    monkeypatch.setattr(background_job, "_PATIENCE_S", 0.02)
    made = Compiling(tmp_path.resolve())
    await wait_until(lambda: made.told == ["one"])
    yield made
    made.process.may_answer.set()
    await made.job.leave()


async def test_what_the_editor_holds_is_worked_on_once_unless_conditions_change(shop: Compiling) -> None:
    shop.job.opened(shop.path)
    await settle()
    assert len(shop.process.asked) == 1
    shop.edit("two")
    shop.job.opened(shop.path)
    await wait_until(lambda: shop.told == ["one", "two"])
    job = shop.process.asked[-1]
    assert (job.path, job.roots, job.architecture) == (Path(shop.path), (shop.folder,), None)
    shop.configure(shop.job, static_architecture=(9, 0))
    await wait_until(lambda: [one.architecture for one in shop.process.asked] == [None, None, (9, 0)])


@pytest.mark.parametrize(("then", "cancelled"), [("latest", ["slow"]), ("slow", [])])
async def test_work_is_given_up_where_it_is_out_of_date(shop: Compiling, then: str, cancelled: list[str]) -> None:
    await shop.begin("slow")
    shop.edit(then)
    shop.job.opened(shop.path)
    await (wait_until(lambda: shop.process.cancelled != []) if cancelled else settle())
    assert [one.text for one in shop.process.cancelled] == cancelled
    shop.process.may_answer.set()
    await wait_until(lambda: shop.told == ["one", then])


async def test_work_that_ends_in_time_is_shown_though_it_is_out_of_date(shop: Compiling) -> None:
    await shop.begin("quick")
    shop.edit("latest")
    shop.job.opened(shop.path)
    shop.process.may_answer.set()
    await wait_until(lambda: shop.told == ["one", "quick", "latest"])
    assert shop.process.cancelled == []


async def test_without_trust_nothing_runs_and_what_runs_ends(shop: Compiling) -> None:
    await shop.begin("two")
    shop.configure(shop.job, is_trusted=False)
    await wait_until(lambda: shop.process.cancelled != [])
    assert shop.documents.find_findings(shop.path).statics is None, "what it said is taken back"
    shop.process.may_answer.set()
    shop.job.opened(shop.path)
    await settle()
    assert shop.told == ["one"] and len(shop.process.asked) == 2
    shop.configure(shop.job, is_trusted=True)
    await wait_until(lambda: shop.told == ["one", "two"])


@pytest.mark.parametrize("name", ["k.cuh", "k.cpp", "k.py", "/made/up/k.cu"])
async def test_only_sources_below_the_workspace_are_worked_on(shop: Compiling, name: str) -> None:
    shop.job.opened(shop.edit("x", name))
    await settle()
    assert len(shop.process.asked) == 1


def switch_off(shop: Compiling) -> None:
    shop.configure(shop.job, compiles_sources=False)


def close(shop: Compiling) -> None:
    shop.documents.close(shop.path)
    shop.job.closed(shop.path)


@pytest.mark.parametrize("end", [switch_off, close])
async def test_what_is_not_wanted_any_more_ends_and_is_not_shown(
    shop: Compiling, end: Callable[[Compiling], None]
) -> None:
    await shop.begin("two")
    end(shop)
    await wait_until(lambda: shop.process.cancelled != [])
    shop.process.may_answer.set()
    await settle()
    assert shop.told == ["one"]
    shop.job.opened(shop.path)
    await settle()
    assert shop.told == ["one"] and len(shop.process.asked) == 2


async def test_a_process_that_dies_costs_one_answer(shop: Compiling) -> None:
    shop.process.error = ToolError("static analysis process", "ended")
    shop.edit("two")
    shop.job.opened(shop.path)
    await wait_until(lambda: len(shop.process.asked) == 2)
    await settle()
    shop.process.error = None
    shop.job.opened(shop.path)
    await wait_until(lambda: shop.told == ["one", "two"])


async def test_leaving_ends_the_process(shop: Compiling) -> None:
    await shop.job.leave()
    assert shop.process.has_left
    shop.edit("two")
    shop.job.opened(shop.path)
    await settle()
    assert shop.told == ["one"]
