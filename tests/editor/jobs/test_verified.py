"""Trials of fixes: while a user looks at their lines, in trusted workspaces, where sources are compiled at all."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from gpa_lsp.editor.jobs import background_job, verified
from gpa_lsp.editor.jobs.background_job import SourceScope
from gpa_lsp.editor.jobs.verified import VerifiedFixes
from gpa_lsp.editor.source.fixes import Fix, find_fixes
from gpa_lsp.foundation.errors import ToolError
from gpa_lsp.report.fixes.results import (
    PENDING,
    UNKNOWN,
    FixJob,
    FixState,
    FixVerdict,
    LaunchedJob,
    LaunchedQuestion,
    LaunchedResult,
)
from tests.editor.jobs.workshop import Process, Workshop
from tests.editor.views import make_profile, make_view
from tests.lsp.loop_waiting import settle, wait_until
from tests.report_builder import build_kernel

SOURCE = """\
__global__ void relax(const float *x, float *y, int n)
{
    for (int i = 0; i < n; ++i)
        y[i] = 0.5 * x[i];
}
"""
LISTING = """
    relax.cu:3    ISETP R1, R2            ; selected=4
    relax.cu:4    LDG.E R2, [R4.64]       ; long_scoreboard=60/50
    relax.cu:4    F2F.F64.F32 R6, R2      ; short_scoreboard=30/20
    relax.cu:5    EXIT                    ; selected=1
"""
CHANGED = FixVerdict(state=FixState.CHANGED, words="16 → 24 registers", details=("Compiled: 16 → 24 registers.",))


SECTORS = LaunchedResult(words="sectors 8 → 4 (emulated)", sentence="Emulated: 8 → 4 sectors of memory.")
CYCLES = LaunchedResult(words="cycles 9 → 7 (simulated)", sentence="Simulated: 9 → 7 cycles.")
ADVICE = """
    loop_unrolling code 1.5x
        hint: Unroll the loop in line 3 of relax.cu by 4: it makes n turns.
        region loop 0 1.4x to=4
            2 <- 1   short_scoreboard
    strength_reduction code 1.2x
        region line 2 1.2x
            2  short_scoreboard
"""


def answer(job: FixJob | LaunchedJob) -> FixVerdict | LaunchedResult:
    if isinstance(job, FixJob):
        return CHANGED
    return SECTORS if job.question is LaunchedQuestion.SECTORS else CYCLES


class Trying(Workshop):
    """A source whose fixes are looked at."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.process = Process(answer)
        self.fixes = VerifiedFixes(self.site, self.process, may_leave_edits=True)
        name = "relax(const float*, float*, int)"
        kernel = build_kernel(LISTING, name=name, blame="2 <- 1   short_scoreboard  R2 6c 1i", advice=ADVICE)
        profile = make_profile(kernel, texts={"relax.cu": SOURCE}, folder=str(folder))
        view = make_view(profile, SOURCE, path=str(folder / "relax.cu"))
        assert view is not None
        self.view = view
        self.set(emulates=False)

    def set(self, *, is_trusted: bool = True, **changes: object) -> None:
        self.configure(self.fixes, is_trusted=is_trusted, **changes)

    def list_fixes(self, line: int) -> tuple[Fix, ...]:
        return find_fixes(self.view, line, line)

    def look(self, line: int) -> list[FixVerdict]:
        """Verdicts on the fixes of a line."""
        return [one.verdict for one in self.fixes.offer(self.view, self.list_fixes(line))]

    def find_keys(self, line: int) -> list[str]:
        return [one.key for one in self.fixes.offer(self.view, self.list_fixes(line))]


@pytest_asyncio.fixture
async def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Trying]:
    monkeypatch.setattr(verified, "_PAUSE_S", 0.01)
    monkeypatch.setattr(background_job, "_PATIENCE_S", 0.01)
    monkeypatch.setattr(verified, "_MOST_WAIT_S", 0.05)
    made = Trying(tmp_path.resolve())
    yield made
    await made.fixes.leave()


async def test_fixes_are_compiled_while_their_line_is_looked_at_and_once(shop: Trying) -> None:
    looked = shop.look(3)
    assert looked and set(looked) == {PENDING}
    await wait_until(lambda: set(shop.look(3)) == {CHANGED})
    jobs = [*shop.process.asked]
    assert len(jobs) == len(looked) and all(job.edited != job.text == SOURCE for job in jobs)
    await settle()
    assert shop.process.asked == jobs


async def test_a_cursor_that_moves_on_takes_everything_back(shop: Trying) -> None:
    shop.process.may_answer.clear()
    first = {fix.rewrite.title for fix in shop.list_fixes(4)} - {fix.rewrite.title for fix in shop.list_fixes(3)}
    assert first, "line 4 has a fix that line 3 has not"
    shop.look(4)
    await wait_until(lambda: shop.process.asked)
    shop.look(5)
    await wait_until(lambda: shop.process.cancelled)
    await settle()
    assert len(shop.process.asked) == 1, "what was to be tried after it is not tried"


async def test_a_cursor_that_only_passes_starts_nothing(shop: Trying, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verified, "_PAUSE_S", 0.1)
    shop.look(3)
    shop.look(5)
    await settle()
    assert not shop.process.asked


async def test_an_edit_takes_everything_back(shop: Trying) -> None:
    shop.process.may_answer.clear()
    shop.look(3)
    await wait_until(lambda: shop.process.asked)
    shop.fixes.changed(str(shop.folder / "other.cu"))
    await settle()
    assert not shop.process.cancelled
    shop.fixes.changed(shop.view.local_path)
    await wait_until(lambda: shop.process.cancelled)


@pytest.mark.parametrize("conditions", [{"is_trusted": False}, {"compiles_sources": False}])
async def test_nothing_runs_that_nobody_agreed_to(shop: Trying, conditions: dict[str, bool]) -> None:
    shop.set(**conditions)
    assert set(shop.look(3)) == {UNKNOWN} and set(shop.find_keys(3)) == {""}
    await settle()
    assert not shop.process.asked
    shop.set()


async def test_trust_that_is_taken_back_ends_what_runs(shop: Trying) -> None:
    shop.process.may_answer.clear()
    (key, *_) = shop.find_keys(3)
    await wait_until(lambda: shop.process.asked)
    shop.set(is_trusted=False)
    await wait_until(lambda: shop.process.cancelled)
    assert shop.fixes.find(key) is None


async def test_sources_outside_the_workspace_are_left_alone(
    shop: Trying, tmp_path_factory: pytest.TempPathFactory
) -> None:
    shop.fixes.configure(shop.settings, SourceScope(roots=(tmp_path_factory.mktemp("elsewhere"),), is_trusted=True))
    assert set(shop.look(3)) == {UNKNOWN}
    await settle()
    assert not shop.process.asked


async def test_who_takes_a_fix_waits_for_it_but_not_for_long(shop: Trying) -> None:
    shop.process.may_answer.clear()
    key = shop.find_keys(3)[-1]
    late = await shop.fixes.wait(key)
    assert late is not None and late.verdict is PENDING
    shop.process.may_answer.set()
    found = await shop.fixes.wait(key)
    assert found is not None and found.verdict == CHANGED
    assert await shop.fixes.wait("nothing") is None


async def test_a_process_that_dies_costs_the_words_and_is_not_asked_again(shop: Trying) -> None:
    shop.process.error = ToolError("fix process", "died")
    (key, *_) = shop.find_keys(3)
    await wait_until(lambda: set(shop.look(3)) == {UNKNOWN})
    found = await shop.fixes.wait(key)
    assert found is not None and found.verdict is UNKNOWN


async def test_sectors_are_counted_where_a_launch_is_described(shop: Trying) -> None:
    shop.set(emulates=True)
    shop.look(3)
    await wait_until(lambda: set(shop.look(3)) == {CHANGED})
    await settle()
    assert not shop.process.list_asked(LaunchedJob)
    shop.set(emulates=False)
    shop.edit("[[launch]]", "relax.launch.toml")
    shop.set(is_trusted=False)
    shop.set(emulates=True)
    shop.look(3)
    await wait_until(lambda: all("cycles" in one.words for one in shop.look(3)))
    asked = [job.question.value for job in shop.process.list_asked(LaunchedJob)]
    assert asked == ["sectors"] * (len(asked) // 2) + ["cycles"] * (len(asked) // 2)
    assert [job.launches_text for job in shop.process.list_asked(LaunchedJob)] == ["[[launch]]"] * len(
        shop.process.list_asked(LaunchedJob)
    )
    (found, *_) = shop.look(3)
    assert found.words == "16 → 24 registers, sectors 8 → 4 (emulated), cycles 9 → 7 (simulated)"
    assert found.details == (
        "Compiled: 16 → 24 registers.",
        "Emulated: 8 → 4 sectors of memory.",
        "Simulated: 9 → 7 cycles.",
    )
