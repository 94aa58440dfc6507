"""Long- and short-scoreboard samples and whom they are blamed on."""

import re

import numpy as np
import pytest
from hypothesis import given
from msgspec.structs import replace

from gpa_lsp.diagnosis.blame.blame import blame_kernel
from gpa_lsp.diagnosis.blame.model import BlameCategory, BlameEdges, Dependency, KernelBlame, UnattributedCause
from gpa_lsp.diagnosis.blame.scoreboard_stalls import ScoreboardBlame, blame_scoreboards
from gpa_lsp.diagnosis.blame.view import FunctionView
from gpa_lsp.diagnosis.blame.work import WorkBudget
from tests.advice.subjects import list_rows
from tests.blame.listings import sections
from tests.blame.written_views import view_text
from tests.rows.written import write_kernel


def blame(view: FunctionView) -> ScoreboardBlame:
    return blame_scoreboards(view, WorkBudget.for_function(len(view)))


def blame_text(text: str, compute_capability: tuple[int, int] = (8, 6)) -> ScoreboardBlame:
    return blame(view_text(text, compute_capability))


def list_shares(found: ScoreboardBlame) -> list[tuple[int, int, float]]:
    return [(edge.use_row, edge.def_row, edge.all_samples) for edge in list_rows(found.edges)]


def test_a_load_is_blamed_for_its_use() -> None:
    found = blame_text("""
        B-:R-:W0:-:S02  LDG.E.64 R2, [R4.64]
        B-:R-:W-:-:S04  IADD3 R8, R8, 0x1, RZ
        B0:R-:W-:-:S04  FADD R3, R2, R3         # long_scoreboard=60/50
    """)
    row = (2, 0, 0, 60, 50, BlameCategory.MEMORY_GLOBAL, Dependency.READ_AFTER_WRITE, 2, 0, 6, 2)
    assert found.edges == BlameEdges.from_rows([row])
    assert len(found.unattributed) == 0
    assert found.pending_pairs == [(2, 0)]


TWO_LOADS = """
    B-:R-:W0:-:S02  LDG.E R2, [R4.64]           # - | selected=1 | global_sectors=30
    B-:R-:W0:-:S02  LDG.E R3, [R6.64]           # - | selected=1 | global_sectors=10
    B0:R-:W-:-:S04  FADD R3, R2, R3             # - | long_scoreboard=60/40
"""


def test_the_loads_behind_one_counter_are_one_group_divided_by_sectors() -> None:
    found = blame_text(TWO_LOADS)
    assert list_shares(found) == [(2, 0, 45), (2, 1, 15)]
    assert [edge.latency_samples for edge in list_rows(found.edges)] == [30, 10]
    assert [edge.group for edge in list_rows(found.edges)] == [0, 0]


@pytest.mark.parametrize("less", [" | global_sectors=30", " | global_sectors=10"])
def test_without_sectors_of_all_they_share_evenly(less: str) -> None:
    assert list_shares(blame_text(TWO_LOADS.replace(less, ""))) == [(2, 0, 30), (2, 1, 30)]


def test_a_load_that_moved_nothing_is_not_blamed() -> None:
    idle = TWO_LOADS.replace("global_sectors=10", "global_sectors=0")
    assert list_shares(blame_text(idle)) == [(2, 0, 60)]
    assert list_shares(blame_text(idle.replace("global_sectors=30", "global_sectors=0"))) == [(2, 0, 30), (2, 1, 30)]


def test_counters_that_are_waited_for_as_often_are_groups_of_equal_weight() -> None:
    found = blame_text("""
        B-:R-:W0:-:S02  LDG.E R2, [R4.64]
        B-:R-:W0:-:S02  LDG.E R3, [R6.64]
        B-:R-:W1:-:S02  LDG.E R8, [R6.64]
        B01:R-:W-:-:S04 FFMA R3, R2, R3, R8     # long_scoreboard=60
    """)
    assert list_shares(found) == [(3, 0, 15), (3, 1, 15), (3, 2, 30)]
    assert [edge.group for edge in list_rows(found.edges)] == [0, 0, 1]


LOOP_WITH_PROLOGUE = """
    B-:R-:W0:-:S02  LDS R2, [R6]
    B-:R-:W1:-:S02  LDS R3, [R6+0x100]
    B-:R-:W1:-:S02  LDS R4, [R6+0x200]
loop:
    B012:R-:W-:-:S04 FFMA R8, R2, R3, R8    # short_scoreboard=528
    B-:R-:W2:-:S02  LDS R2, [R7]
    B-:R-:W-:-:S05  @P0 BRA loop
    EXIT
"""


@pytest.mark.parametrize(
    ("issues", "shares"),
    [
        ([1, 1, 1, 64, 64, 64, 1], [8, 4, 4, 512]),
        ([2, 2, 2, 64, 30, 64, 1], [528 / 17, 264 / 17, 264 / 17, 528 * 15 / 17]),
        ([9, 9, 9, 1, 9, 1, 1], [176, 88, 88, 176]),
    ],
)
def test_counters_share_by_how_often_they_are_waited_for(issues: list[float], shares: list[float]) -> None:
    """What is loaded in front of a loop is waited for in its first iteration; no counter more often than the wait issues."""
    found = blame(view_text(LOOP_WITH_PROLOGUE, issue_counts=issues))
    assert [edge.def_row for edge in list_rows(found.edges)] == [0, 1, 2, 4]
    assert [edge.all_samples for edge in list_rows(found.edges)] == pytest.approx(shares)
    assert [edge.group for edge in list_rows(found.edges)] == [0, 1, 1, 2]


def test_what_never_issued_is_not_blamed() -> None:
    found = blame(view_text(LOOP_WITH_PROLOGUE, issue_counts=[0, 0, 0, 64, 64, 64, 1]))
    assert list_shares(found) == [(3, 4, 528)]
    found = blame(view_text(LOOP_WITH_PROLOGUE, issue_counts=[5, 5, 0, 64, 0, 64, 1]))
    assert list_shares(found) == [(3, 0, 264), (3, 1, 264)]
    assert [edge.group for edge in list_rows(found.edges)] == [0, 1]


def test_where_nothing_issued_the_parts_are_equal() -> None:
    found = blame(view_text(LOOP_WITH_PROLOGUE, issue_counts=[0] * 7))
    assert list_shares(found) == [(3, 0, 176), (3, 1, 88), (3, 2, 88), (3, 4, 176)]


def test_a_wait_that_never_issued_bounds_nothing() -> None:
    found = blame(view_text(LOOP_WITH_PROLOGUE, issue_counts=[1, 1, 1, 0, 20, 20, 1]))
    assert list_shares(found) == [(3, 0, 24), (3, 1, 12), (3, 2, 12), (3, 4, 480)]


def test_one_counter_on_two_paths_is_waited_for_on_both() -> None:
    """Neither of the loads behind SB0 is waited for as often as the one behind SB1, together they are."""
    found = blame(
        view_text(
            """
            B-:R-:W1:-:S02  LDG.E R3, [R6.64]
            B-:R-:W-:-:S05  @P0 BRA other
            B-:R-:W0:-:S02  LDG.E R2, [R4.64]
            B-:R-:W-:-:S05  BRA join
        other:
            B-:R-:W0:-:S02  LDG.E R2, [R8.64]
        join:
            B01:R-:W-:-:S04 FADD R3, R2, R3     # long_scoreboard=80
            EXIT
        """,
            issue_counts=[40, 40, 30, 30, 10, 40, 40],
        )
    )
    assert sorted(list_shares(found)) == [(5, 0, 40), (5, 2, 30), (5, 4, 10)]


def test_sectors_count_as_far_as_they_are_waited_for() -> None:
    """Of the first load's sectors, those of a tenth of its executions are waited for there."""
    text = TWO_LOADS.replace("global_sectors=30", "global_sectors=300")
    assert list_shares(blame(view_text(text, issue_counts=[10, 1, 1]))) == [(2, 0, 45), (2, 1, 15)]


MEASURED_LOOP = """
    B-:R-:W0:-:S02  LDS R2, [R6]                # - | selected=1 | x=10
    B-:R-:W1:-:S02  LDS R3, [R6+0x100]          # - | selected=1 | x=10
loop:
    B012:R-:W-:-:S04 FFMA R8, R2, R3, R8        # - | short_scoreboard=528/300 selected=64 | x=640
    B-:R-:W2:-:S02  LDS R2, [R7]                # - | selected=64 | x=640
    B-:R-:W-:-:S05  @P0 BRA loop                # - | selected=64 | x=640
    EXIT                                        # - | selected=1 | x=10
"""


def list_blamed(text: str, *, truncated: bool = False) -> tuple[KernelBlame, list[float]]:
    found = blame_kernel(write_kernel(text, truncated=truncated))
    waits = found.edges.use_row == 2
    is_scoreboard = found.edges.reason == write_kernel(text).reasons.index("short_scoreboard")
    return found, found.edges.all_samples[waits & is_scoreboard].tolist()


def test_executions_of_the_report_divide_a_kernels_waits() -> None:
    found, shares = list_blamed(MEASURED_LOOP)
    assert found.issue_counts.is_exact
    assert shares == pytest.approx([8, 8, 512])
    assert sum(shares) == pytest.approx(528, abs=1e-9)
    assert found.coverage.group_ratio == pytest.approx(496 / 528)


@pytest.mark.parametrize("truncated", [True, False])
def test_without_executions_of_the_same_run_the_samples_divide_them(truncated: bool) -> None:
    """A full buffer saw other executions than were counted; without counters there are none. Blame says what it went by."""
    text = MEASURED_LOOP if truncated else re.sub(r" \| x=\d+", "", MEASURED_LOOP)
    found, shares = list_blamed(text, truncated=truncated)
    assert not found.issue_counts.is_exact
    assert ("buffer was full" if truncated else "executions were not counted") in found.issue_counts.why
    assert shares[:2] == [shares[0]] * 2
    assert shares[0] < shares[2] / 50
    assert sum(shares) == pytest.approx(528, abs=1e-9)


MIXED = """
    B-:R-:W0:-:S02  LDG.E R2, [R4.64]
    B-:R-:W1:-:S02  LDS R3, [R6]
    B-:R-:W1:-:S02  DMUL R8, R8, R10
    B01:R-:W-:-:S04 FFMA R3, R2, R3, R8         # long_scoreboard=10 short_scoreboard=20
"""


def test_the_reason_says_who_it_cannot_be() -> None:
    """Double precision behind a scoreboard counts as short on 8.6 and never shows on 8.0."""
    assert list_shares(blame_text(MIXED, (8, 6))) == [(3, 0, 10), (3, 1, 10), (3, 2, 10)]
    assert list_shares(blame_text(MIXED, (8, 0))) == [(3, 0, 10), (3, 1, 20)]


ONE_COUNTER_OF_BOTH_KINDS = """
    B-:R1:W2:-:S04  LDG.E.S8 R13, [R14.64+0xc]
    B-:R1:W-:-:S08  I2F.S16 R9, R12
    B1:R-:W2:-:S01  LDG.E.S8 R12, [R30.64+0xd]  # long_scoreboard=539 short_scoreboard=1
"""


def test_the_reason_tells_the_kinds_behind_one_counter_apart() -> None:
    """Both hold SB1 until they have read their operands, and R12 is overwritten: the conversion would show as short."""
    found = blame_text(ONE_COUNTER_OF_BOTH_KINDS, (8, 0))
    assert list_shares(found) == [(2, 0, 539), (2, 1, 1)]
    assert [(edge.category, edge.dependency, edge.group) for edge in list_rows(found.edges)] == [
        (BlameCategory.WRITE_AFTER_READ, Dependency.SCOREBOARD, 0),
        (BlameCategory.WRITE_AFTER_READ, Dependency.WRITE_AFTER_READ, 1),
    ]
    assert found.pending_pairs == [(2, 0), (2, 1)]


def test_groups_are_unique_in_a_function() -> None:
    groups = {(edge.use_row, edge.reason): edge.group for edge in list_rows(blame_text(MIXED + MIXED).edges)}
    assert sorted(groups.values()) == [0, 1, 2, 3]


def test_without_a_table_nobody_is_ruled_out() -> None:
    view = view_text(MIXED)
    unknown = replace(view, architecture=None, scoreboards=(None,) * len(view.scoreboards))
    assert list_shares(blame(unknown)) == [(3, 0, 5), (3, 1, 2.5), (3, 2, 2.5), (3, 0, 10), (3, 1, 5), (3, 2, 5)]


def test_who_may_show_under_the_reason_stays() -> None:
    """No sample at a double precision matrix instruction was ever seen on 8.6."""
    unknown = MIXED.replace("DMUL R8, R8, R10", "DMMA.884 R8, R10, R12, R8")
    assert list_shares(blame_text(unknown)) == [(3, 0, 5), (3, 2, 5), (3, 1, 10), (3, 2, 10)]


def test_where_the_reason_fits_nobody_all_stay() -> None:
    contradiction = "B-:R-:W0:-:S02 LDG.E R2, [R4.64]\nB0:R-:W-:-:S04 FADD R3, R2, R3 # short_scoreboard=4"
    assert list_shares(blame_text(contradiction)) == [(1, 0, 4)]


def test_who_is_ruled_out_was_pending_all_the_same() -> None:
    assert blame_text(MIXED, (8, 0)).pending_pairs == [(3, 0), (3, 1), (3, 2)]


def test_a_store_is_blamed_until_it_has_read_its_operands() -> None:
    (edge,) = list_rows(
        blame_text("""
        B-:R0:W-:-:S02  STG.E [R4.64], R2
        B0:R-:W-:-:S04  IADD3 R2, R2, 0x1, RZ   # long_scoreboard=8
    """).edges
    )
    assert (edge.category, edge.dependency, edge.resource) == (
        BlameCategory.WRITE_AFTER_READ,
        Dependency.WRITE_AFTER_READ,
        2,
    )


def test_a_scoreboard_needs_no_register() -> None:
    """GPA Figure 3: the branch waits for a load whose register it does not read."""
    (edge,) = list_rows(
        blame_text("""
        B-:R-:W0:-:S02  LDG.E R2, [R4.64]
        B0:R-:W-:-:S05  BRA next                # long_scoreboard=8
    next:
        EXIT
    """).edges
    )
    assert (edge.category, edge.dependency, edge.resource) == (BlameCategory.MEMORY_GLOBAL, Dependency.SCOREBOARD, -1)


def test_operands_may_be_waited_for_without_a_register_too() -> None:
    (edge,) = list_rows(
        blame_text("""
        B-:R0:W1:-:S02  LDG.E R2, [R4.64]
        B0:R-:W-:-:S05  BRA next                # long_scoreboard=8
    next:
        EXIT
    """).edges
    )
    assert (edge.category, edge.dependency) == (BlameCategory.WRITE_AFTER_READ, Dependency.SCOREBOARD)


@pytest.mark.parametrize("barriers", ["R1:W0", "R0:W1"])
def test_a_load_waited_for_in_both_ways_is_one_cause(barriers: str) -> None:
    """Its result is there after its operands were read, so the other counter says nothing of its own."""
    found = blame_text(f"""
        B-:{barriers}:-:S02  LDG.E R2, [R4.64]
        B01:R-:W-:-:S04 IADD3 R4, R2, R4, RZ    # long_scoreboard=8
    """)
    assert list_shares(found) == [(1, 0, 8)]
    assert found.edges.dependency[0] == Dependency.READ_AFTER_WRITE


COPIES = """
        B-:R3:W-:-:S02  LDGSTS.E [R0], [R4.64]      # - | wait=1 | global_sectors=10
    loop:
        B-:R-:W0:-:S02  LDGDEPBAR
        B-:R3:W-:-:S02  LDGSTS.E [R2], [R6.64]      # - | wait=1 | global_sectors=30
        B-:R-:W0:-:S02  LDGDEPBAR
        B-:R-:W-:-:S04  DEPBAR.LE SB0, 0x1
        B-:R-:W-:-:S05  BAR.SYNC 0x0                # - | long_scoreboard=40
        B-:R3:W-:-:S02  LDGSTS.E [R8], [R6.64]      # - | wait=1 | global_sectors=10
        B-:R-:W-:-:S05  @P0 BRA loop
        EXIT
"""


def test_a_dependency_barrier_is_suffered_by_the_next_instruction_and_caused_by_the_copies() -> None:
    """The first of the two groups is waited for: the copy before the loop, or that of the last turn; and the older second ones."""
    found = blame_text(COPIES)
    assert sorted(list_shares(found)) == [(5, 0, 8), (5, 2, 24), (5, 6, 8)]
    assert {edge.dependency for edge in list_rows(found.edges)} == {Dependency.SCOREBOARD}
    assert {edge.category for edge in list_rows(found.edges)} == {BlameCategory.MEMORY_GLOBAL}
    nearest = {edge.def_row: (edge.distance_cycles, edge.distance_instructions) for edge in list_rows(found.edges)}
    assert nearest == {
        0: (2 + 2 + 2 + 2 + 4, 5),
        2: (2 + 2 + 4 + 5 + 2 + 5 + 2 + 2 + 2 + 4, 10),
        6: (2 + 5 + 2 + 2 + 2 + 4, 6),
    }


def test_a_group_ends_where_the_one_before_was_closed() -> None:
    found = blame_text("""
        B-:R3:W-:-:S02  LDGSTS.E [R2], [R6.64]
        B-:R-:W0:-:S02  LDGDEPBAR
        B-:R3:W-:-:S02  LDGSTS.E [R4], [R6.64]
        B-:R-:W0:-:S02  LDGDEPBAR
        B-:R-:W-:-:S04  DEPBAR.LE SB0, 0x1
        B-:R-:W-:-:S05  BAR.SYNC 0x0                # long_scoreboard=40
        B-:R-:W-:-:S04  DEPBAR.LE SB0, 0x0
        B-:R-:W-:-:S05  BAR.SYNC 0x0                # long_scoreboard=10
    """)
    assert list_shares(found) == [(5, 0, 40), (7, 2, 10)]


def test_a_copy_that_two_instructions_may_have_tied_counts_once_and_from_the_nearer() -> None:
    (edge,) = list_rows(
        blame_text("""
        B-:R3:W-:-:S02  LDGSTS.E [R2], [R6.64]
        B-:R-:W-:-:S05  @P0 BRA other
        B-:R-:W-:-:S15  NOP
        B-:R-:W0:-:S02  LDGDEPBAR
        B-:R-:W-:-:S05  BRA join
    other:
        B-:R-:W0:-:S02  LDGDEPBAR
    join:
        B-:R-:W-:-:S04  DEPBAR.LE SB0, 0x0
        B-:R-:W-:-:S05  BAR.SYNC 0x0                # long_scoreboard=40
    """).edges
    )
    assert (edge.def_row, edge.distance_cycles, edge.distance_instructions) == (0, 2 + 5 + 2 + 4, 4)


def test_a_group_without_copies_is_blamed_only_alone() -> None:
    text = """
        B-:R-:W0:-:S02  LDGDEPBAR
        B-:R3:W-:-:S02  LDGSTS.E [R2], [R6.64]
        B-:R-:W0:-:S02  LDGDEPBAR
        B-:R-:W-:-:S04  DEPBAR.LE SB0, 0x0
        B-:R-:W-:-:S05  BAR.SYNC 0x0                # long_scoreboard=40
    """
    assert list_shares(blame_text(text)) == [(4, 1, 40)]
    assert list_shares(blame_text(text.replace("0x0\n", "0x1\n", 1))) == [(4, 0, 40)]


def test_what_holds_operands_of_copies_is_the_copy() -> None:
    (edge,) = list_rows(
        blame_text("""
        B-:R3:W-:-:S02  LDGSTS.E [R2], [R6.64]
        B3:R-:W-:-:S04  IADD3 R6, R6, 0x4, RZ       # long_scoreboard=3
    """).edges
    )
    assert (edge.def_row, edge.category, edge.resource) == (0, BlameCategory.WRITE_AFTER_READ, 6)


def test_its_own_mask_and_a_dependency_barrier_before_it_both_count() -> None:
    found = blame_text("""
        B-:R-:W0:-:S02  LDG.E R2, [R4.64]
        B-:R-:W1:-:S02  LDG.E R3, [R4.64]
        B-:R-:W-:-:S04  DEPBAR.LE SB0, 0x0
        B1:R-:W-:-:S04  FADD R3, R3, R3             # long_scoreboard=8
    """)
    assert [(edge.def_row, edge.all_samples, edge.distance_cycles) for edge in list_rows(found.edges)] == [
        (0, 4, 8),
        (1, 4, 6),
    ]


def test_who_waits_for_nothing_has_no_producer() -> None:
    found = blame_text("""
        B-:R-:W0:-:S02  LDG.E R2, [R4.64]
        B-:R-:W-:-:S04  IADD3 R8, R8, 0x1, RZ       # long_scoreboard=2/1
        B1:R-:W-:-:S04  IADD3 R8, R8, 0x1, RZ       # short_scoreboard=3
    """)
    assert len(found.edges) == 0
    assert [(one.row, one.cause, one.all_samples, one.latency_samples) for one in list_rows(found.unattributed)] == [
        (1, UnattributedCause.NO_PRODUCER, 2, 1),
        (2, UnattributedCause.NO_PRODUCER, 3, 3),
    ]


def test_what_the_budget_did_not_reach_is_told_apart() -> None:
    view = view_text("""
        B-:R-:W0:-:S02  LDG.E R2, [R4.64]
        B-:R-:W-:-:S05  BRA next
    next:
        B0:R-:W-:-:S04  FADD R3, R2, R3             # long_scoreboard=2
        B-:R-:W0:-:S02  LDG.E R2, [R4.64]
        B0:R-:W-:-:S04  FADD R3, R2, R3             # long_scoreboard=5
    """)
    found = blame_scoreboards(view, WorkBudget(remaining=0))
    assert [(one.row, one.cause) for one in list_rows(found.unattributed)] == [(2, UnattributedCause.WORK_BOUND)]
    assert list_shares(found) == [(4, 3, 5)]


@given(sections())
def test_samples_are_conserved_per_row_and_reason(text: str) -> None:
    view = view_text(text)
    for budget in (WorkBudget.for_function(len(view)), WorkBudget(remaining=40)):
        found = blame_scoreboards(view, budget)
        every, latency = np.zeros(view.all_samples.shape), np.zeros(view.all_samples.shape)
        for edge in list_rows(found.edges):
            every[edge.use_row, edge.reason] += edge.all_samples
            latency[edge.use_row, edge.reason] += edge.latency_samples
            assert edge.all_samples > 0
        for one in list_rows(found.unattributed):
            every[one.row, one.reason] += one.all_samples
            latency[one.row, one.reason] += one.latency_samples
        wanted = [view.reasons.index(name) for name in view.reasons if name.endswith("_scoreboard")]
        np.testing.assert_allclose(every[:, wanted], view.all_samples[:, wanted])
        np.testing.assert_allclose(latency[:, wanted], view.latency_samples[:, wanted])
        pairs = [(edge.use_row, edge.def_row, edge.reason) for edge in list_rows(found.edges)]
        assert len(pairs) == len(set(pairs))
        assert {pair[:2] for pair in pairs} <= set(found.pending_pairs)
        assert len(found.pending_pairs) == len(set(found.pending_pairs))
