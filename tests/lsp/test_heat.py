"""Levels of heat as it is sent; marks of lines stand in ``tests/editor/scenes``."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpa_lsp.editor.protocol.features.marks import HEAT, list_heat, scale_ratio
from gpa_lsp.editor.settings import Abilities
from tests.editor.views import make_profile, make_view
from tests.report_builder import build_kernel


def test_a_document_without_marks_has_a_message() -> None:
    lists: dict[str, list[int]] = {"marks": [], "stale": [], "unverified": [], "simulated": []}
    assert HEAT.wrap("file:///k.cu", None, ()) == {"uri": "file:///k.cu", "version": None, **lists}


def test_only_clients_that_draw_it_get_it() -> None:
    assert HEAT.is_wanted(Abilities(heat=True))
    assert not HEAT.is_wanted(Abilities())


@pytest.mark.parametrize(("share", "level"), [(0.0101, 1), (0.05, 2), (0.25, 5), (0.64, 8), (1.0, 9)])
def test_levels_are_those_of_the_scale_people_see(share: float, level: int) -> None:
    taken = round(10_000 * share)
    listing = f"saxpy.cu:5  X  ; wait={taken}\nother.cu:1  Y  ; wait={10_000 - taken}"
    view = make_view(make_profile(build_kernel(listing, name="saxpy")))
    assert view is not None
    sent: Any = HEAT.wrap(view.uri, 3, list_heat(view))
    assert [mark["level"] for mark in sent["marks"]] == [level]


@given(st.floats(0, 1), st.floats(0, 1))
def test_more_is_never_less(one: float, other: float) -> None:
    low, high = sorted((one, other))
    assert 0 <= scale_ratio(low) <= scale_ratio(high) <= 1
