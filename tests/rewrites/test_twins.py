"""Way from a profile of a fixture's original to the source of its improved twin: advice, questions, rewrites, edits.

The samples are made up (:mod:`tests.pairs.made_up_profile`), the code, the lines and the sources are real.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from gpa_lsp.code.sources.trees import read_text, read_tree, walk
from gpa_lsp.diagnosis.advice.advise import advise_kernel
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.diagnosis.blame.blame import blame_kernel
from gpa_lsp.diagnosis.rewrites.find import find_rewrites
from gpa_lsp.diagnosis.rewrites.model import Rewrite, apply_edits
from gpa_lsp.report.fixes.jobs import list_questions
from gpa_lsp.report.gather import AnalysedKernel, gather_report
from gpa_lsp.report.model import KernelReport
from tests.pairs.made_up_profile import FIXTURES, Circumstances, make_up_kernel

KERNELS = FIXTURES / "kernels"


def report(pattern: str, circumstances: Circumstances) -> KernelReport:
    kernel = make_up_kernel(FIXTURES / "cubins" / "sm_80" / f"{pattern}_original.cubin", circumstances)
    blame = blame_kernel(kernel)
    advice, problems = advise_kernel(Subject(kernel, blame))
    assert not problems
    (found,) = gather_report([AnalysedKernel(kernel=kernel, blame=blame, advice=advice)]).kernels
    return found


def list_rewrites(kernel: KernelReport, file: str, text: str) -> Iterator[Rewrite]:
    """Every rewrite that the kernel's advice has for a file whose lines are still those that were compiled."""
    for question in list_questions(kernel):
        lines = [place.line for place in question.lines if Path(place.file).name == file]
        yield from find_rewrites(file, text, lines, question.context)


def read_code(text: str) -> list[str]:
    """The tokens of a text, and its pragmas, without comments and blanks."""
    tree = read_tree("k.cu", text)
    tokens = [read_text(one) for node in walk(tree.root) for one in (node, *node.children) if one.child_count == 0]
    comments = {read_text(node) for node in walk(tree.root) if node.type == "comment"}
    pragmas = [line.strip() for line in text.split("\n") if line.strip().startswith("#pragma")]
    return [token for token in sorted(tokens) if token not in comments] + pragmas


@pytest.mark.parametrize(
    ("pattern", "circumstances", "chosen"),
    [
        ("double_constant", Circumstances(), ["Write `0.7f` and `0.1f` (rounds to float)"]),
        ("register_spill", Circumstances(), ["Change the launch bounds to `__launch_bounds__(256)`"]),
        (
            "math_functions",
            Circumstances(),
            [
                "Use `__sinf` for `sinf`",
                "Use `__powf` for `powf`",
                "Divide approximately: `__fdividef` for `wave / power`",
            ],
        ),
    ],
)
def test_the_original_becomes_the_twin(pattern: str, circumstances: Circumstances, chosen: list[str]) -> None:
    kernel = report(pattern, circumstances)
    text = (KERNELS / pattern / "original.cu").read_text(encoding="utf-8")
    improved = (KERNELS / pattern / "improved.cu").read_text(encoding="utf-8")
    assert read_code(text) != read_code(improved)
    for title in chosen:
        offered = {one.title: one for one in list_rewrites(kernel, "original.cu", text)}
        assert title in offered, list(offered)
        text = apply_edits(text, offered[title].edits)
    assert read_code(text) == read_code(improved)


def test_the_twin_is_left_alone() -> None:
    """Rewrites that the twin has already are not offered again, even where the profile of the original asks for them."""
    for pattern in ("double_constant", "math_functions"):
        kernel = report(pattern, Circumstances())
        improved = (KERNELS / pattern / "improved.cu").read_text(encoding="utf-8")
        names = {one.name for one in list_rewrites(kernel, "original.cu", improved)}
        assert names & {"single_precision_literals", "fast_functions", "fast_division"} == set()


def test_a_rolled_loop_is_unrolled_as_far_as_the_advice_says() -> None:
    kernel = report("loop_not_unrolled", Circumstances(turns=16))
    text = (KERNELS / "loop_not_unrolled" / "original.cu").read_text(encoding="utf-8")
    (found,) = (one for one in list_rewrites(kernel, "original.cu", text) if one.name == "unroll_loop")
    assert found.title == "Replace `#pragma unroll 1` by `#pragma unroll 4`"
    assert "#pragma unroll 4\n    for (int tap = 0; tap < taps; ++tap)" in apply_edits(text, found.edits)


def test_a_body_too_large_is_unrolled_less() -> None:
    kernel = report("huge_body", Circumstances())
    text = (KERNELS / "huge_body" / "original.cu").read_text(encoding="utf-8")
    (found,) = (one for one in list_rewrites(kernel, "original.cu", text) if one.name == "unroll_less")
    assert found.title.startswith("Replace `#pragma unroll 1024` by `#pragma unroll ")
