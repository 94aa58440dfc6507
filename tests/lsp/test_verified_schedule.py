"""When fixes are tried: while somebody looks at their lines, in trusted workspaces, where sources are compiled at all."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from msgspec.structs import replace

from gpa_lsp.editor.document_view import DocumentView
from gpa_lsp.editor.protocol import verified_fixes
from gpa_lsp.editor.protocol.verified_fixes import FixProcess, VerifiedFixes
from gpa_lsp.editor.settings import Settings
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


class Process(FixProcess):
    """Remembers jobs and answers when it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.jobs: list[FixJob] = []
        self.emulated: list[LaunchedJob] = []
        self.cancelled: list[FixJob] = []
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        self.error: Exception | None = None
        self.sectors = LaunchedResult(words="sectors 8 → 4 (emulated)", sentence="Emulated: 8 → 4 sectors of memory.")
        self.cycles = LaunchedResult(words="cycles 9 → 7 (simulated)", sentence="Simulated: 9 → 7 cycles.")

    async def try_fix(self, job: FixJob) -> FixVerdict:
        self.jobs.append(job)
        try:
            await self.may_answer.wait()
        except asyncio.CancelledError:
            self.cancelled.append(job)
            raise
        if self.error is not None:
            raise self.error
        return CHANGED

    async def compare_launches(self, job: LaunchedJob) -> LaunchedResult:
        self.emulated.append(job)
        return self.sectors if job.question is LaunchedQuestion.SECTORS else self.cycles

    async def leave(self) -> None: ...


class Setting:
    """A workspace with one source, whose fixes are looked at."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.process = folder, Process()
        self.texts: dict[str, str] = {}
        self.fixes = VerifiedFixes(self.texts.get, may_leave_edits=True, process=self.process)
        self.settings = Settings(emulates=False)
        self.view = self._make_view()
        self.configure()

    def _make_view(self) -> DocumentView:
        kernel = build_kernel(
            LISTING,
            name="relax(const float*, float*, int)",
            blame="2 <- 1   short_scoreboard  R2 6c 1i",
            advice="""
                loop_unrolling code 1.5x
                    hint: Unroll the loop in line 3 of relax.cu by 4: it makes n turns.
                    region loop 0 1.4x to=4
                        2 <- 1   short_scoreboard
                strength_reduction code 1.2x
                    region line 2 1.2x
                        2  short_scoreboard
            """,
        )
        profile = make_profile(kernel, texts={"relax.cu": SOURCE}, folder=str(self.folder))
        found = make_view(profile, SOURCE, path=str(self.folder / "relax.cu"))
        assert found is not None
        return found

    def configure(self, *, is_trusted: bool = True, **changes: object) -> None:
        self.settings = replace(self.settings, **changes)  # type: ignore[arg-type]
        self.fixes.configure(self.settings, (self.folder,), is_trusted=is_trusted)

    def list_fixes(self, line: int) -> tuple[Fix, ...]:
        return find_fixes(self.view, line, line)

    def look(self, line: int) -> list[FixVerdict]:
        """What is said of the fixes of a line."""
        return [one.verdict for one in self.fixes.offer(self.view, self.list_fixes(line))]

    def find_keys(self, line: int) -> list[str]:
        return [one.key for one in self.fixes.offer(self.view, self.list_fixes(line))]


@pytest_asyncio.fixture
async def setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Setting]:
    monkeypatch.setattr(verified_fixes, "_PAUSE_S", 0.01)
    monkeypatch.setattr(verified_fixes, "_PATIENCE_S", 0.01)
    monkeypatch.setattr(verified_fixes, "_MOST_WAIT_S", 0.05)
    made = Setting(tmp_path)
    yield made
    await made.fixes.leave()


@pytest.mark.asyncio
async def test_fixes_are_compiled_while_their_line_is_looked_at_and_once(setting: Setting) -> None:
    looked = setting.look(3)
    assert looked and set(looked) == {PENDING}
    await wait_until(lambda: set(setting.look(3)) == {CHANGED})
    jobs = list(setting.process.jobs)
    assert len(jobs) == len(looked) and all(job.edited != job.text == SOURCE for job in jobs)
    await settle()
    assert setting.process.jobs == jobs


@pytest.mark.asyncio
async def test_a_cursor_that_moves_on_takes_everything_back(setting: Setting) -> None:
    setting.process.may_answer.clear()
    first = {fix.rewrite.title for fix in setting.list_fixes(4)} - {fix.rewrite.title for fix in setting.list_fixes(3)}
    assert first, "line 4 has a fix that line 3 has not"
    setting.look(4)
    await wait_until(lambda: setting.process.jobs)
    setting.look(5)
    await wait_until(lambda: setting.process.cancelled)
    await settle()
    assert len(setting.process.jobs) == 1, "what was to be tried after it is not tried"


@pytest.mark.asyncio
async def test_a_cursor_that_only_passes_starts_nothing(setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verified_fixes, "_PAUSE_S", 0.1)
    setting.look(3)
    setting.look(5)
    await settle()
    assert not setting.process.jobs


@pytest.mark.asyncio
async def test_an_edit_takes_everything_back(setting: Setting) -> None:
    setting.process.may_answer.clear()
    setting.look(3)
    await wait_until(lambda: setting.process.jobs)
    setting.fixes.changed(str(setting.folder / "other.cu"))
    await settle()
    assert not setting.process.cancelled
    setting.fixes.changed(setting.view.local_path)
    await wait_until(lambda: setting.process.cancelled)


@pytest.mark.asyncio
@pytest.mark.parametrize("conditions", [{"is_trusted": False}, {"compiles_sources": False}])
async def test_nothing_runs_that_nobody_agreed_to(setting: Setting, conditions: dict[str, bool]) -> None:
    setting.configure(**conditions)
    assert set(setting.look(3)) == {UNKNOWN} and set(setting.find_keys(3)) == {""}
    await settle()
    assert not setting.process.jobs
    setting.configure()


@pytest.mark.asyncio
async def test_trust_that_is_taken_back_ends_what_runs(setting: Setting) -> None:
    setting.process.may_answer.clear()
    (key, *_) = setting.find_keys(3)
    await wait_until(lambda: setting.process.jobs)
    setting.configure(is_trusted=False)
    await wait_until(lambda: setting.process.cancelled)
    assert setting.fixes.find(key) is None


@pytest.mark.asyncio
async def test_sources_outside_the_workspace_are_left_alone(
    setting: Setting, tmp_path_factory: pytest.TempPathFactory
) -> None:
    setting.fixes.configure(setting.settings, (tmp_path_factory.mktemp("elsewhere"),), is_trusted=True)
    assert set(setting.look(3)) == {UNKNOWN}
    await settle()
    assert not setting.process.jobs


@pytest.mark.asyncio
async def test_who_takes_a_fix_waits_for_it_but_not_for_long(setting: Setting) -> None:
    setting.process.may_answer.clear()
    key = setting.find_keys(3)[-1]
    late = await setting.fixes.wait(key)
    assert late is not None and late.verdict is PENDING
    setting.process.may_answer.set()
    found = await setting.fixes.wait(key)
    assert found is not None and found.verdict == CHANGED
    assert await setting.fixes.wait("nothing") is None


@pytest.mark.asyncio
async def test_a_process_that_dies_costs_the_words_and_is_not_asked_again(setting: Setting) -> None:
    setting.process.error = ToolError("fix process", "died")
    (key, *_) = setting.find_keys(3)
    await wait_until(lambda: set(setting.look(3)) == {UNKNOWN})
    found = await setting.fixes.wait(key)
    assert found is not None and found.verdict is UNKNOWN


@pytest.mark.asyncio
async def test_sectors_are_counted_where_a_launch_is_described(setting: Setting) -> None:
    setting.configure(emulates=True)
    setting.look(3)
    await wait_until(lambda: set(setting.look(3)) == {CHANGED})
    await settle()
    assert not setting.process.emulated
    setting.configure(emulates=False)
    setting.texts[str(setting.folder / "relax.launch.toml")] = "[[launch]]"
    setting.configure(is_trusted=False)
    setting.configure(emulates=True)
    setting.look(3)
    await wait_until(lambda: all("cycles" in one.words for one in setting.look(3)))
    asked = [job.question.value for job in setting.process.emulated]
    assert asked == ["sectors"] * (len(asked) // 2) + ["cycles"] * (len(asked) // 2)
    assert [job.launches_text for job in setting.process.emulated] == ["[[launch]]"] * len(setting.process.emulated)
    (found, *_) = setting.look(3)
    assert found.words == "16 → 24 registers, sectors 8 → 4 (emulated), cycles 9 → 7 (simulated)"
    assert found.details == (
        "Compiled: 16 → 24 registers.",
        "Emulated: 8 → 4 sectors of memory.",
        "Simulated: 9 → 7 cycles.",
    )
