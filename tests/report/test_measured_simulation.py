"""Measured and simulated kernels side by side: shares are of each side's own samples, and the overlap is what both have."""

import pytest
from msgspec.structs import replace

from gpa_lsp.report.measured_simulation import (
    answer_comparison,
    answer_overview,
    compare_simulated,
    find_hottest,
    find_overlap,
)
from gpa_lsp.report.model import KernelReport
from tests.report_builder import build_kernel

MEASURED = """
    k.cu:3    LDG.E R2, [R4.64]       ; selected=10
    k.cu:4    FADD R3, R2, R2         ; long_scoreboard=60/50 selected=10
    k.cu:5    STG.E [R6.64], R3       ; lg_throttle=20
"""
SIMULATED = """
    k.cu:3    LDG.E R2, [R4.64]       ; selected=20
    k.cu:4    FADD R3, R2, R2         ; long_scoreboard=60/50 wait=40
    k.cu:5    STG.E [R6.64], R3       ; long_scoreboard=80
"""


def simulate(listing: str) -> KernelReport:
    kernel = build_kernel(listing, name="k")
    launches = tuple(replace(one, sampling=replace(one.sampling, is_simulated=True)) for one in kernel.launches)
    return replace(kernel, launches=launches)


def test_the_overlap_is_what_both_sides_have() -> None:
    (found,) = compare_simulated([build_kernel(MEASURED, name="k")], [simulate(SIMULATED)])
    assert found.reasons["long_scoreboard"] == (0.6, 0.7)
    assert found.reasons["lg_throttle"] == (0.2, 0.0)
    assert find_overlap(found.reasons) == pytest.approx(0.6 + 0.1)
    assert find_overlap(found.lines) == pytest.approx(0.1 + 0.5 + 0.2)
    assert find_overlap(found.instructions) == pytest.approx(0.1 + 0.5 + 0.2)
    assert find_hottest(found.lines) == (("k.cu", 4), ("k.cu", 4))
    assert len(set(find_hottest(found.instructions) or ())) == 1
    assert next(iter(found.lines.items())) == (("k.cu", 4), (0.7, 0.5))
    assert list(found.line_reasons["k.cu", 4]) == ["long_scoreboard", "wait", "selected"]
    assert found.line_reasons["k.cu", 4]["wait"] == (0.0, 0.2)


def test_a_kernel_agrees_with_itself() -> None:
    (found,) = compare_simulated([build_kernel(MEASURED, name="k")], [simulate(MEASURED)])
    said = " ".join(str(one.text) for one in answer_comparison(found).findings)
    assert "The hottest line is k.cu:4 on both sides; the hottest instruction is the same." in said
    assert find_overlap(found.reasons) == pytest.approx(1.0)
    assert (find_overlap(found.lines), find_overlap(found.instructions)) == (pytest.approx(1.0), pytest.approx(1.0))


def test_other_hottest_places_are_said() -> None:
    moved = SIMULATED.replace("long_scoreboard=60/50 wait=40", "wait=20").replace("=80", "=160")
    (found,) = compare_simulated([build_kernel(MEASURED, name="k")], [simulate(moved)])
    said = " ".join(str(one.text) for one in answer_comparison(found).findings)
    assert (
        "The hottest line is k.cu:4 as measured and k.cu:5 as simulated; the hottest instruction is not the same."
        in said
    )


def test_what_is_on_one_side_alone_or_simulated_on_both_is_not_compared() -> None:
    assert compare_simulated([build_kernel(MEASURED, name="k")], [simulate("k.cu:3   NOP   ;")]) == ()
    assert compare_simulated([], [simulate(SIMULATED)]) == ()
    assert compare_simulated([simulate(MEASURED)], [simulate(SIMULATED)]) == ()


def test_tables_hold_both_sides_by_reason_and_by_line() -> None:
    (found,) = compare_simulated([build_kernel(MEASURED, name="k")], [simulate(SIMULATED)])
    reasons, lines = answer_comparison(found).tables
    assert reasons.rows[0] == ("long_scoreboard", 0.6, 0.7)
    assert [row[:2] for row in lines.rows] == [
        ("k.cu:4", "all"), ("", "long_scoreboard"), ("", "wait"), ("", "selected"),
        ("k.cu:5", "all"), ("", "long_scoreboard"), ("", "lg_throttle"),
        ("k.cu:3", "all"), ("", "selected"),
    ]  # fmt: skip


def test_where_both_sides_are_furthest_apart_is_said_first_and_what_shares_are_of() -> None:
    (found,) = compare_simulated([build_kernel(MEASURED, name="k")], [simulate(SIMULATED)])
    said = " ".join(str(one.text) for one in answer_comparison(found).findings)
    assert "They are furthest apart in long_scoreboard on k.cu:5 (0 % measured, 40 % simulated), " in said
    assert "Shares are of each side's own samples: 100 measured, 200 simulated." in said
    (alike,) = compare_simulated([build_kernel(MEASURED, name="k")], [simulate(MEASURED)])
    assert "furthest" not in " ".join(str(one.text) for one in answer_comparison(alike).findings)


def test_several_kernels_have_an_overview() -> None:
    names = ("j", "k")
    found = compare_simulated(
        [build_kernel(MEASURED, name=name) for name in names],
        [replace(simulate(SIMULATED if name == "j" else MEASURED), name=name, mangled_name=name) for name in names],
    )
    answer = answer_overview(found)
    (table,) = answer.tables
    assert [(row[0], row[3]) for row in table.rows] == [("j", pytest.approx(0.7)), ("k", pytest.approx(1.0))]
    assert str(answer.summary) == "2 kernels on both sides; of 2 the hottest line is the same."
