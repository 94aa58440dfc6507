"""Def-use pairs of single instructions."""

from gpa_lsp.diagnosis.blame.model import BlameCategory, Dependency
from gpa_lsp.report.pairs import (
    InstructionPair,
    count_unattributed,
    join_by_instruction,
    list_causes,
    list_own,
    list_victims,
)
from tests.report_builder import build_kernel

KERNEL = build_kernel(
    """
    k.cu:1  LDG.E R2, [R4.64]         ; selected=4 lg_throttle=3
    k.cu:1  LDG.E R3, [R6.64]         ; selected=4
    k.cu:2  FFMA R2, R2, R3, R6       ; long_scoreboard=60/50 short_scoreboard=8 wait=5 selected=2
    k.cu:3  STG.E [R8.64], R2         ; wait=9
    """,
    blame="""
    2 <- 0   long_scoreboard=40/30   memory_global R2 6c 2i g1
    2 <- 1   long_scoreboard=20/20   memory_global R3 4c 1i g1
    2 <- 1   short_scoreboard=8      execution_shared R3
    2 <- ?   wait=5                  no_producer
    3 <- 2   wait=9                  execution_arithmetic R2 4c 1i
    """,
)


def test_causes_are_ranked_and_told_by_reason() -> None:
    first, second, third = list_causes(KERNEL, 2)
    assert first == InstructionPair(
        row=0,
        reason="long_scoreboard",
        category=BlameCategory.MEMORY_GLOBAL,
        dependency=Dependency.READ_AFTER_WRITE,
        samples=40.0,
        separable_samples=0.0,
        resource=2,
        distance_cycles=6,
    )
    assert [(pair.row, pair.reason, bool(pair.separable_samples)) for pair in (second, third)] == [
        (1, "long_scoreboard", False),
        (1, "short_scoreboard", True),
    ]
    assert third.distance_cycles is None
    joined = join_by_instruction(list_causes(KERNEL, 2))
    assert [(pair.row, samples, pair.reason) for samples, pair in joined] == [
        (0, 40.0, "long_scoreboard"),
        (1, 28.0, "long_scoreboard"),
    ]


def test_victims_are_the_same_pairs_from_the_other_end() -> None:
    assert [(pair.row, pair.samples, bool(pair.separable_samples)) for pair in list_victims(KERNEL, 1)] == [
        (2, 20.0, False),
        (2, 8.0, True),
    ]
    assert [pair.row for pair in list_victims(KERNEL, 2)] == [3]
    assert list_victims(KERNEL, 3) == list_causes(KERNEL, 0) == ()


def test_the_rest_of_the_samples_is_accounted_for() -> None:
    assert list_own(KERNEL, 0) == (("selected", 4.0), ("lg_throttle", 3.0))
    assert list_own(KERNEL, 2) == (("selected", 2.0),)
    assert (count_unattributed(KERNEL, 2), count_unattributed(KERNEL, 3)) == (5.0, 0.0)


def test_without_blame_nobody_is_blamed() -> None:
    plain = build_kernel("k.cu:1  EXIT  ; wait=1")
    assert (list_causes(plain, 0), list_victims(plain, 0), list_own(plain, 0)) == ((), (), ())
    assert count_unattributed(plain, 0) == 0.0
