"""Fixes that are really compiled and emulated, and what a menu says of each state."""

import re
from pathlib import Path

import pytest
from msgspec.structs import replace

from gpa_lsp.diagnosis.rewrites.model import TextEdit, TextPlace
from gpa_lsp.editor.source.actions import Annotations, make_fix_action
from gpa_lsp.editor.source.fixes import OfferedFix, find_fixes
from gpa_lsp.report.fixes.jobs import make_fix_job, move_line
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
from gpa_lsp.report.fixes.trials import do_job
from tests.editor.views import make_profile, make_view
from tests.report_builder import build_kernel

SOURCE = """\
__global__ void relax(const float *x, float *y, int n)
{
    float s = 0;
#pragma unroll 1
    for (int i = 0; i < n; ++i)
        s += x[i * 32 + threadIdx.x] * 0.5f;
    y[threadIdx.x] = s;
}
"""
DESCRIPTION = """\
[[launch]]
kernel = "relax"
grid = 2
block = 32
arguments = [
  { name = "x", type = "float", count = 512 },
  { name = "y", type = "float", count = 32 },
  { name = "n", type = "int", value = 16 },
]
"""


def make_job(folder: Path, edited: str, *, lines: tuple[int, ...] = (5,), text: str = SOURCE) -> FixJob:
    return FixJob(
        path=folder / "relax.cu",
        text=text,
        edited=edited,
        kernel="_Z5relaxPKfPfi",
        lines=lines,
        edited_lines=lines,
        threads=256,
        dynamic_shared_bytes=0,
        roots=(folder,),
        architecture=(8, 0),
        limit_s=60.0,
    )


def try_fix(folder: Path, edited: str, text: str = SOURCE) -> FixVerdict:
    pytest.importorskip("cuda.bindings.nvrtc", reason="needs NVRTC (the extra [cuda])")
    verdict = do_job(make_job(folder, edited, text=text))
    assert isinstance(verdict, FixVerdict)
    return verdict


def test_an_unroll_factor_is_told_by_what_was_compiled(tmp_path: Path) -> None:
    verdict = try_fix(tmp_path, SOURCE.replace("unroll 1", "unroll 8"))
    assert verdict.state is FixState.CHANGED and not verdict.has_losses
    assert "registers, occupancy unchanged, loads in flight 1 → 8" in verdict.words
    assert verdict.details[0].startswith("Compiled: ") and "instructions per iteration" in verdict.details[0]
    assert verdict.details[-1] == "Memory instructions of the loop: `LDG.E` 1 → 8."


def test_what_the_compiler_did_by_itself_changes_nothing(tmp_path: Path) -> None:
    before = SOURCE.replace("#pragma unroll 1\n", "\n")
    verdict = try_fix(tmp_path, SOURCE.replace("unroll 1", "unroll 4"), before)
    assert (verdict.state, verdict.words) == (FixState.SAME, "compiles to the same code")


def test_a_fix_that_makes_things_worse_says_so(tmp_path: Path) -> None:
    verdict = try_fix(tmp_path, SOURCE, SOURCE.replace("unroll 1", "unroll 8"))
    assert verdict.has_losses and "loads in flight 8 → 1" in verdict.words
    assert verdict.is_doubtful


def test_a_fix_that_does_not_compile_says_where(tmp_path: Path) -> None:
    verdict = try_fix(tmp_path, SOURCE.replace("0.5f", "0.5f *"))
    assert verdict.state is FixState.FAILED and verdict.is_doubtful
    assert verdict.words.startswith("does not compile: line 6: expected an expression")


def test_a_source_that_does_not_compile_anyway_says_nothing_in_a_title(tmp_path: Path) -> None:
    broken = SOURCE.replace("float s = 0;", "float s = ;")
    verdict = try_fix(tmp_path, broken.replace("unroll 1", "unroll 8"), broken)
    assert (verdict.state, verdict.words) == (FixState.UNKNOWN, "")
    assert verdict.details[0].startswith("It cannot be compiled here: line 3: expected an expression")
    other = replace(make_job(tmp_path, SOURCE), kernel="_Z5otherv")
    missing = do_job(other)
    assert isinstance(missing, FixVerdict) and "not among those" in missing.details[0]


@pytest.mark.parametrize(
    ("edited", "words"),
    [
        (SOURCE.replace("i * 32 + threadIdx.x", "i + threadIdx.x * 16"), "sectors 136 → 1,032 (emulated)"),
        (SOURCE + " ", ""),
    ],
)
def test_sectors_are_emulated_where_a_launch_is_described(tmp_path: Path, edited: str, words: str) -> None:
    pytest.importorskip("cuda.bindings.nvrtc", reason="needs NVRTC (the extra [cuda])")
    job = LaunchedJob(
        base=make_job(tmp_path, edited),
        question=LaunchedQuestion.SECTORS,
        launches_path=tmp_path / "relax.launch.toml",
        launches_text=DESCRIPTION,
        machine=None,
        seconds=20.0,
        memory_bytes=1 << 28,
    )
    result = do_job(job)
    assert isinstance(result, LaunchedResult)
    assert (result.words, result.has_losses) == (words, bool(words))
    assert words or result.sentence == "Emulated: 136 sectors of memory, as many as without it."
    assert do_job(replace(job, launches_text=DESCRIPTION.replace("relax", "other"))) == LaunchedResult()


@pytest.mark.parametrize(
    ("edited", "is_changed"),
    [(SOURCE.replace("i * 32 + threadIdx.x", "i + threadIdx.x * 16"), True), (SOURCE + " ", False)],
)
def test_cycles_and_limiter_are_simulated_where_a_launch_is_described(
    tmp_path: Path, edited: str, is_changed: bool
) -> None:
    pytest.importorskip("cuda.bindings.nvrtc", reason="needs NVRTC (the extra [cuda])")
    job = LaunchedJob(
        base=make_job(tmp_path, edited),
        question=LaunchedQuestion.CYCLES,
        launches_path=tmp_path / "relax.launch.toml",
        launches_text=DESCRIPTION,
        machine="A100",
        seconds=20.0,
        memory_bytes=1 << 28,
    )
    result = do_job(job)
    assert isinstance(result, LaunchedResult)
    assert bool(re.fullmatch(r"cycles [\d,]+ → [\d,]+ \(simulated\)", result.words)) is is_changed
    elsewhere = replace(job, base=replace(job.base, measured_on="NVIDIA GeForce RTX 3090"), machine=None)
    other = do_job(elsewhere)
    assert isinstance(other, LaunchedResult) and other.sentence.startswith("Simulated on the RTX 3090: ")
    said = r"Simulated on the A100 PCIe 40GB: [\d,]+ → [\d,]+ cycles; .+\."
    assert re.fullmatch(said, result.sentence), result.sentence
    assert do_job(replace(job, launches_text=DESCRIPTION.replace("relax", "other"))) == LaunchedResult()


LISTING = """
    relax.cu:5    ISETP R1, R2            ; selected=4
    relax.cu:6    LDG.E R2, [R4.64]       ; long_scoreboard=60/50
    relax.cu:6    FFMA R6, R2, R3, R6     ; long_scoreboard=30/20
    relax.cu:8    EXIT                    ; selected=1
"""


def offer(verdict: FixVerdict) -> OfferedFix:
    kernel = build_kernel(
        LISTING,
        name="relax(const float*, float*, int)",
        blame="2 <- 1   long_scoreboard  R2 6c 1i",
        advice="""
            loop_unrolling code 1.5x
                hint: Unroll the loop in line 5 of relax.cu by 4: it makes n turns.
                region loop 0 1.4x to=4
                    2 <- 1   long_scoreboard
        """,
    )
    view = make_view(make_profile(kernel, texts={"relax.cu": SOURCE}), SOURCE, path="/project/relax.cu")
    assert view is not None
    (fix,) = (one for one in find_fixes(view, 5, 5) if one.rewrite.name == "unroll_loop")
    return OfferedFix(key="1", uri=view.uri, text=view.text, fix=fix, verdict=verdict)


def test_the_job_of_a_fix_looks_at_the_lines_of_its_advice() -> None:
    offered = offer(PENDING)
    report = offered.fix.shown.kernel.report
    job = make_fix_job(
        report,
        offered.fix.rewrite.edits,
        path="/project/relax.cu",
        text=SOURCE,
        lines=offered.fix.lines,
        roots=(),
        architecture=None,
        limit_s=1.0,
    )
    assert job.edited == SOURCE.replace("unroll 1", "unroll 4")
    assert job.lines[:2] == (4, 5) and job.edited_lines == job.lines
    assert job.kernel == report.mangled_name


@pytest.mark.parametrize(
    ("verdict", "title"),
    [
        (PENDING, "Replace #pragma unroll 1 by #pragma unroll 4 (estimated gain: 1.36–1.44×)"),
        (UNKNOWN, "Replace #pragma unroll 1 by #pragma unroll 4 (estimated gain: 1.36–1.44×)"),
        (
            FixVerdict(state=FixState.CHANGED, words="16 → 24 registers"),
            "Replace #pragma unroll 1 by #pragma unroll 4: 16 → 24 registers (estimated gain: 1.36–1.44×)",
        ),
        (
            FixVerdict(state=FixState.SAME, words="compiles to the same code"),
            "Replace #pragma unroll 1 by #pragma unroll 4: compiles to the same code",
        ),
        (
            FixVerdict(state=FixState.FAILED, words="does not compile: line 3: what"),
            "Replace #pragma unroll 1 by #pragma unroll 4: does not compile: line 3: what",
        ),
    ],
)
def test_a_title_says_what_is_known(verdict: FixVerdict, title: str) -> None:
    action = make_fix_action(offer(verdict))
    assert action.title == title
    is_fine = verdict.state not in (FixState.SAME, FixState.FAILED)
    assert bool(action.is_preferred) is is_fine
    annotated = make_fix_action(offer(verdict), Annotations.DOUBTS).edit
    assert annotated is not None and (annotated.changes is None) is (verdict.state is FixState.FAILED)
    assert make_fix_action(offer(verdict), has_edits=False).edit is None


def test_lines_behind_an_edit_move_and_those_before_it_stay() -> None:
    place = TextPlace(line=4, column=0)
    edits = [
        TextEdit(start=place, end=place, text="a\nb\n"),
        TextEdit(start=TextPlace(line=6, column=2), end=TextPlace(line=7, column=0), text=""),
    ]
    assert [move_line(line, edits) for line in (3, 4, 5, 6, 7)] == [3, 6, 7, 8, 8]
