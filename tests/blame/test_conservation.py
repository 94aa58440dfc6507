"""The check that blaming neither loses nor invents samples."""

import numpy as np
import pytest
from msgspec.structs import replace

from gpa_lsp.diagnosis.blame.blame import check_conservation
from gpa_lsp.diagnosis.blame.model import BlameCategory, BlameEdges, Dependency, Unattributed, UnattributedCause
from gpa_lsp.foundation.errors import ConservationError
from tests.advice.subjects import NOTHING_LOST, make_blame
from tests.rows.written import write_kernel

KERNEL = write_kernel("""
    LDG.E R2, [R4.64]      # selected=4
    FFMA R2, R2, R3, R6    # long_scoreboard=60/50 wait=3/1
[callee]
    RET.REL.NODEC R20 0x0  # branch_resolving=9/9
""")
LONG, SELECTED, WAIT = (KERNEL.reasons.index(name) for name in ("long_scoreboard", "selected", "wait"))
BRANCH = KERNEL.reasons.index("branch_resolving")


def make_edge(use: int, cause: int, reason: int, all_samples: float, latency_samples: float) -> BlameEdges:
    category, dependency = BlameCategory.MEMORY_GLOBAL, Dependency.READ_AFTER_WRITE
    return BlameEdges.from_rows([(use, cause, reason, all_samples, latency_samples, category, dependency, -1, 0, 0, 0)])


EDGES = BlameEdges.join(
    [
        make_edge(0, 0, SELECTED, 4, 0),
        make_edge(1, 0, LONG, 20, 50 / 3),
        make_edge(1, 2, LONG, 40, 100 / 3),
        make_edge(1, 1, WAIT, 3, 1),
    ]
)
LOST = Unattributed.from_rows([(2, BRANCH, UnattributedCause.NO_PRODUCER, 9, 9)])


def change(number: int, **values: float) -> BlameEdges:
    """The edges, one of them with other values."""
    columns = {name: getattr(EDGES, name).copy() for name in values}
    for name, value in values.items():
        columns[name][number] = value
    return replace(EDGES, **columns)


def test_shares_that_add_up_pass() -> None:
    check_conservation(KERNEL, make_blame(KERNEL, EDGES, LOST))
    check_conservation(KERNEL, make_blame(KERNEL, change(1, all_samples=20.00001), LOST))


@pytest.mark.parametrize(
    ("edges", "lost", "message"),
    [
        (EDGES.select(np.arange(1, 4)), LOST, r"4 samples of selected at row 0 became 0,"),
        (EDGES, NOTHING_LOST, r"9 samples of branch_resolving at row 2 became 0,"),
        (change(1, all_samples=20.001), LOST, r"60 samples of long_scoreboard at row 1 became 60\.001,"),
        (change(1, latency_samples=16.0), LOST, r"50 not-issued samples of long_scoreboard"),
        (change(3, use_row=0), LOST, r"0 samples of wait at row 0 became 3, and 1 other sums"),
        (change(3, reason=LONG), LOST, r"60 samples of long_scoreboard at row 1 became 63"),
        (change(3, def_row=3), LOST, r"a def outside 0\.\.2"),
        (change(3, use_row=-1), LOST, r"a use outside 0\.\.2"),
        (change(3, reason=len(KERNEL.reasons)), LOST, r"a reason outside"),
        (EDGES, replace(LOST, row=np.array([3])), r"a unattributed row outside"),
        (BlameEdges.join([EDGES, make_edge(0, 1, SELECTED, 1, 2)]), LOST, r"2 not-issued samples of 1"),
        (BlameEdges.join([EDGES, make_edge(0, 1, SELECTED, 1, -1)]), LOST, r"-1 not-issued samples of 1"),
        (change(1, all_samples=float("nan")), LOST, r"not-issued samples of nan"),
    ],
)
def test_what_does_not_add_up_is_refused(edges: BlameEdges, lost: Unattributed, message: str) -> None:
    with pytest.raises(ConservationError, match=message):
        check_conservation(KERNEL, make_blame(KERNEL, edges, lost))


def test_nothing_is_conserved_too() -> None:
    check_conservation(replace(KERNEL, functions=(), reasons=()), make_blame(KERNEL))
    with pytest.raises(ConservationError):
        check_conservation(replace(KERNEL, functions=()), make_blame(KERNEL, EDGES, LOST))
