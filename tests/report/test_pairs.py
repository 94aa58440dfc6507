"""Def-use pairs seen from source lines."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpa_lsp.diagnosis.blame.model import BlameCategory, Dependency
from gpa_lsp.foundation.locations import Frame, SourceLine
from gpa_lsp.report.model import KernelReport
from gpa_lsp.report.pairs import LineBlame, PairIndex, build_pair_index
from tests.conftest import examples
from tests.report_builder import Row, build_kernel

LISTING = """
    k.cu:3                 LDG.E R2, [R4.64]   ; selected=4
    k.cu:4                 LDG.E R3, [R6.64]   ; selected=4
    k.cu:5                 FADD R2, R2, R3     ; long_scoreboard=60/50 wait=6/2
    k.cu:5                 FMUL R2, R2, R2     ; wait=9/4
    -                      MUFU.RCP R5, R2     ; short_scoreboard=30/30
    k.cu:6                 FADD R6, R5, R2     ; short_scoreboard=12/11
    -                      EXIT                ; drain=3
"""

BLAME = """
    2 <- 0  long_scoreboard=40/30  memory_global R2 8c 2i g0
    2 <- 1  long_scoreboard=20/20  memory_global R3 4c 1i g0
    2 <- ?  wait=2/1  no_producer
    3 <- 2  wait  execution_arithmetic/guard R2 4c 1i
    4 <- 3  short_scoreboard  execution_special
    5 <- 4  short_scoreboard  execution_special R5 9c 1i
"""


def line(number: int, file: str = "k.cu") -> SourceLine:
    return SourceLine(file=file, line=number)


def make_index(listing: str = LISTING, blame: str = BLAME) -> PairIndex:
    index = build_pair_index(build_kernel(listing, blame=blame))
    assert index is not None
    return index


def show(pairs: Any) -> list[tuple[str, str, float, float]]:
    return [(str(pair.place), pair.reason, pair.samples, pair.latency_samples) for pair in pairs]


def test_what_a_line_waits_for_most_samples_first() -> None:
    index = make_index()
    assert show(index.list_waits(line(5))) == [
        ("k.cu:3", "long_scoreboard", 40, 30),
        ("k.cu:4", "long_scoreboard", 20, 20),
        ("k.cu:5", "wait", 9, 4),
    ]
    assert index.list_waits(line(3)) == ()


def test_who_waits_for_a_line() -> None:
    index = make_index()
    assert show(index.list_waiters(line(3))) == [("k.cu:5", "long_scoreboard", 40, 30)]
    assert show(index.list_waiters(line(5))) == [("None", "short_scoreboard", 30, 30), ("k.cu:5", "wait", 9, 4)]
    assert show(index.list_waits(line(6))) == [("None", "short_scoreboard", 12, 11)]


def test_a_pair_names_its_heaviest_instructions() -> None:
    (first, second, third) = make_index().list_waits(line(5))
    assert (first.use_row, first.def_row, first.resource, first.category) == (2, 0, 2, BlameCategory.MEMORY_GLOBAL)
    assert (first.distance_cycles, first.edge_count) == (8, 1)
    assert (first.separable_samples, second.separable_samples, third.separable_samples) == (0, 0, 9)
    assert third.dependency is Dependency.GUARD
    (unknown,) = make_index().list_waiters(line(5))[:1]
    assert (unknown.resource, unknown.distance_cycles) == (None, None)


def test_the_samples_of_a_line_by_what_became_of_them() -> None:
    index = make_index()
    assert index.measure_line(line(5)) == LineBlame(
        waiting_samples=69, own_samples=4, unattributed_samples=2, causing_samples=39
    )
    assert index.measure_line(line(3)) == LineBlame(
        waiting_samples=0, own_samples=4, unattributed_samples=0, causing_samples=40
    )
    assert index.measure_line(line(99)) == LineBlame(
        waiting_samples=0, own_samples=0, unattributed_samples=0, causing_samples=0
    )
    assert set(index.places) == {line(number) for number in (3, 4, 5, 6)}


def test_pairs_of_the_same_two_lines_are_one() -> None:
    listing = """
        k.cu:3  LDG.E R2, [R4.64]   ;
        k.cu:3  LDG.E R3, [R6.64]   ;
        k.cu:5  FADD R2, R2, R7     ; long_scoreboard=10/5
        k.cu:5  FADD R3, R3, R7     ; long_scoreboard=30/9
    """
    blame = "2 <- 0 long_scoreboard R2\n3 <- 1 long_scoreboard R3"
    (pair,) = make_index(listing, blame).list_waits(line(5))
    assert (pair.samples, pair.latency_samples, pair.edge_count, pair.use_row) == (40, 14, 2, 3)


INLINED = """
    load@m.h:2 < kernel@k.cu:7     LDG.E R2, [R4.64]  ;
    load@m.h:2 < kernel@k.cu:8     LDG.E R3, [R4.64]  ;
    load@m.h:4 < kernel@k.cu:8     FADD R3, R3, R3    ; long_scoreboard=20
    mul@m.h:9 < kernel@k.cu:9      FMUL R2, R2, R3    ; long_scoreboard=8 wait=2
"""
INLINED_BLAME = "2 <- 1 long_scoreboard\n3 <- 0 long_scoreboard\n3 <- 2 wait"


def test_inlined_instructions_are_found_from_every_line_of_their_chain() -> None:
    index = make_index(INLINED, INLINED_BLAME)
    for place in (line(9), line(9, "m.h")):
        assert show(index.list_waits(place)) == [("k.cu:7", "long_scoreboard", 8, 0), ("k.cu:8", "wait", 2, 0)]
    for place in (line(8), line(4, "m.h")):
        assert show(index.list_waits(place)) == [("m.h:2", "long_scoreboard", 20, 0)]
    assert show(index.list_waiters(line(2, "m.h"))) == [
        ("m.h:4", "long_scoreboard", 20, 0),
        ("k.cu:9", "long_scoreboard", 8, 0),
    ]


def test_a_line_twice_in_a_chain_counts_once() -> None:
    listing = """
        k.cu:1                              LDG.E R2, [R4.64]  ;
        f@k.cu:5 < f@k.cu:5 < kernel@k.cu:2  FADD R2, R2, R2    ; long_scoreboard=6
    """
    index = make_index(listing, "1 <- 0 long_scoreboard")
    assert show(index.list_waits(line(5))) == [("k.cu:1", "long_scoreboard", 6, 0)]
    assert index.measure_line(line(5)).waiting_samples == 6


def test_no_blame_no_index() -> None:
    assert build_pair_index(build_kernel(LISTING)) is None
    assert list(make_index("", "").places) == []


@st.composite
def _kernels(draw: st.DrawFn) -> KernelReport:
    frames = st.builds(Frame, file=st.sampled_from(["a.cu", "b.h"]), line=st.integers(1, 3), function=st.just("f"))
    chains = st.none() | st.lists(frames, min_size=1, max_size=3).map(tuple)
    rows = [
        Row(
            function="kernel",
            pc_offset=16 * number,
            text="NOP",
            chain=draw(chains),
            samples={"wait": (draw(st.integers(1, 50)), 0), "long_scoreboard": (draw(st.integers(1, 50)), 0)},
        )
        for number in range(draw(st.integers(1, 8)))
    ]
    pairs = []
    for use in range(len(rows)):
        for reason in rows[use].samples:
            target = draw(st.integers(-1, len(rows) - 1))
            pairs.append(f"{use} <- {'?' if target < 0 else target} {reason}")
    return build_kernel(rows, blame="\n".join(pairs))


@examples(60)
@given(kernel=_kernels())
def test_the_pairs_of_a_line_add_up_to_its_samples(kernel: KernelReport) -> None:
    index = build_pair_index(kernel)
    assert index is not None
    inclusive = {row.source_line: row.inclusive_samples for row in kernel.lines if row.source_line is not None}
    assert set(index.places) == set(inclusive)
    for place, samples in inclusive.items():
        found = index.measure_line(place)
        assert sum(pair.samples for pair in index.list_waits(place)) == pytest.approx(found.waiting_samples)
        assert sum(pair.samples for pair in index.list_waiters(place)) == pytest.approx(found.causing_samples)
        parts = found.waiting_samples + found.own_samples + found.unattributed_samples
        assert parts == pytest.approx(samples)
