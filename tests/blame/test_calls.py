"""Stalls at the entry of a called function, carried to its callers."""

from typing import NamedTuple

import numpy as np
import pytest
from msgspec.structs import replace

from gpa_lsp.code.binary.model import name_resource
from gpa_lsp.diagnosis.blame.calls import carry_to_callers
from gpa_lsp.diagnosis.blame.conservation import check_conservation
from gpa_lsp.diagnosis.blame.edges import blame_themselves, join_edges, lose_samples
from gpa_lsp.diagnosis.blame.fixed_latency import find_wait_causes
from gpa_lsp.diagnosis.blame.issue_counts import count_issues
from gpa_lsp.diagnosis.blame.model import (
    BlameCategory,
    BlameEdges,
    Dependency,
    Unattributed,
    UnattributedCause,
)
from gpa_lsp.diagnosis.blame.view import view_function
from gpa_lsp.diagnosis.blame.walk_back import find_other_causes
from gpa_lsp.diagnosis.blame.work import WorkBudget
from gpa_lsp.kernel.model import Kernel
from tests.advice.subjects import make_blame
from tests.rows.written import write_kernel

SCOREBOARDS = ("long_scoreboard", "short_scoreboard")


class Blamed(NamedTuple):
    """An edge between two functions, as far as tests look at it."""

    use: int
    cause: int
    reason: str
    samples: float
    dependency: str
    category: str
    resource: str
    cycles: int
    instructions: int


def blame(kernel: Kernel) -> tuple[BlameEdges, Unattributed]:
    """All but scoreboards, which are all lost, function by function."""
    counts = count_issues(kernel).counts
    parts, losses, first = [], [], 0
    for function in kernel.functions:
        size = len(function.pc_offsets)
        view = view_function(kernel, function, counts[first : first + size])
        assert view is not None
        budget = WorkBudget.for_function(size)
        others, lost = find_other_causes(view, budget)
        waits = []
        for reason in (kernel.reasons.index(name) for name in SCOREBOARDS if name in kernel.reasons):
            rows = np.flatnonzero(function.all_samples[:, reason]).tolist()
            waits += [(row, reason, UnattributedCause.NO_PRODUCER) for row in rows]
        parts += [(find_wait_causes(view, budget), first), (others, first)]
        losses += [replace(one, row=one.row + first) for one in (lost, lose_samples(view, waits))]
        first += size
    return join_edges(parts), Unattributed.join(losses).sort_by("row", "reason")


def carry(kernel: Kernel) -> tuple[list[Blamed], list[tuple[int, str, float]]]:
    """The edges between functions, and what is lost; nothing has got lost on the way."""
    edges, unattributed = carry_to_callers(kernel, *blame(kernel), count_issues(kernel))
    check_conservation(kernel, make_blame(kernel, edges, unattributed))
    starts = np.cumsum([len(function.pc_offsets) for function in kernel.functions])
    of = [int(np.searchsorted(starts, row, side="right")) for row in range(int(starts[-1]))]
    found = [
        Blamed(
            edge_use,
            edge_def,
            kernel.reasons[reason],
            round(samples, 6),
            Dependency(dependency).name,
            BlameCategory(category).name,
            name_resource(resource) if resource >= 0 else "",
            cycles,
            instructions,
        )
        for edge_use, edge_def, reason, samples, dependency, category, resource, cycles, instructions in zip(
            edges.use_row.tolist(),
            edges.def_row.tolist(),
            edges.reason.tolist(),
            edges.all_samples.tolist(),
            edges.dependency.tolist(),
            edges.category.tolist(),
            edges.resource.tolist(),
            edges.distance_cycles.tolist(),
            edges.distance_instructions.tolist(),
            strict=True,
        )
        if of[edge_use] != of[edge_def]
    ]
    lost = [
        (row, kernel.reasons[reason], samples)
        for row, reason, samples in zip(
            unattributed.row.tolist(), unattributed.reason.tolist(), unattributed.all_samples.tolist(), strict=True
        )
    ]
    return found, lost


CALLS = """
    B-:R-:W0:-:S02  LDG.E R4, [R2.64]            # - | selected=1 | x=1
    B-:R-:W1:-:S02  LDG.E R6, [R2.64+0x10]       # - | selected=1 | x=1
    B-:R-:W-:-:S05  CALL.ABS.NOINC `(callee)     # - | selected=1 | x=1
    B0:R-:W-:-:S02  FADD R4, R4, R4              # - | selected=1 | x=1
    B-:R-:W0:-:S02  LDG.E R4, [R2.64+0x20]       # - | selected=3 | x=3
    B-:R-:W-:-:S06  @P0 CALL.ABS.NOINC `(callee) # - | selected=3 | x=3
    B-:R-:W-:-:S05  EXIT                         # - | selected=1 | x=1
[callee]
    B-:R-:W-:-:S02  MOV R7, RZ                   # - | selected=4 wait=8 branch_resolving=40/20 | x=4
    B0:R-:W-:-:S04  FADD R5, R4, R4              # - | selected=4 long_scoreboard=80/40 | x=4
    B1:R-:W-:-:S04  FADD R5, R6, R4              # - | selected=4 long_scoreboard=12 | x=4
    B2:R-:W-:-:S04  FADD R5, R5, R4              # - | selected=4 long_scoreboard=3 short_scoreboard=5 | x=4
    B-:R-:W-:-:S05  RET.REL.NODEC R20 0x0        # - | selected=4 branch_resolving=6 | x=4
"""


def test_a_called_functions_entry_stalls_are_its_callers() -> None:
    """The second call issues three times as often. Nothing sets the scoreboard that the fourth instruction waits for."""
    found, lost = carry(write_kernel(CALLS))
    assert found == [
        Blamed(7, 2, "branch_resolving", 10, "CONTROL", "BRANCH", "", 5, 1),
        Blamed(7, 5, "branch_resolving", 30, "CONTROL", "BRANCH", "", 6, 1),
        Blamed(7, 2, "wait", 2, "ISSUE", "ISSUE", "", 5, 1),
        Blamed(7, 5, "wait", 6, "ISSUE", "ISSUE", "", 6, 1),
        Blamed(8, 0, "long_scoreboard", 20, "CALL", "MEMORY_GLOBAL", "R4", 11, 4),
        Blamed(8, 4, "long_scoreboard", 60, "CALL", "MEMORY_GLOBAL", "R4", 10, 3),
        Blamed(9, 1, "long_scoreboard", 12, "CALL", "MEMORY_GLOBAL", "R6", 13, 4),
        Blamed(11, 2, "branch_resolving", 1.5, "CONTROL", "BRANCH", "", 19, 5),
        Blamed(11, 5, "branch_resolving", 4.5, "CONTROL", "BRANCH", "", 20, 5),
    ]
    assert lost == [(10, "long_scoreboard", 3), (10, "short_scoreboard", 5)]


def test_an_instruction_that_cannot_show_as_the_reason_is_not_blamed() -> None:
    """A wait for shared memory is short; the long one there stays without a cause."""
    kernel = write_kernel("""
        B-:R-:W0:-:S02  LDS R4, [R2]                 # selected=1
        B-:R-:W-:-:S05  CALL.ABS.NOINC `(callee)     # selected=1
        B-:R-:W-:-:S05  EXIT
    [callee]
        B0:R-:W-:-:S04  FADD R5, R4, R4              # long_scoreboard=8 short_scoreboard=4
        B-:R-:W-:-:S05  RET.REL.NODEC R20 0x0
    """)
    found, lost = carry(kernel)
    assert [(one.cause, one.reason, one.category) for one in found] == [(0, "short_scoreboard", "EXECUTION_SHARED")]
    assert lost == [(3, "long_scoreboard", 8)]


def test_what_the_call_itself_waited_for_is_over() -> None:
    kernel = write_kernel("""
        B-:R-:W0:-:S02  LDG.E R4, [R2.64]
        B0:R-:W-:-:S05  CALL.ABS.NOINC `(callee)
        B-:R-:W-:-:S05  EXIT
    [callee]
        B0:R-:W-:-:S04  FADD R5, R4, R4              # long_scoreboard=8
        B-:R-:W-:-:S05  RET.REL.NODEC R20 0x0
    """)
    assert carry(kernel) == ([], [(3, "long_scoreboard", 8)])


def test_several_loads_behind_one_scoreboard_share_evenly_as_a_group() -> None:
    kernel = write_kernel("""
        B-:R-:W0:-:S02  LDG.E R4, [R2.64]
        B-:R0:W-:-:S02  STG.E [R2.64], R5
        B-:R-:W-:-:S05  CALL.ABS.NOINC `(callee)
        B-:R-:W-:-:S05  EXIT
    [callee]
        B0:R-:W-:-:S04  FADD R5, R4, R4              # long_scoreboard=8 wait=1
        B-:R-:W-:-:S05  RET.REL.NODEC R20 0x0
    """)
    found, _ = carry(kernel)
    assert [(one.cause, one.reason, one.samples, one.category) for one in found] == [
        (0, "long_scoreboard", 4, "MEMORY_GLOBAL"),
        (1, "long_scoreboard", 4, "WRITE_AFTER_READ"),
        (2, "wait", 1, "ISSUE"),
    ]
    edges, _ = carry_to_callers(kernel, *blame(kernel), count_issues(kernel))
    groups = dict(zip(edges.def_row.tolist(), edges.group.tolist(), strict=True))
    assert groups[0] == groups[1] != groups[2]


def test_causes_at_different_calls_are_not_waited_for_together() -> None:
    kernel = write_kernel(CALLS)
    edges, _ = carry_to_callers(kernel, *blame(kernel), count_issues(kernel))
    moved = edges.is_moved & (edges.use_row >= 7)
    assert len(set(edges.group[moved].tolist())) == int(moved.sum())


def test_a_load_that_has_still_to_read_its_address_is_waited_for_before_it_is_overwritten() -> None:
    kernel = write_kernel("""
        B-:R0:W1:-:S02  LDG.E R4, [R2.64]
        B-:R-:W-:-:S05  CALL.ABS.NOINC `(callee)
        B-:R-:W-:-:S05  EXIT
    [callee]
        B0:R-:W-:-:S04  MOV R2, RZ                   # long_scoreboard=8
        B1:R-:W-:-:S04  FADD R5, R4, R4              # long_scoreboard=6
        B-:R-:W-:-:S05  RET.REL.NODEC R20 0x0
    """)
    found, _ = carry(kernel)
    assert [(one.use, one.cause, one.category) for one in found] == [
        (3, 0, "WRITE_AFTER_READ"),
        (4, 0, "MEMORY_GLOBAL"),
    ]


def test_only_the_functions_own_routine_is_entered_from_outside() -> None:
    """A local routine is called in its own section, where blaming follows it; a loss there is none of the callers'."""
    kernel = write_kernel("""
        B-:R-:W-:-:S05  CALL.ABS.NOINC `(callee)
        B-:R-:W-:-:S05  EXIT
    [callee]
        B-:R-:W-:-:S05  RET.REL.NODEC R20 0x0
    $local:
        B0:R-:W-:-:S04  FADD R5, R4, R4              # branch_resolving=8
        B-:R-:W-:-:S05  RET.REL.NODEC R20 0x0
    """)
    assert carry(kernel) == ([], [(3, "branch_resolving", 8)])


@pytest.mark.parametrize(
    "text",
    [
        "NOP  # branch_resolving=2 wait=1 long_scoreboard=1",
        "CALL.ABS.NOINC `(elsewhere)  # branch_resolving=2 wait=1",
        "CALL.ABS.NOINC `(kernel)  # branch_resolving=2 wait=1",
    ],
)
def test_without_calls_between_sections_nothing_changes(text: str) -> None:
    kernel = write_kernel(text)
    edges, unattributed = blame(kernel)
    carried = carry_to_callers(kernel, edges, unattributed, count_issues(kernel))
    assert carried[0] is edges and carried[1] is unattributed


def test_functions_that_call_each_other_come_to_an_end() -> None:
    kernel = write_kernel("""
        B-:R-:W0:-:S02  LDG.E R4, [R2.64]
        B-:R-:W-:-:S05  CALL.ABS.NOINC `(ping)
        B-:R-:W-:-:S05  EXIT
    [ping]
        B0:R-:W-:-:S04  FADD R5, R4, R4              # long_scoreboard=8 branch_resolving=2
        B-:R-:W-:-:S05  @P0 CALL.ABS.NOINC `(pong)
        B-:R-:W-:-:S05  RET.REL.NODEC R20 0x0
    [pong]
        B-:R-:W0:-:S02  LDG.E R4, [R2.64]            # branch_resolving=4
        B-:R-:W-:-:S05  @P1 CALL.ABS.NOINC `(ping)
        B-:R-:W-:-:S05  RET.REL.NODEC R20 0x0
    """)
    found, lost = carry(kernel)
    assert lost == []
    assert [(one.use, one.cause, one.reason, one.samples) for one in found] == [
        (3, 1, "branch_resolving", 1),
        (3, 7, "branch_resolving", 1),
        (3, 0, "long_scoreboard", 4),
        (3, 6, "long_scoreboard", 4),
        (6, 4, "branch_resolving", 4),
    ]


def test_losses_for_other_causes_are_left_alone() -> None:
    kernel = write_kernel(CALLS)
    edges, unattributed = blame(kernel)
    bounded = replace(unattributed, cause=np.full(len(unattributed), UnattributedCause.WORK_BOUND, dtype=np.uint8))
    _, kept = carry_to_callers(kernel, edges, bounded, count_issues(kernel))
    assert len(kept) == len(bounded)


def test_a_wait_that_has_a_cause_is_left_alone() -> None:
    kernel = write_kernel(CALLS)
    view = view_function(kernel, kernel.functions[1], np.ones(5))
    assert view is not None
    selected = blame_themselves(view, [kernel.reasons.index("selected")])
    edges = join_edges([(selected, 7)])
    carried, _ = carry_to_callers(kernel, edges, Unattributed.from_rows(), count_issues(kernel))
    assert carried is edges
