"""Number of hints and lenses that a screen holds; the hottest lines of every kernel carry a number."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from lsprotocol.types import InlayHint

from gpa_lsp.editor.document_view import DocumentView
from gpa_lsp.editor.settings import Settings
from gpa_lsp.editor.snapshot import LoadedProfile
from gpa_lsp.editor.source.hints import MOST_CHARS, SCREEN_LINES, list_hints, thin_out
from tests.editor.views import make_profile, make_view
from tests.report_builder import build_kernel

LINES = 2000
HOT = range(10, 1810, 6)
"""300 lines."""


def make_flat(line_count: int, lines: range) -> LoadedProfile:
    """A kernel whose lines are all as hot."""
    listing = "\n".join(f"flat.cu:{line}  FMUL R2, R2, R3  ; long_scoreboard=10" for line in lines)
    text = "\n".join(f"x{number} *= 2;" for number in range(line_count))
    return make_profile(build_kernel(listing, name="flat"), texts={"flat.cu": text})


def view_of(profile: LoadedProfile, **settings: Any) -> DocumentView:
    (file,) = profile.files.values()
    assert file.lines is not None
    view = make_view(profile, "\n".join(file.lines), path=file.local_path, settings=Settings(**settings))
    assert view is not None
    return view


def lines(hints: list[InlayHint]) -> list[int]:
    return [hint.position.line + 1 for hint in hints]


def count_on_screens(shown: list[int]) -> int:
    return max(sum(start <= line < start + SCREEN_LINES for line in shown) for start in range(1, LINES))


def test_300_hot_lines_are_thinned_to_what_a_screen_bears() -> None:
    view = view_of(make_flat(LINES, HOT), min_share_ratio=0.001, most_hints_on_screen=4)
    shown = lines(list_hints(view, 1, LINES))
    assert count_on_screens(shown) == 4
    assert shown[-1] > LINES - 250, "every part of the file has some"
    part = lines(list_hints(view, 500, 600))
    assert part == [line for line in shown if 500 <= line <= 600], "scrolling changes nothing"


def test_the_rest_comes_on_demand() -> None:
    view = view_of(make_flat(LINES, HOT), min_share_ratio=0.001, most_hints_on_screen=0)
    assert lines(list_hints(view, 1, LINES)) == list(HOT)


@given(
    shares=st.dictionaries(st.integers(1, 300), st.floats(0.001, 1.0), max_size=120),
    leading=st.sets(st.integers(1, 300), max_size=3),
    most=st.integers(1, 12),
)
def test_no_screen_holds_more_than_it_bears(shares: dict[int, float], leading: set[int], most: int) -> None:
    shown = thin_out(shares, leading, most)
    assert leading <= set(shown) <= {*shares, *leading}
    assert shown == sorted(shown)
    for start in range(1, 300):
        assert sum(start <= line < start + SCREEN_LINES for line in shown) <= max(most, len(leading))
    hidden = sorted(shares.keys() - set(shown))
    for line in hidden:  # what was left out would have been one too many
        assert any(
            sum(start <= other < start + SCREEN_LINES for other in (*shown, line)) > most
            for start in range(line - SCREEN_LINES + 1, line + 1)
        )


NAMES = st.text("abcdefghijklmnopqrstuvwxyz_", min_size=1, max_size=60)


@given(file=NAMES, reason=st.sampled_from(["long_scoreboard", "no_instructions", "math_pipe_throttle", "wait"]))
def test_no_hint_is_longer_than_an_editor_shows(file: str, reason: str) -> None:
    listing = f"{file}.cuh:12345  LDG.E R2, [R4.64]  ; {reason}=40\nmain.cu:2  FMUL R2, R2, R3  ; {reason}=60"
    blame = f"1 <- 0  {reason}  memory_global R2"
    profile = make_profile(build_kernel(listing, name="k", blame=blame), texts={"main.cu": "a\nb\n"})
    (hint,) = list_hints(view_of(profile), 1, 10)
    label = hint.label if isinstance(hint.label, str) else "".join(part.value for part in hint.label)
    assert len(label) <= MOST_CHARS
    assert label.startswith("← ") and "12345" in label and label.endswith((reason, "…")) and reason in str(hint.tooltip)
