"""Advice is held to what the compiler makes of its edits: in the shell and in the editor by one function."""

import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from gpa_lsp.cli.main import main
from gpa_lsp.diagnosis.advice.model import KernelAdvice
from gpa_lsp.foundation.errors import ProblemSeverity
from gpa_lsp.foundation.prose import factor, say
from gpa_lsp.report.fixes.jobs import list_questions
from gpa_lsp.report.fixes.results import FixState, FixVerdict
from gpa_lsp.report.fixes.try_advice import TriedFix, hold_to_witnesses, try_advice
from gpa_lsp.report.model import KernelReport, Report
from gpa_lsp.report.saved.store import write_report
from gpa_lsp.report.source_paths import SourceLocator
from tests.editor.test_verified_fixes import DESCRIPTION as LAUNCH
from tests.report_builder import build_kernel, build_report

PLAIN = """\
__global__ void relax(const float *x, float *y, int n)
{
    float s = 0;
    for (int i = 0; i < n; ++i)
        s += x[i * 32 + threadIdx.x] * 0.5f;
    y[threadIdx.x] = s;
}
"""
ROLLED = PLAIN.replace("float s = 0;\n", "float s = 0;\n#pragma unroll 1\n").replace("{\n", "{", 1)
LISTING = """
    relax.cu:4    ISETP R1, R2            ; selected=4
    relax.cu:5    LDG.E R2, [R4.64]       ; long_scoreboard=60/50
    relax.cu:5    FFMA R6, R2, R3, R6     ; long_scoreboard=30/20
    relax.cu:7    EXIT                    ; selected=1
"""
SAME = FixVerdict(state=FixState.SAME)
CHANGED = FixVerdict(state=FixState.CHANGED, words="16 → 24 registers")


def make_kernel(copies: int = 4) -> KernelReport:
    """A kernel whose first two pieces of advice have edits, the first one at two places."""
    return build_kernel(
        LISTING,
        name="relax(const float*, float*, int)",
        mangled_name="_Z5relaxPKfPfi",
        blame="2 <- 1   long_scoreboard  R2 6c 1i",
        advice=f"""
            loop_unrolling code 1.5x
                hint: Unroll the loop in line 4 of relax.cu by {copies}: it makes n turns.
                region loop 0 1.4x to=4
                    2 <- 1   long_scoreboard
            thread_increase parallel 1.2x
        """,
    )


def hold(kernel: KernelReport, *verdicts: FixVerdict) -> KernelAdvice:
    question = list_questions(kernel)[0]
    held = hold_to_witnesses(kernel, [TriedFix(question=question, verdict=one) for one in verdicts])
    assert held.advice is not None
    return held.advice


def test_the_same_code_is_no_promise_but_something_that_would_not_help() -> None:
    kernel = make_kernel()
    advice = hold(kernel, SAME)
    assert [one.optimizer for one in advice.advice] == ["thread_increase"]
    assert advice.refusals is not None
    assert [(one.why, one.titles) for one in advice.refusals] == [
        ("compiled: the code does not change", ("Unroll a loop",))
    ]


def test_advice_stays_where_an_edit_changes_code_or_a_place_was_not_tried() -> None:
    kernel = make_kernel()
    first = hold(kernel, SAME, CHANGED).advice[0]
    assert (first.optimizer, first.witness) == ("loop_unrolling", "compiled: 16 → 24 registers")
    assert hold(kernel) == hold(kernel, FixVerdict(state=FixState.UNKNOWN)) == kernel.advice
    assert kernel.advice is not None
    region = kernel.advice.advice[0].regions[0]
    other = replace(region, scope=replace(region.scope, line=9))
    wider = replace(kernel.advice.advice[0], regions=(region, other))
    assert hold(replace(kernel, advice=replace(kernel.advice, advice=(wider,))), SAME).advice[0] == wider


@pytest.mark.parametrize(("simulated", "is_doubted"), [(1.3, False), (1.0, True), (0.9, True)])
def test_an_edit_that_is_no_faster_when_simulated_has_no_number_and_comes_last(
    simulated: float, is_doubted: bool
) -> None:
    advice = hold(make_kernel(), replace(CHANGED, simulated_speedup=simulated)).advice
    (unrolling,) = (one for one in advice if one.optimizer == "loop_unrolling")
    assert bool(unrolling.speedup.doubt) is is_doubted and (advice[-1] is unrolling) is is_doubted
    assert str(unrolling.witness).startswith(str(say("simulated {gain}, compiled: ", gain=factor(simulated))))


def measure(folder: Path, text: str, kernel: KernelReport, *, is_edited: bool = False) -> Report:
    """A report of a source that is older than the measurement, or was saved after it."""
    source = folder / "relax.cu"
    source.write_text(text, encoding="utf-8")
    now_s = 1_800_000_000 if is_edited else 1_600_000_000
    os.utime(source, (now_s, now_s))
    return build_report(kernel)


def test_the_shell_compiles_edits_and_quotes_what_became_of_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("cuda.bindings.nvrtc", reason="needs NVRTC (the extra [cuda])")
    monkeypatch.chdir(tmp_path)
    write_report(measure(tmp_path, PLAIN, make_kernel()), tmp_path / "saved.json")
    assert main(["advise", "saved.json"]) == 0
    printed = capsys.readouterr().out
    assert "unroll the loop in line 4 of relax.cu by 4" in printed
    assert main(["advise", "saved.json", "--compile"]) == 0
    printed = capsys.readouterr().out
    assert "unroll the loop" not in printed
    assert "won't help: unroll a loop (compiled: the code does not change)" in printed
    (tmp_path / "relax.launch.toml").write_text(LAUNCH, encoding="utf-8")
    write_report(measure(tmp_path, ROLLED, make_kernel(8)), tmp_path / "saved.json")
    assert main(["advise", "saved.json", "--compile"]) == 0
    (edit,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("  edit")]
    assert "registers, occupancy unchanged, loads in flight 1 → 8" in edit and "(simulated)" in edit


def test_a_source_that_was_saved_since_is_left_alone_and_that_is_said(tmp_path: Path) -> None:
    report = measure(tmp_path, PLAIN, make_kernel(), is_edited=True)
    found = try_advice(report, SourceLocator([tmp_path]))
    assert found.kernels == report.kernels
    assert [one.message for one in found.problems] == [
        "nothing was compiled: no advice has an edit of a source (.cu) that is here as it was measured"
    ]


def test_a_source_that_cannot_be_compiled_is_an_error(tmp_path: Path) -> None:
    pytest.importorskip("cuda.bindings.nvrtc", reason="needs NVRTC (the extra [cuda])")
    report = measure(tmp_path, PLAIN.replace("* 0.5f", "* gain"), make_kernel())
    found = try_advice(report, SourceLocator([tmp_path]))
    assert found.kernels == report.kernels
    assert found.problems[0].severity is ProblemSeverity.ERROR
    assert found.problems[0].message.startswith('It cannot be compiled here: line 5: identifier "gain" is undefined')
