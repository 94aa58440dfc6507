"""Characters that are written out and those that stay, over all of Unicode."""

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpa_lsp.foundation.visible_text import (
    keep_length,
    make_lines_visible,
    make_one_line,
    make_values_visible,
    make_visible,
    shorten,
)
from tests.conftest import examples
from tests.hostile_names import KINDLY, STEERING, find_unseen

ANYTHING = st.text(st.characters(exclude_categories=()), max_size=40)
CONTROLS = {"Cc", "Cs", "Zl", "Zp"}
# Signs of Arabic, Syriac and Kaithi that Unicode counts as formats although they are drawn.
VISIBLE_FORMATS = "\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd"


@pytest.mark.parametrize("text", KINDLY)
def test_names_that_people_give_stay(text: str) -> None:
    assert make_visible(text) == make_lines_visible(text) == keep_length(text) == make_one_line(text) == text


@pytest.mark.parametrize("text", STEERING)
def test_what_steers_is_written_out(text: str) -> None:
    shown = make_visible(f"a{text}b")
    assert find_unseen(shown) == [] and "\n" not in shown and "\\" in shown
    assert len(keep_length(text)) == len(text) and find_unseen(keep_length(text)) == []


def test_every_control_of_unicode_is_written_out() -> None:
    for code in range(0x110000):
        one = chr(code)
        category = unicodedata.category(one)
        if category in CONTROLS or (category == "Cf" and code < 0x3000 and one not in VISIBLE_FORMATS):
            assert make_visible(one) == ascii(one)[1:-1], ascii(one)
        elif category[0] in "LMNPS" and one.isprintable() and not unicodedata.name(one, "").endswith("FILLER"):
            assert make_visible(one) in (one, ascii(one)[1:-1])
            assert make_visible(one) == one or unicodedata.category(one) in ("Mn", "Lo"), ascii(one)


@given(ANYTHING)
def test_doing_it_twice_does_no_harm(text: str) -> None:
    for make in (make_visible, make_lines_visible, make_one_line, keep_length):
        assert make(make(text)) == make(text)
        make(text).encode("utf-8")


@given(ANYTHING)
def test_lines_are_those_of_the_text(text: str) -> None:
    assert make_lines_visible(text).count("\n") == text.count("\n")
    assert make_lines_visible(text).replace("\t", "\\t").split("\n") == [
        make_visible(line) for line in text.split("\n")
    ]


def test_joiners_stay_where_they_join() -> None:
    assert make_visible("👩\u200d💻 خانه\u200cها") == "👩\u200d💻 خانه\u200cها"
    assert make_visible("pass\u200dword\u200c") == "pass\\u200dword\\u200c"


@examples(60)
@given(
    st.recursive(ANYTHING | st.integers() | st.none(), lambda inner: st.lists(inner) | st.dictionaries(ANYTHING, inner))
)
def test_values_keep_their_shape(value: object) -> None:
    shown = make_values_visible(value)
    assert type(shown) is type(value)
    assert find_unseen(repr(shown).replace("\\n", "").replace("\\t", "")) == []


# Texts that are cut.

WORDS = st.lists(
    st.sampled_from(["emulated", "22", "of", "16,384", "blocks", "≥12.3", "µs", "·", "8.0–9.1", "×", "−44", "%"]),
    min_size=1,
    max_size=14,
).map(" ".join)
NUMBER = re.compile(r"\d[\d.,–]*")


@given(WORDS, st.integers(min_value=2, max_value=90))
def test_every_number_that_is_left_is_a_number_of_the_text(text: str, room: int) -> None:
    short = shorten(text, room)
    assert len(short) <= room or short == text
    numbers = NUMBER.findall(text)
    for number in NUMBER.findall(short.removesuffix("…")):
        assert number in numbers or " " not in text[:room]


@given(WORDS, st.integers(min_value=30, max_value=90))
def test_the_kept_part_is_always_there(text: str, room: int) -> None:
    short = shorten(text, room, "22 of 16,384 blocks")
    assert short.endswith(" · 22 of 16,384 blocks")
    assert len(short) <= room


def test_a_text_that_fits_is_left_as_it_is() -> None:
    assert shorten("22 of 16,384 blocks", 19) == "22 of 16,384 blocks"
    assert shorten("emulated 22 of 16,384", 18) == "emulated 22 of…"
    assert shorten("one_word_that_is_long", 9) == "one_word…"
