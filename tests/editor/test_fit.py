"""Whether a text can be what was measured, and what is shown of one of which nobody can tell."""

import pytest
from lsprotocol.types import InlayHint
from msgspec.structs import replace

from gpa_lsp.editor.lines.anchors import judge_fit
from gpa_lsp.editor.model import Freshness
from gpa_lsp.editor.protocol.features.marks import list_heat
from gpa_lsp.editor.settings import Settings, UnverifiedChoice
from gpa_lsp.editor.snapshot import LoadedProfile
from gpa_lsp.editor.source.diagnostics import list_diagnostics
from gpa_lsp.editor.source.hints import MOST_CHARS, list_hints
from gpa_lsp.editor.source.lenses import list_lenses
from gpa_lsp.report.line_map import split_lines
from gpa_lsp.report.measured_files import Doubt, MeasuredFile
from tests.editor.views import LISTING, SOURCE, make_profile, make_view
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


def profile(*, fits: bool = True) -> LoadedProfile:
    loaded = make_profile(KERNEL, texts={"saxpy.cu": SOURCE, "scale.h": "a\nb\n"})
    return replace(loaded, files={**loaded.files, "saxpy.cu": replace(doubt(), fits=fits)})


def words(hint: InlayHint) -> str:
    return hint.label if isinstance(hint.label, str) else "".join(part.value for part in hint.label)


def test_numbers_of_an_unverified_source_stand_on_its_lines_and_are_marked() -> None:
    view = make_view(profile())
    assert view is not None
    hints = list_hints(view, 1, 100)
    assert [words(hint) for hint in hints] == [
        "20 % samples, wait ?",
        "64 % samples, long_scoreboard ?",
        "15 % samples, wait ?",
    ]
    assert all(len(words(hint)) <= MOST_CHARS for hint in hints)
    assert "unverified: was saved after it was measured" in str(hints[0].tooltip)
    heat = list_heat(view)
    assert heat and {mark.freshness for mark in heat} == {Freshness.UNVERIFIED}
    assert any("source unverified" in lens.command.title for lens in list_lenses(view))
    assert all(
        "(unverified: the source was saved after it was measured)" in one.message for one in list_diagnostics(view)
    )


def test_heat_of_what_was_measured_is_not_marked() -> None:
    view = make_view(make_profile(KERNEL, texts={"saxpy.cu": SOURCE, "scale.h": "a\nb\n"}))
    assert view is not None
    heat = list_heat(view)
    assert heat and {mark.freshness for mark in heat} == {Freshness.CURRENT}


@pytest.mark.parametrize(
    ("choice", "fits", "is_shown"),
    [
        (UnverifiedChoice.FITTING, True, True),
        (UnverifiedChoice.FITTING, False, False),
        (UnverifiedChoice.ALL, False, True),
        (UnverifiedChoice.NONE, True, False),
    ],
)
def test_what_is_shown_is_the_users_choice(choice: UnverifiedChoice, fits: bool, is_shown: bool) -> None:
    view = make_view(profile(fits=fits), settings=Settings(unverified_lines=choice))
    assert view is not None
    assert bool(list_hints(view, 1, 100)) is is_shown
    assert any("not this text was measured" in lens.command.title for lens in list_lenses(view)) is not is_shown
