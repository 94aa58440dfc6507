"""Pieces of paths, in encoded cycles and instructions."""

import pytest

from gpa_lsp.diagnosis.blame.distances import NOWHERE, Distance, Distances
from tests.blame.written_views import view_text

LISTING = """
    B-:R-:W0:-:S02  LDG.E R2, [R4.64]
    B-:R-:W-:-:S00  IADD3 R8, R8, 0x1, RZ
loop:
    B-:R-:W-:-:S04  FADD R3, R2, R3
    B-:R-:W-:-:S05  @P0 BRA loop
    B-:R-:W-:-:S05  EXIT
"""


@pytest.fixture(scope="module")
def distances() -> Distances:
    return Distances(view_text(LISTING))


def test_from_issue_to_issue(distances: Distances) -> None:
    """The stall count of the last instruction is not part of it; none is as short as nothing, whatever is encoded."""
    assert distances.straight(0, 1) == (2, 1)
    assert distances.straight(0, 3) == (2 + 1 + 4, 3)
    assert distances.straight(2, 2) == NOWHERE


def test_pieces_of_a_block(distances: Distances) -> None:
    assert distances.to_end(0) == (3, 2)
    assert distances.to_end(1) == (1, 1)
    assert distances.across(1) == (9, 2)
    assert distances.from_start(3) == (4, 1)
    assert distances.from_start(2) == NOWHERE
    assert distances.to_end(4) == (5, 1)


def test_pieces_add_up(distances: Distances) -> None:
    once_round = distances.to_end(0).then(distances.across(1)).then(distances.from_start(3))
    assert once_round == Distance(3 + 9 + 4, 2 + 2 + 1)


def test_fewer_cycles_are_nearer_than_fewer_instructions() -> None:
    assert min(Distance(7, 1), Distance(6, 5), Distance(6, 4)) == Distance(6, 4)
