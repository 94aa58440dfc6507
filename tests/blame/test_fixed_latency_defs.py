"""Def-use pairs of fixed latency inside blocks."""

import numpy as np

from gpa_lsp.diagnosis.blame.blamers.scoreboard import find_fixed_latency_defs
from tests.blame.written_views import view_text

LISTING = """
    B-:R-:W-:-:S04  MOV R2, R9
    B-:R-:W-:-:S04  MOV R2, R8
    B-:R-:W0:-:S02  LDG.E R3, [R4.64]
    B0:R-:W-:-:S04  IMAD.WIDE R6, R2, R3, R6
    B-:R-:W-:-:S13  ISETP.LT.AND P0, PT, R6, R7, PT
    B-:R-:W-:-:S05  @P0 BRA next
next:
    B-:R-:W-:-:S04  IADD3 R2, R2, R6, RZ
"""


def test_the_last_write_in_the_block_that_has_no_scoreboard() -> None:
    view = view_text(LISTING)
    every = np.ones(len(view), dtype=np.bool_)
    assert list(find_fixed_latency_defs(view, every)) == [(3, 1), (4, 3), (5, 4)]


def test_only_uses_that_are_asked_about() -> None:
    view = view_text(LISTING)
    assert list(find_fixed_latency_defs(view, np.arange(len(view)) == 4)) == [(4, 3)]
