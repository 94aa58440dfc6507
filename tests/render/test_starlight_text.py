"""Starlight's suggestions beside our estimates."""

import re

from msgspec.structs import replace

from gpa_lsp.diagnosis.advice.advise import advise_kernel
from gpa_lsp.diagnosis.advice.model import KernelAdvice
from gpa_lsp.diagnosis.analyses.model import KernelAnalyses
from gpa_lsp.diagnosis.analyses.questions.starlight import answer_starlight
from gpa_lsp.diagnosis.analyses.starlight import OUR_ADVICE, SUGGESTIONS_TITLE
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.diagnosis.blame.blame import blame_kernel
from gpa_lsp.document.answer_view import list_answers
from gpa_lsp.foundation.numbers import format_speedup
from gpa_lsp.kernel.model import Kernel
from gpa_lsp.report.gather import AnalysedKernel, gather_kernel
from tests.rows.written import write_kernel

KERNEL = write_kernel(
    """
    B-:R-:W0:-:S02  LDG.E R2, [R4.64]        # k.cu:3 | selected=10
    B0:R-:W-:-:S04  FFMA R2, R2, R3, R6      # k.cu:4 | long_scoreboard=80/70 selected=5
    B-:R-:W-:-:S05  EXIT                     # k.cu:5 | wait=5
    """
)


BARRIERS = write_kernel(
    """
    B-:R-:W-:-:S02  STS [R7], R4             # k.cu:3 | selected=10 | x=100
    B-:R-:W-:-:S06  BAR.SYNC 0x0             # k.cu:4 | selected=10 | x=100
    B-:R-:W-:-:S04  IADD3 R5, R5, 0x1, RZ    # k.cu:5 | barrier=300 selected=10 | x=100
    B-:R-:W-:-:S06  BAR.SYNC 0x0             # k.cu:6 | selected=10 | x=100
    B-:R-:W0:-:S02  LDS R2, [R8]             # k.cu:7 | barrier=400 selected=10 | x=100
    B0:R-:W-:-:S05  EXIT                     # k.cu:8 | selected=10 | x=100
    """
)


def pair(advice: KernelAdvice | None, kernel: Kernel = KERNEL) -> dict[str, str]:
    asked = replace(answer_starlight(Subject(kernel)), analysis="starlight")
    analyses = KernelAnalyses(roofline=None, answers=(asked,))
    (answer,) = list_answers(gather_kernel(AnalysedKernel(kernel=kernel, advice=advice, analyses=analyses)))
    table = next(one for one in answer.tables if one.title == SUGGESTIONS_TITLE)
    at = [column.name for column in table.columns].index(OUR_ADVICE)
    return {f"{row[0]}: {row[1]}": str(row[at]) for row in table.rows}


def test_names_become_estimates_or_the_reason_of_silence():
    advice, _ = advise_kernel(Subject(KERNEL, blame_kernel(KERNEL)))
    shown = pair(advice)
    for one in advice.advice:
        cells = [cell for cell in shown.values() if one.optimizer.replace("_", " ") in cell]
        assert all(format_speedup(one.speedup.estimate) in cell for cell in cells)
    silent = next(one for one in advice.silences if one.optimizer == "register_reuse")
    assert silent.message in shown["Poor memory usage: Reuse registers"]
    assert (
        shown["Low operational intensity: Compress the data"] == "data compression: what limits the kernel is unknown"
    )


def test_advice_names_its_line_and_the_others_their_reason():
    advice, _ = advise_kernel(Subject(BARRIERS, blame_kernel(BARRIERS)))
    shown = pair(advice, BARRIERS)
    assert shown["Thread synchronisation/branching: Remove synchronisation"].endswith(", line 6 of k.cu")
    assert re.match(
        r"barrier removal 1\.\d+–[34]\.?\d*×", shown["Thread synchronisation/branching: Remove synchronisation"]
    )
    assert shown["Low operational intensity: Compress the data"].startswith("data compression: ")


def test_the_names_stay_where_nobody_was_asked():
    assert pair(None)["Latency/dependency: Unroll the loop"] == "loop_unrolling"
    assert (
        pair(KernelAdvice(advice=(), silences=()))["Latency/dependency: Unroll the loop"] == "loop unrolling: not run"
    )
