"""Hints at the ends of source lines."""

from typing import Any

import pytest
from lsprotocol.types import InlayHint

from gpa_lsp.editor.settings import Settings
from gpa_lsp.editor.snapshot import LoadedProfile
from gpa_lsp.editor.source.hints import list_hints
from tests.editor.sessions import Session
from tests.editor.test_causes import LISTING
from tests.editor.views import SOURCE, make_profile
from tests.report_builder import build_kernel

BLAME = "2 <- 1  long_scoreboard  memory_global R2 8c 1i"
URI = "file:///project/saxpy.cu"


def make(listing: str = LISTING, blame: str | None = BLAME) -> LoadedProfile:
    return make_profile(
        build_kernel(listing, name="saxpy", blame=blame), texts={"saxpy.cu": SOURCE, "scale.h": "a\nb\n"}
    )


def hints(
    text: str = SOURCE, profile: LoadedProfile | None = None, uri: str = URI, **settings: Any
) -> dict[int, InlayHint]:
    opened = {"/project/saxpy.cu": text, "/project/scale.h": "a\nb\n"}
    view = Session(profile or make(), opened, settings=Settings(**settings)).view(uri)
    assert view is not None
    return {hint.position.line + 1: hint for hint in list_hints(view, 1, 1000)}


def words(hint: InlayHint) -> str:
    return hint.label if isinstance(hint.label, str) else "".join(part.value for part in hint.label)


def links(hint: InlayHint) -> list[tuple[str, str, int]]:
    parts = [] if isinstance(hint.label, str) else hint.label
    return [
        (part.value, part.location.uri.rpartition("/")[2], part.location.range.start.line + 1)
        for part in parts
        if part.location is not None
    ]


def test_a_hint_leads_to_the_cause_and_from_the_cause_to_who_suffers() -> None:
    found = hints()
    assert {line: words(hint) for line, hint in found.items()} == {
        4: "10 % of samples",
        5: "→ line 6 · causes 80 %",
        6: "← line 5 · 60 % samples, long_scoreboard",
        7: "6.0 % samples, wait",
    }
    assert links(found[6]) == [("← line 5", "saxpy.cu", 5)]
    assert links(found[5]) == [("→ line 6", "saxpy.cu", 6)]


def test_hints_without_a_link_are_plain_text() -> None:
    assert isinstance(hints()[7].label, str)
    assert all(isinstance(hint.label, str) for hint in hints(profile=make(blame=None)).values())


def test_links_and_their_words_follow_edits() -> None:
    found = hints("// one\n// two\n" + SOURCE)
    assert links(found[8]) == [("← line 7", "saxpy.cu", 7)]


def test_from_a_header_the_link_leads_to_the_other_file() -> None:
    found = hints(uri="file:///project/scale.h")
    assert words(found[2]) == "← …xpy.cu:5 · 60 % samples, long_scoreboard"


def test_tooltips_say_what_the_shares_are_of() -> None:
    found = hints()
    assert found[6].tooltip == "60 % (±9.8) of the samples of saxpy were taken here: 60 % long_scoreboard"
    assert found[5].tooltip == (
        "80 % of the samples of saxpy are stalls that this line causes; "
        "24 % (±9.2) of the samples of saxpy were taken here: 20 % lg_throttle, 4.0 % selected"
    )


def test_a_line_has_one_share() -> None:
    profile = make(
        "saxpy.cu:4  LDG.E R2, [R4.64]  ; selected=30\nsaxpy.cu:5  FMUL R2, R2, R3  ; long_scoreboard=60",
        "1 <- 0  long_scoreboard memory_global R2",
    )
    found = hints(profile=profile)
    assert words(found[4]) == "→ line 5 · causes 67 %", "and not that 33 % of the samples were taken there, too"
    assert "33 % (±10) of the samples of saxpy were taken here" in str(found[4].tooltip)


def test_a_line_that_only_causes_has_a_hint_too() -> None:
    profile = make(
        "saxpy.cu:4  LDG.E R2, [R4.64]  ;\nsaxpy.cu:5  FMUL R2, R2, R3  ; long_scoreboard=60",
        "1 <- 0  long_scoreboard memory_global R2",
    )
    assert {line: words(hint) for line, hint in hints(profile=profile).items()} == {
        4: "→ line 5 · causes 100 %",
        5: "← line 4 · 100 % samples, long_scoreboard",
    }


@pytest.mark.parametrize(
    "blame",
    ["2 <- 1  long_scoreboard=5  memory_global R2", "2 <- ?  long_scoreboard no_producer"],
    ids=["hardly any of it", "nobody"],
)
def test_no_link_where_no_cause_stands_out(blame: str) -> None:
    assert hints(profile=make(blame=blame))[6].label == "60 % samples, long_scoreboard"


def test_no_link_to_the_line_itself_or_to_code_without_lines() -> None:
    listing = (
        "-  LDG.E R2, [R4.64]  ;\nsaxpy.cu:5  LDG.E R3, [R4.64]  ;\nsaxpy.cu:5  FMUL R2, R2, R3  ; long_scoreboard=60"
    )
    for definition in (0, 1):
        profile = make(listing, f"2 <- {definition}  long_scoreboard memory_global R2")
        assert {line: hint.label for line, hint in hints(profile=profile).items()} == {
            5: "100 % samples, long_scoreboard"
        }


def test_edited_lines_say_so_once_for_adjacent_ones() -> None:
    edited = SOURCE.replace("2 * x[i]", "3 * x[i]").replace("scale(y[i])", "twice(y[i])")
    found = hints(edited)
    assert {line: words(hint) for line, hint in found.items()} == {
        4: "10 % of samples",
        5: "edited since measured",
        7: "6.0 % samples, wait",
    }
    assert isinstance(found[5].label, str)


def test_a_victim_of_an_edited_line_has_no_link() -> None:
    assert hints(SOURCE.replace("2 * x[i]", "3 * x[i]"))[6].label == "60 % samples, long_scoreboard"


def test_the_users_threshold_counts_for_both_directions() -> None:
    assert {line: words(hint) for line, hint in hints(min_share_ratio=0.5).items()} == {
        4: "10 % of samples",  # among the three hottest, which carry a number in any case
        5: "→ line 6 · causes 80 %",
        6: "← line 5 · 60 % samples, long_scoreboard",
    }
    assert hints(show_inlay_hints=False) == {}
