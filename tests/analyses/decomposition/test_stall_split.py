"""Sources of a stall reason: they add up to it, whatever the kernel, and are those that a reader finds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpa_lsp.diagnosis.analyses.decomposition.stall_split import split_reason
from gpa_lsp.diagnosis.analyses.line_sums import sum_by_place
from gpa_lsp.profile.stall_reasons import STALL_REASONS
from tests.analyses.decomposition.written_facts import write_facts
from tests.conftest import examples

INSTRUCTIONS = (
    "B-:R-:W2:-:S02  LDG.E R4, [R2.64]",
    "B2:R0:W-:-:S02  STS [R8], R4",
    "B-:R-:W-:-:S06  BAR.SYNC 0x0",
    "B0:R-:W1:-:S02  LDS R5, [R9]",
    "B-:R-:W3:-:S04  MUFU.RCP R7, R6",
    "B1:R-:W-:-:S04  FFMA R5, R5, R5, R6",
    "B3:R-:W-:-:S13  ISETP.GE.AND P0, PT, R7, R5, PT",
    "B-:R-:W-:-:S05  @P0 EXIT",
    "B-:R-:W-:-:S02  STG.E [R2.64], R5",
    "B-:R-:W-:-:S05  EXIT",
)
SAMPLES = st.lists(
    st.tuples(
        st.integers(min_value=0, max_value=len(INSTRUCTIONS) - 1),
        st.sampled_from(sorted(STALL_REASONS)),
        st.integers(min_value=1, max_value=1000),
    ),
    min_size=1,
    max_size=40,
    unique_by=lambda one: one[:2],
)


@examples(40)
@given(samples=SAMPLES, blamed=st.booleans())
def test_the_sources_add_up_to_the_reason(samples, blamed):
    notes = [
        " ".join(f"{reason}={count}" for at, reason, count in samples if at == row) for row in range(len(INSTRUCTIONS))
    ]
    text = "\n".join(
        f"{code}  # k.cu:{row // 2 + 1} | {note}"
        for row, (code, note) in enumerate(zip(INSTRUCTIONS, notes, strict=True))
    )
    facts = write_facts(text, blamed=blamed)
    for reason in facts.kernel.reasons:
        split = split_reason(facts, reason)
        assert split.samples == facts.rows.count_reason(reason)
        assert sum(source.samples for source in split.sources) == pytest.approx(split.samples)
        assert sum(map(split.share_of, split.sources)) == pytest.approx(1.0)
        weights = [source.samples for source in split.sources]
        assert weights == sorted(weights, reverse=True)
        assert len({source.label for source in split.sources}) == len(weights)


def test_places_are_lines_and_instructions_without_one_are_alone():
    facts = write_facts("    MOV R1, R2  # k.cu:1\n    MOV R1, R2\n    MOV R1, R2  # k.cu:1\n    MOV R1, R2\n")
    places = facts.rows.own_lines
    assert sum_by_place(places, np.array([1.0, 2.0, 4.0, 3.0])) == [(2, 5.0), (3, 3.0), (1, 2.0)]
    assert sum_by_place(places, np.zeros(4)) == []
