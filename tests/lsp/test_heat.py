"""Heat as it is sent."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpa_lsp.editor.abilities import Abilities
from gpa_lsp.editor.document_view import DocumentView
from gpa_lsp.editor.protocol.features.marks import HEAT, list_heat, scale_ratio
from gpa_lsp.editor.settings import Settings
from tests.editor.test_metrics import BLAME, LISTING
from tests.editor.views import SOURCE, make_profile, make_view
from tests.report_builder import build_kernel


def view(text: str = SOURCE, listing: str = LISTING, blame: str | None = BLAME, **settings: Any) -> DocumentView:
    kernel = build_kernel(listing, name="saxpy(float*, float*)", blame=blame)
    found = make_view(make_profile(kernel, texts={"saxpy.cu": SOURCE}), text, settings=Settings(**settings))
    assert found is not None
    return found


def send(document: DocumentView, version: int | None = 3) -> dict[str, Any]:
    params = HEAT.wrap(document.uri, version, list_heat(document))
    assert isinstance(params, dict)
    return params


def marks(document: DocumentView) -> list[tuple[int, str, int]]:
    return [(mark["line"], mark["kind"], mark["level"]) for mark in send(document)["marks"]]


def test_a_mark_per_line_says_what_dominates_there() -> None:
    assert marks(view()) == [(3, "suffers", 4), (4, "causes", 8), (5, "suffers", 8)]
    assert send(view())["marks"][1] == {
        "line": 4,
        "ratio": scale_ratio(0.66 / 0.9),
        "level": 8,
        "kind": "causes",
        "kernel": "saxpy",
        "text": "causes 73 %, mostly long_scoreboard",
    }


def test_the_message_names_the_document_and_its_version() -> None:
    params = send(view(), version=7)
    assert (params["uri"], params["version"], params["stale"]) == ("file:///project/saxpy.cu", 7, [])
    assert HEAT.wrap("file:///k.cu", None, ()) == {
        "uri": "file:///k.cu",
        "version": None,
        "marks": [],
        "stale": [],
        "unverified": [],
        "simulated": [],
    }


def test_without_blame_lines_only_suffer() -> None:
    assert {kind for _, kind, _ in marks(view(blame=None))} == {"suffers"}


def test_cold_lines_are_left_out_unless_the_user_wants_hints_there() -> None:
    assert 6 not in [line for line, _, _ in marks(view())]
    assert 6 in [line for line, _, _ in marks(view(min_share_ratio=0.001))]


def test_lines_move_with_edits_and_changed_ones_are_stale() -> None:
    edited = view("// new\n" + SOURCE.replace("scale(y[i])", "twice(y[i])"))
    assert [line for line, _, _ in marks(edited)] == [4, 5]
    assert send(edited)["stale"] == [6]


def test_the_hottest_kernel_of_a_line_speaks_for_it() -> None:
    kernels = [
        build_kernel("saxpy.cu:5  X  ; barrier=30\nsaxpy.cu:4  X  ; wait=70", name="one", mangled_name="one"),
        build_kernel("saxpy.cu:5  X  ; barrier=90\nsaxpy.cu:4  X  ; wait=10", name="other", mangled_name="other"),
    ]
    found = make_view(make_profile(*kernels))
    assert found is not None
    assert [(mark["line"], mark["kernel"]) for mark in send(found)["marks"]] == [(3, "one"), (4, "other")]


def test_only_clients_that_draw_it_get_it() -> None:
    assert HEAT.is_wanted(Abilities(heat=True))
    assert not HEAT.is_wanted(Abilities())


@pytest.mark.parametrize(("share", "level"), [(0.0101, 1), (0.05, 2), (0.25, 5), (0.64, 8), (1.0, 9)])
def test_levels_are_those_of_the_scale_people_see(share: float, level: int) -> None:
    taken = round(10_000 * share)
    listing = f"saxpy.cu:5  X  ; wait={taken}\nother.cu:1  Y  ; wait={10_000 - taken}"
    assert [found for line, _, found in marks(view(listing=listing, blame=None)) if line == 4] == [level]


@given(st.floats(0, 1), st.floats(0, 1))
def test_more_is_never_less(one: float, other: float) -> None:
    low, high = sorted((one, other))
    assert 0 <= scale_ratio(low) <= scale_ratio(high) <= 1
