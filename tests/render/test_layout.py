"""Tables and running text keep to their width, and never cut a number."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpa_lsp.document.layout import (
    Align,
    Column,
    Style,
    count_cells,
    cut,
    flow,
    join_facts,
    join_lines,
    lay_out_table,
    read_plain,
    wrap,
)
from gpa_lsp.foundation.prose import Code, Place, say

COLUMNS = (
    Column(title="n", align=Align.RIGHT),
    Column(title="bar", drop_order=1),
    Column(title="path", can_shrink=True, min_chars=8, keeps_end=True),
    Column(title="text", can_shrink=True, min_chars=6, drop_order=1),
)


def lay_out(*rows: tuple[str, ...], width: int | None = None) -> list[str]:
    spans = [[(text, Style.PLAIN) for text in row] for row in rows]
    return [read_plain(line) for line in lay_out_table(COLUMNS, spans, width=width, indent=0)]


ROWS = (("1,000", "####", "/a/folder/k.cu:7", "x = y;"), ("9", "#", "k.cu:8", "a longer text"))


def test_as_wide_as_it_takes() -> None:
    assert lay_out(*ROWS) == [
        "    n  bar   path              text",
        "1,000  ####  /a/folder/k.cu:7  x = y;",
        "    9  #     k.cu:8            a longer text",
    ]


def test_columns_shrink_then_optional_ones_go() -> None:
    assert lay_out(*ROWS, width=32)[1:] == ["1,000  ####  …/k.cu:7  x = y;", "    9  #     k.cu:8    a longer…"]
    shown = ["1,000  …/k.cu:7  x = y;", "    9  k.cu:8    a longer…", "not shown at this width:", "bar"]
    assert lay_out(*ROWS, width=26)[1:] == shown
    assert lay_out(*ROWS, width=15)[1:] == [
        "1,000  …/k.cu:7",
        "    9  k.cu:8",
        "not shown at",
        "this width:",
        "bar, text",
    ]


def test_titles_take_several_lines_before_anything_is_cut() -> None:
    columns = (Column(title="line", can_shrink=True), Column(title="bytes per update and thread", align=Align.RIGHT))
    spans = [[("smooth.cu:14", Style.PLAIN), ("1,024", Style.PLAIN)]]
    shown = [read_plain(line) for line in lay_out_table(columns, spans, width=30, indent=0)]
    assert shown == [
        "               bytes per",
        "              update and",
        "line              thread",
        "smooth.cu:14       1,024",
    ]


def test_the_last_columns_go_first_where_they_say_so() -> None:
    columns = [Column(title=title, drop_order=order) for title, order in (("line", 0), ("requests", 2), ("hits", 1))]
    rows = [[(text, Style.PLAIN) for text in ("smooth.cu:14", "1,024", "12 %")]]
    assert [read_plain(line) for line in lay_out_table(columns, rows, width=24, indent=0)] == [
        "line          requests",
        "smooth.cu:14  1,024",
        "not shown at this width:",
        "hits",
    ]


@pytest.mark.parametrize(
    ("text", "cells", "shown"),
    [
        ("ALU pipe (integer adds, logic)", 19, "ALU pipe (integer …"),
        ("loads: sectors of a warp", 12, "loads: …"),
        ("short_scoreboard 59 %, wait 20 %", 21, "short_scoreboard …"),
        ("testSortedSegments<int, &cmp<int>>", 12, "testSortedS…"),
        ("a very_long_word_that_takes_the_room", 14, "a very_long_w…"),
    ],
)
def test_only_a_word_that_takes_the_room_is_cut(text: str, cells: int, shown: str) -> None:
    assert cut(text, cells) == shown


@pytest.mark.parametrize(
    ("path", "cells", "shown"),
    [
        ("/work/kernels/matmul.cu:128", 20, "…/matmul.cu:128"),
        ("transpose.cu:4", 12, "trans…e.cu:4"),
        ("/work/a_long_name_of_a_source.cu:1234", 18, "a_long_n…e.cu:1234"),
    ],
)
def test_paths_lose_folders_then_the_middle_of_a_name(path: str, cells: int, shown: str) -> None:
    assert cut(path, cells, keeps_end=True) == shown


@pytest.mark.parametrize("width", range(8, 60))
def test_a_number_keeps_its_percent_sign(width: int) -> None:
    text = "lines are used, of the requests over lines, by loads 100 % and by stores 97 % of the time"
    for line in (*wrap(text, width), *flow((("- ", Style.PLAIN), (text, Style.PLAIN)), width)):
        assert not read_plain(line).lstrip().startswith("%")


def test_empty_columns_and_tables_are_left_out() -> None:
    assert lay_out(("1", "", "k.cu", "")) == ["n  path", "1  k.cu"]
    assert lay_out() == []


def test_wide_characters_take_two_cells() -> None:
    assert lay_out(("1", "", "カーネル.cu", "x"), ("2", "", "k.cu", "y"))[1:] == [
        "1  カーネル.cu  x",
        "2  k.cu         y",
    ]


@given(st.text(max_size=30), st.integers(1, 30), st.booleans())
def test_cut_text_fits(text: str, cells: int, keeps_end: bool) -> None:
    fitted = cut(text, cells, keeps_end=keeps_end)
    assert count_cells(fitted) <= cells
    assert fitted == text or "…" in fitted


@pytest.mark.parametrize("width", [None, 12, 30])
def test_wrapped_text_loses_no_word(width: int | None) -> None:
    text = "a few words and_one_that_is_longer than the line"
    lines = [read_plain(line) for line in wrap(text, width)]
    assert " ".join(lines).split() == text.split()
    assert all(width is None or len(line) <= width or " " not in line.strip() for line in lines)


def test_hanging_lines() -> None:
    line = (("k.cu:1: ", Style.PATH), ("three words here", Style.PLAIN))
    for width, shown in (
        (None, ["k.cu:1: three words here"]),
        (24, ["k.cu:1: three words here"]),
        (15, ["k.cu:1: three", "    words here"]),
        (2, ["k.cu:1: three", "    words", "    here"]),
    ):
        assert [read_plain(part) for part in flow(line, width, indent=0)] == shown


def test_facts_break_between_facts() -> None:
    assert (
        join_lines(wrap(join_facts(["46 SMs", "1.73 GHz", "8 KiB shared"]), 22))
        == "  46 SMs · 1.73 GHz ·\n  8 KiB shared\n"
    )


def test_places_and_code_of_a_sentence_have_their_own_styles_across_lines() -> None:
    place = Place(file="/src/k.cu", line=12, shown_file="k.cu")
    sentence = say("Put {code}, at {place}.", code=Code(text="#pragma unroll"), place=place)
    assert list(wrap(sentence, None)) == [
        (
            ("  ", Style.PLAIN),
            ("Put ", Style.PLAIN),
            ("`#pragma unroll`", Style.CODE),
            (", at ", Style.PLAIN),
            ("line 12 of k.cu", Style.PATH),
            (".", Style.PLAIN),
        )
    ]
    for lines in (wrap(sentence, 20), flow((("  ", Style.PLAIN), (sentence, Style.PLAIN)), 20, indent=0)):
        shown = [read_plain(line) for line in lines]
        assert len(shown) > 1
        assert max(map(len, shown)) <= 20
        assert " ".join(" ".join(shown).split()) == sentence
