"""Sources of a stall reason: they add up to it, whatever the kernel, and are those that a reader finds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpa_lsp.diagnosis.analyses.decomposition.stall_split import NO_CAUSE, split_reason
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


def list_sources(text, reason, **options):
    split = split_reason(write_facts(text, **options), reason)
    return [(source.label, source.samples) for source in split.sources]


def test_short_scoreboards_are_told_apart_by_their_producers():
    text = """
        B-:R-:W0:-:S02  LDS R5, [R9]
        B-:R-:W1:-:S02  MUFU.RCP R6, R7
        B0:R-:W-:-:S02  FADD R5, R5, R5        # short_scoreboard=30
        B1:R-:W-:-:S02  FADD R6, R6, R6        # short_scoreboard=70
    """
    assert list_sources(text, "short_scoreboard") == [
        ("special functions (MUFU)", 70.0),
        ("loads from shared memory", 30.0),
    ]


def test_a_wait_for_operands_is_no_wait_for_a_result():
    text = """
        B-:R0:W-:-:S02  STG.E [R2.64], R4
        B0:R-:W-:-:S02  MOV R4, R6             # long_scoreboard=10
    """
    assert list_sources(text, "long_scoreboard") == [
        ("stores to global memory, until they have read their operands", 10.0)
    ]


def test_fixed_waits_are_results_guards_or_issue():
    text = """
        B-:R-:W-:-:S04  DADD R4, R4, R4
        B-:R-:W-:-:S13  FSETP.GT.AND P0, PT, R9, R9, PT
        B-:R-:W-:-:S02  @P0 MOV R1, R2         # wait=40
        B-:R-:W-:-:S05  BRA `(.L)              # wait=2
    .L:
        B-:R-:W-:-:S05  IADD3 R1, R1, R1, RZ   # wait=8
    """
    labels = dict(list_sources(text, "wait"))
    assert labels["predicates set by integer, logic and compares (ALU)"] == 40.0
    assert sum(labels.values()) == 50.0


def test_barriers_are_named_by_their_lines_and_empty_code_by_its_function():
    text = """
        B-:R-:W-:-:S06  BAR.SYNC 0x0           # k.cu:3
        B-:R-:W-:-:S02  MOV R1, R2             # k.cu:4 | barrier=5 no_instructions=2
        B-:R-:W-:-:S06  BAR.SYNC 0x0           # k.cu:9
        B-:R-:W-:-:S02  MOV R1, R2             # k.cu:10 | barrier=15
        B-:R-:W-:-:S05  EXIT
    [helper]
        B-:R-:W-:-:S02  MOV R1, R2             # h.cu:4 | no_instructions=7
    """
    assert list_sources(text, "barrier") == [("BAR at line 9 of k.cu", 15.0), ("BAR at line 3 of k.cu", 5.0)]
    assert list_sources(text, "no_instructions") == [("code of helper", 7.0), ("code of the kernel itself", 2.0)]


def test_fences_are_named_with_their_scope():
    text = """
        B-:R-:W-:-:S06  MEMBAR.SC.GPU          # k.cu:3
        B-:R-:W-:-:S02  MOV R1, R2             # k.cu:4 | membar=5
    """
    assert list_sources(text, "membar") == [("MEMBAR.SC.GPU at line 3 of k.cu", 5.0)]


def test_beyond_a_dozen_places_the_rest_is_one():
    lines = [f"    MOV R1, R2  # k.cu:{line} | drain={100 - line}" for line in range(1, 16)]
    sources = list_sources("\n".join(lines), "imc_miss")
    assert sources == []
    sources = list_sources("\n".join(lines).replace("drain", "imc_miss"), "imc_miss")
    assert len(sources) == 13
    assert dict(sources)["3 other places"] == 87 + 86 + 85


def test_what_has_no_cause_says_so():
    text = "    B3:R-:W-:-:S02  FADD R5, R5, R5        # short_scoreboard=30"
    assert list_sources(text, "short_scoreboard") == [(NO_CAUSE, 30.0)]
    assert list_sources(text, "short_scoreboard", blamed=False) == [(NO_CAUSE, 30.0)]


def test_places_are_lines_and_instructions_without_one_are_alone():
    facts = write_facts("    MOV R1, R2  # k.cu:1\n    MOV R1, R2\n    MOV R1, R2  # k.cu:1\n    MOV R1, R2\n")
    places = facts.rows.own_lines
    assert sum_by_place(places, np.array([1.0, 2.0, 4.0, 3.0])) == [(2, 5.0), (3, 3.0), (1, 2.0)]
    assert sum_by_place(places, np.zeros(4)) == []
