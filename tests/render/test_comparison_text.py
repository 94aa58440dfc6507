"""A comparison as people and programs read it."""

import json
from dataclasses import replace

from gpa_lsp.render.comparison_text import make_comparison_document, render_comparison
from gpa_lsp.render.layout import join_lines
from gpa_lsp.render.places import PlaceNames
from gpa_lsp.report.compare import compare_reports
from gpa_lsp.report.comparison import Comparison
from tests.report.test_compare import ADVICE, AFTER, BEFORE, measured
from tests.report_builder import build_kernel, build_report


def example() -> Comparison:
    before = measured(build_kernel(BEFORE, advice=ADVICE, name="saxpy"), 8e6, unit="ns")
    after = measured(build_kernel(AFTER, name="saxpy"), 4e6, unit="ns")
    gone = replace(build_kernel(BEFORE), name="old_one", mangled_name="old_one")
    return compare_reports(build_report(before, gone), build_report(after))


def test_text() -> None:
    text = join_lines(render_comparison(example(), PlaceNames()))
    assert text.splitlines()[:2] == [
        "saxpy  8.00 ms → 4.00 ms  2.00×  faster",
        "  between 1.94× and 2.06× (too few launches to see the noise, 3 % and the launch overhead assumed)",
    ]
    rows = [line.split() for line in text.splitlines()]
    assert ["5.60", "ms", "1.60", "ms", "−4.00", "ms", "long_scoreboard"] in rows
    assert any(row[-1:] == ["k.cu:5"] for row in rows)
    assert any("taken" in row and "1.80×" in row and "2.00×" in row for row in rows)
    assert text.rstrip().endswith("only before: old_one")


def test_no_line_is_wider_than_asked_where_words_can_wrap() -> None:
    text = join_lines(render_comparison(example(), PlaceNames(), 72))
    assert max(len(line) for line in text.splitlines()) <= 72


def test_nothing_in_common() -> None:
    found = compare_reports(build_report(build_kernel(BEFORE)), build_report())
    assert "no kernel is in both reports" in join_lines(render_comparison(found, PlaceNames()))


def test_json_document() -> None:
    document = json.loads(json.dumps(make_comparison_document(example())))
    (kernel,) = document["kernels"]
    assert document["schema"] == "gpa-lsp/comparison/1"
    assert kernel["verdict"] == "faster"
    assert kernel["time"]["speedup"] == 2.0
    assert [(row["optimizer"], row["fate"]) for row in kernel["advice"]] == [
        ("code_reordering", "taken"),
        ("strength_reduction", "taken"),
    ]
    assert document["only_before"] == ["old_one"]
