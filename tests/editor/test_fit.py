"""Whether a text can be what was measured, and what is shown of one of which nobody can tell."""

import pytest
from msgspec.structs import replace

from gpa_lsp.editor.lines.finder import judge_fit
from gpa_lsp.report.line_map import split_lines
from gpa_lsp.report.measured_files import Doubt, MeasuredFile
from tests.editor.views import LISTING, SOURCE
from tests.report_builder import build_kernel

KERNEL = build_kernel(LISTING, name="saxpy(float *, float *)", mangled_name="saxpy")


def doubt(text: str = SOURCE) -> MeasuredFile:
    return MeasuredFile(
        compiled_path="saxpy.cu",
        local_path="/project/saxpy.cu",
        lines=split_lines(text),
        is_verified=False,
        doubt=Doubt.SAVED_SINCE,
    )


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        (SOURCE, True),
        (SOURCE.replace("2 * x[i]", "3 * x[i]"), True),
        ("\n" * 40 + SOURCE, False),
        ("\n".join(SOURCE.split("\n")[:5]), False),
        (SOURCE.replace("    y[i] = 2 * x[i] + y[i];", "    // nothing"), False),
        (SOURCE.replace("saxpy(", "other("), True),
        (SOURCE.replace("{\n", "{\n}\n__global__ void other()\n{\n"), False),
    ],
    ids=["the text", "a word", "moved", "too short", "a comment", "made by a macro", "another kernel"],
)
def test_lines_exist_carry_code_and_stand_in_their_kernel(text: str, fits: bool) -> None:
    (judged,) = judge_fit([doubt(text)], [KERNEL])
    assert judged.fits is fits


def test_what_is_verified_is_not_judged() -> None:
    file = replace(doubt("\n" * 90), is_verified=True)
    assert judge_fit([file], [KERNEL]) == (file,)
