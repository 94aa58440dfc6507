"""A kernel's time over its runs: as blocks, as a sentence, as a small picture and as a chart."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gpa_lsp.document.blocks import Figure, Paragraph, Table
from gpa_lsp.document.charts.pictures import draw_svg
from gpa_lsp.document.html_report.changes_section import build_course_chart, build_history_section
from gpa_lsp.document.time_course_words import describe_course, describe_step, draw_blocks
from gpa_lsp.foundation.prose import say
from gpa_lsp.report.changes import Verdict
from gpa_lsp.report.history.model import Commit
from tests.render.time_courses import make_commit, make_course

SVG = "{http://www.w3.org/2000/svg}"
TIMES = st.lists(st.none() | st.floats(1.0, 1e15), max_size=60)


@pytest.mark.parametrize(
    ("times", "blocks"),
    [
        ([], ""),
        ([None, None], ""),
        ([5.0], "▅"),
        ([1.0, 2.0, 8.0], "▁▲▂▲█"),
        ([8.0, 1.0], "█▁"),
        ([100.0, 101.0, 99.0], "▅▅▄"),
        ([2.0, None, 1.0], "█·▁"),
    ],
)
def test_blocks(times: list[float | None], blocks: str) -> None:
    assert draw_blocks(make_course(times)) == blocks


def test_commits_are_ticks_between_blocks() -> None:
    course = make_course([1.0, 1.0, 1.0, 1.0], {0: make_commit(1), 2: make_commit(2)})
    assert draw_blocks(course) == "▅▅╎▅▅"
    assert draw_blocks(make_course([1.0, 1.0], {1: make_commit(1)})) == "▅╎▅"  # unknown before


@pytest.mark.parametrize(
    ("times", "commits", "words"),
    [
        ([2e6], {}, ""),
        ([2e6, None], {}, ""),
        ([2e6, 1.2e6], {}, "2.00 ms → 1.20 ms over 2 runs; no regression"),
        ([1e6, 2e6], {}, "1.00 ms → 2.00 ms over 2 runs; slower in run 2 (+100 %)"),
        (
            [1e6, 2e6, 1e6],
            {0: make_commit(1), 1: make_commit(0xABC, "Unroll")},
            "1.00 ms → 1.00 ms over 3 runs; slower in run 2 (+100 %, 00000abc “Unroll”), recovered since; 2 commits",
        ),
        ([1e6, 2e6, 4e6], {}, "1.00 ms → 4.00 ms over 3 runs; 2 regressions, the last in run 3 (+100 %)"),
    ],
)
def test_one_sentence(times: list[float | None], commits: dict[int, Commit], words: str) -> None:
    assert describe_course(make_course(times, commits)) == words


def test_marks_are_named_where_they_are_drawn_and_cycles_are_said() -> None:
    course = make_course([1000.0, 2000.0], {0: make_commit(1), 1: make_commit(2)}, unit="cycles")
    said = describe_course(course, with_marks=True)
    assert said == "1,000 cycles → 2,000 cycles over 2 runs; ▲ slower in run 2 (+100 %, 00000002); ╎ 2 commits"


def test_many_runs_and_commits_leave_the_times_legible() -> None:
    course = make_course([1e6] * 40 + [3e6], {number: make_commit(number) for number in range(41)})
    blocks = draw_blocks(course)
    assert blocks == "…" + "▁" * 31 + "▲█", "the newest runs, without the commits"
    assert describe_course(course, with_marks=True).endswith("; 41 commits"), "no stroke is explained that is not drawn"
    few = make_course([1e6] * 40, {number: make_commit(number) for number in range(0, 40, 10)})
    assert draw_blocks(few).count("╎") == 3


def test_a_chart_has_a_line_for_a_named_commit_and_a_notch_for_others() -> None:
    course = make_course([1e6] * 12, {number: make_commit(number) for number in range(12)})
    rules = [layer for layer in build_course_chart(course, "times")["layer"] if layer["mark"]["type"] == "rule"]
    lines, notches, ranges = rules
    named = [tick["label"] for tick in lines["data"]["values"]]
    assert all(named) and len(named) + len(notches["data"]["values"]) == 12
    assert "y" not in lines["encoding"] and notches["encoding"]["y2"]["value"] < 20
    assert "high" in str(ranges)


def test_steps_of_a_list() -> None:
    runs = make_course([1.0, 2.0, 1.0, 1.0, None]).runs
    assert [describe_step(run) for run in runs] == [
        "",
        "+100 %, slower",
        "−50 %, faster",
        "no change beyond the noise",
        "no time to compare",
    ]
    assert describe_step(replace(runs[3], verdict=Verdict.SAME_CODE)) == "same code"
    assert (
        describe_step(replace(runs[1], note=say("work may differ: grid 8 → 80")))
        == "+100 %, work may differ: grid 8 → 80"
    )


@given(TIMES, st.sampled_from(["ns", "cycles"]))
def test_any_times_can_be_said_drawn_and_charted(times: list[float | None], unit: str) -> None:
    course = make_course(times, {position: make_commit(position) for position in range(0, 60, 7)}, unit=unit)
    known = sum(time is not None for time in times)
    assert bool(describe_course(course)) == (known > 1)
    blocks = draw_blocks(course)
    assert sum(mark not in "▲╎" for mark in blocks) == (len(times) if known else 0)
    if known:
        json.dumps(build_course_chart(course, "times"), allow_nan=False)


def test_a_chart_can_be_drawn_and_its_times_are_in_the_unit_that_suits() -> None:
    course = make_course([2.1e6, None, 1.2e6, 1.9e6], {0: make_commit(1, "</script>"), 3: make_commit(2)})
    chart = build_course_chart(course, "times")
    values = chart["data"]["values"]
    assert [row["time"] for row in values] == pytest.approx([2.1, 1.2, 1.9])
    assert [row["kind"] for row in values] == ["as before", "as before", "slower"]
    assert values[0]["at"] == "2025-11-21 12:00 UTC"
    assert chart["layer"][0]["data"]["values"] == [
        {"run": "1", "commit": "00000001 “</script>”", "label": "00000001"},
        {"run": "4", "commit": "00000002", "label": "00000002"},
    ]
    drawn = draw_svg({**chart, "width": 400})
    assert "time per launch, ms" in drawn
    assert "00000002" in drawn


def test_the_section_of_a_page_lists_every_run_newest_first() -> None:
    course = replace(make_course([1e6, 2e6, None], {1: make_commit(7, "Tile")}), run_count=9)
    section = build_history_section(course)
    figure, table, rest = section.blocks
    assert isinstance(figure, Figure) and isinstance(table, Table) and isinstance(rest, Paragraph)
    assert section.summary == "1.00 ms → 2.00 ms over 3 runs; slower in run 2 (+100 %, 00000007 “Tile”)"
    rows = [[text for text, _ in row] for row in table.rows]
    assert rows == [
        ["3", "2025-11-21 14:00 UTC", "–", "", "–", "no time to compare", "00000007 “Tile”"],
        ["2", "2025-11-21 13:00 UTC", "2.00 ms", "1.96 to 2.04 ms", "5", "▲ +100 %, slower", "00000007 “Tile”"],
        ["1", "2025-11-21 12:00 UTC", "1.00 ms", "0.980 to 1.02 ms", "5", "", ""],
    ]
    assert rest.text == "6 runs more, older or of another size: gpa-lsp history --limit 0"


def test_a_single_run_has_a_list_and_no_chart() -> None:
    section = build_history_section(make_course([1e6]))
    assert ([type(block) for block in section.blocks], section.summary) == ([Table], "One run")
