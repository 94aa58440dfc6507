"""Slow arithmetic: integer divisions, detours through double precision, and what an architecture is slow at."""

import pytest

from gpa_lsp.diagnosis.advice.matches import EliminationMatch
from gpa_lsp.diagnosis.advice.model import Silence, SilenceStage
from gpa_lsp.diagnosis.advice.optimizers.fast_math import OPTIMIZER as FAST_MATH
from gpa_lsp.diagnosis.advice.optimizers.strength_reduction import OPTIMIZER
from gpa_lsp.diagnosis.advice.slow_arithmetic import SlowKind, find_slowness
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.gpu.arch.lookup import find_architecture, list_architectures
from gpa_lsp.kernel.scopes import ScopeKind
from tests.advice.blamed_by_hand import forget_code, write_subject
from tests.dataflow.written_arithmetic import DIVISION, DIVISION_CAUSES, INTEGER_DIVISION, INTEGER_DIVISION_ROWS


def match(subject: Subject) -> EliminationMatch:
    found = OPTIMIZER.match(subject)
    assert isinstance(found, EliminationMatch)
    return found


def refuse(subject: Subject) -> Silence:
    found = OPTIMIZER.match(subject)
    assert isinstance(found, Silence)
    return found


def test_an_integer_division_counts_whole_and_says_that_its_divisor_stays() -> None:
    subject = write_subject(INTEGER_DIVISION, {})
    found = match(subject)
    (region,) = found.regions
    assert region.samples == int(subject.rows.all_samples[sorted(INTEGER_DIVISION_ROWS)].sum())
    assert region.scope.line == 5
    assert found.hint.startswith("The integer division at line 4 and line 5 of k.cu takes 18 instructions")
    assert any("powers of two only" in caveat for caveat in found.caveats)
    assert "The divisor does not change" in found.hint


def test_a_divisor_of_each_turns_own_cannot_be_prepared() -> None:
    changing = INTEGER_DIVISION.replace("    loop:\n", "").replace(
        "        B-:R-:W0:-:S01  I2F", "    loop:\n        LDG.E R20, [R26.64]\n        B-:R-:W0:-:S01  I2F"
    )
    found = match(write_subject(changing, {}))
    assert "does not change" not in found.hint
    assert "shift and mask" in found.hint


def test_integer_and_accurate_divisions_share_no_samples_and_are_no_alternatives() -> None:
    both = INTEGER_DIVISION.replace("EXIT", "NOP") + DIVISION
    first_row = INTEGER_DIVISION.count("B-:") + INTEGER_DIVISION.count("B0:")
    causes = {
        (row + first_row, reason): [one + first_row for one in rows] for (row, reason), rows in DIVISION_CAUSES.items()
    }
    subject = write_subject(both, causes)
    integers, accurate = match(subject), FAST_MATH.match(subject)
    assert isinstance(accurate, EliminationMatch)
    rows = [
        {
            hotspot.use_row if hotspot.use_row is not None else hotspot.def_row
            for region in found.regions
            for hotspot in region.hotspots
        }
        for found in (integers, accurate)
    ]
    assert all(rows)
    assert rows[0].isdisjoint(rows[1])
    assert OPTIMIZER.group != FAST_MATH.group


ONE_QUOTIENT = INTEGER_DIVISION.replace("    loop:\n", "").replace("@P3 BRA loop ", "NOP ")
SIGNED_ARGUMENT = ONE_QUOTIENT.replace(
    "        B-:R-:W0:-:S01  I2F.U32.RP R8, R20 ",
    "        B-:R-:W-:-:S05  IABS R20, c[0x0][0x180]   # k.cu:4 | selected=1\n        B-:R-:W0:-:S01  I2F.RP R8, R20 ",
)


def test_outside_loops_there_is_nothing_to_carry_along() -> None:
    hint = match(write_subject(ONE_QUOTIENT, {})).hint
    assert "Shift and mask if the divisor is a power of two." in hint
    assert "from one iteration to the next" not in hint


def test_a_signed_argument_does_not_change() -> None:
    assert "The divisor does not change" in match(write_subject(SIGNED_ARGUMENT, {})).hint


def test_without_lines_a_division_is_somewhere_not_divided_by_an_instruction() -> None:
    nowhere = INTEGER_DIVISION.replace("# k.cu:4 |", "# - |").replace("# k.cu:5 |", "# - |")
    found = match(write_subject(nowhere, {}))
    assert found.hint.startswith("The integer division at 0x90 takes 18 instructions")
    assert found.reasons == ("1 integer division",)


def test_the_source_names_the_quotient() -> None:
    source = "\n\n\n\n  int q = key / width;\n"
    found = match(write_subject(INTEGER_DIVISION, {}, sources={"k.cu": source}))
    assert "`key / width`" in found.hint


@pytest.mark.parametrize(("name", "is_collapsed"), [("step_9_gpu", True), ("_Z4stepPi", False), ("step", False)])
def test_a_line_that_only_begins_a_loop_divides_for_the_compilers_sake_where_loops_are_collapsed(
    name: str, is_collapsed: bool
) -> None:
    source = "\n\n\n\n  for (int i = 0; i < n; ++i) {\n"
    hint = match(write_subject(INTEGER_DIVISION, {}, sources={"k.cu": source}, name=name)).hint
    assert ("recover the indices of collapsed loops" in hint) is is_collapsed
    assert ("shift and mask if" in hint) is not is_collapsed


WIDENED = """
    loop:
        F2F.F64.F32 R2, R13             # k.cu:2 | short_scoreboard=10
        DFMA R2, R2, R10, c[0x2][0x0]   # k.cu:2 | short_scoreboard=30
        F2F.F32.F64 R13, R2             # k.cu:2 | short_scoreboard=50
        IADD3 R5, R5, 0x1, RZ           # k.cu:3 | selected=3
        ISETP.NE.AND P0, PT, R5, 0x20, PT   # k.cu:3 | wait=5
        @P0 BRA loop                    # k.cu:3 | wait=12
        STG.E [R6.64], R13              # k.cu:4 | selected=4
        EXIT                            # k.cu:5
"""


@pytest.mark.parametrize("capability", [(8, 0), (8, 6)])
def test_a_double_literal_is_quoted_with_its_cure(capability: tuple[int, int]) -> None:
    source = "float f(float x) {\n  x = x * 0.7 + 0.1;\n"
    found = match(write_subject(WIDENED, {}, sources={"k.cu": source}, compute_capability=capability))
    (region,) = found.regions
    assert region.samples == 90
    assert "The literals `0.7`, `0.1` are double: write `0.7f`, `0.1f`." in found.hint
    assert ("1/64 of the FP32 rate" in found.hint) == (capability == (8, 6))
    assert "24 significant bits" in found.caveats[0]


def test_without_the_source_the_literal_is_a_guess() -> None:
    hint = match(write_subject(WIDENED, {})).hint
    assert "FP32 values at line 2 of k.cu are widened to FP64" in hint
    assert "Look for a literal without an f" in hint


DOUBLE = """
    loop:
        B-:R-:W-:-:S08  DFMA R2, R2, R4, R6     # k.cu:2 | math_pipe_throttle=40 wait=7 selected=2 not_selected=5
        B-:R-:W-:-:S08  DADD R2, R2, R8         # k.cu:3 | math_pipe_throttle=30 wait=7 selected=2
        B-:R-:W-:-:S13  ISETP.NE.AND P0, PT, R10, RZ, PT   # k.cu:1 | wait=7
        B-:R-:W-:-:S05  @P0 BRA loop            # k.cu:1 | wait=12
        B-:R-:W-:-:S05  EXIT                    # k.cu:4
"""
DOUBLE_CAUSES = {(1, "wait"): [0], (2, "wait"): [1]}


def test_double_precision_is_slow_where_the_table_says_so() -> None:
    found = match(write_subject(DOUBLE, DOUBLE_CAUSES, compute_capability=(8, 6)))
    (region,) = found.regions
    # Busy pipes and waits for results, blamed on the two; not that they issued.
    assert region.samples == 40 + 7 + 30 + 7 + 7
    assert region.scope.kind is ScopeKind.LOOP
    assert "2 instructions" in found.hint
    assert "1/64 of the FP32 rate" in found.hint
    silence = refuse(write_subject(DOUBLE, DOUBLE_CAUSES, compute_capability=(8, 0)))
    assert silence.stage is SilenceStage.NOT_MATCHED


def test_half_the_rate_is_slow_where_its_pipe_is_the_busiest_unit() -> None:
    share = ".avg.pct_of_peak_sustained_elapsed"
    names = [f"sm__pipe_fp64_cycles_active{share}", f"sm__inst_issued{share}"]

    def write(fp64: float) -> Subject:
        metrics = {f"breakdown:sm__throughput{share}": ", ".join(names), names[0]: fp64, names[1]: 20.0}
        return write_subject(DOUBLE, DOUBLE_CAUSES, compute_capability=(8, 0), metrics=metrics)

    assert "1/2 of the FP32 rate" in match(write(40.0)).hint
    assert refuse(write(10.0)).stage is SilenceStage.NOT_MATCHED


def test_conversions_to_doubles_go_with_the_type() -> None:
    code = "B-:R-:W0:-:S02  I2F.F64 R4, R9  # k.cu:2 | selected=3\n" + DOUBLE
    causes = {(row + 1, reason): [one + 1 for one in every] for (row, reason), every in DOUBLE_CAUSES.items()}
    found = match(write_subject(code, causes, compute_capability=(8, 6)))
    assert "3 slow instructions" in str(found.reasons[0])
    assert len(found.regions) == 1, "it is no conversion that could be left out alone"


CONVERSION = """
    {before}
        I2F R3, R4                                  # k.cu:2 | mio_throttle=8
        FFMA R5, R3, R6, R5                         # k.cu:2 | short_scoreboard=40
        ISETP.NE.AND P0, PT, R10, RZ, PT            # k.cu:1 | wait=7
        @P0 BRA {target}                            # k.cu:1 | wait=12
        EXIT                                        # k.cu:4
"""
CONVERSION_CAUSES = {(1, "short_scoreboard"): [0]}


def test_a_conversion_counts_in_a_loop() -> None:
    found = match(write_subject(CONVERSION.format(before="loop:", target="loop"), CONVERSION_CAUSES))
    assert found.regions[0].samples == 48
    assert "conversion from integer to FP32 at line 2 of k.cu (`I2F`, in a loop)" in found.hint
    assert "1/8 of the FP32 rate" in found.hint
    straight = CONVERSION.format(before="", target="out").replace("        EXIT", "    out:\n        EXIT")
    assert refuse(write_subject(straight, CONVERSION_CAUSES)).stage is SilenceStage.NOT_MATCHED


def test_divisions_of_floats_are_left_to_fast_math() -> None:
    silence = refuse(write_subject(DIVISION, DIVISION_CAUSES, compute_capability=(8, 0)))
    assert silence.stage is SilenceStage.NOT_MATCHED
    assert "23 instructions" in silence.message


def test_regions_of_one_kernel_share_no_sample() -> None:
    body = INTEGER_DIVISION.replace("EXIT", "NOP") + WIDENED.replace("loop", "again").replace("EXIT", "NOP")
    subject = write_subject(body + DOUBLE.replace("loop", "third"), {}, compute_capability=(8, 6))
    found = match(subject)
    assert len(found.regions) == 3
    pairs = [(one.def_row, one.use_row) for region in found.regions for one in region.hotspots]
    assert len(pairs) == len(set(pairs))
    assert sum(region.samples for region in found.regions) <= subject.total_samples


def test_blind_without_code() -> None:
    assert refuse(forget_code(write_subject(WIDENED, {}))).stage is SilenceStage.NO_CODE


@pytest.mark.parametrize("capability", list_architectures())
def test_what_every_architecture_is_slow_at(capability: tuple[int, int]) -> None:
    architecture = find_architecture(capability)
    for mnemonic in ("FFMA", "IADD3", "IMAD.WIDE.U32", "HFMA2", "HMMA.16816.F32", "LDG.E", "FROB"):
        assert find_slowness(architecture, mnemonic) is None
    for mnemonic, kind in (
        ("MUFU.RCP", SlowKind.SPECIAL_FUNCTION),
        ("F2I", SlowKind.CONVERSION),
        ("POPC", SlowKind.BIT_COUNT),
    ):
        slowness = find_slowness(architecture, mnemonic)
        assert slowness.kind is kind
        assert slowness.words
    is_slow = find_slowness(architecture, "DADD") is not None
    assert is_slow == (capability not in ((7, 0), (8, 0), (9, 0), (10, 0), (10, 3)))


@pytest.mark.parametrize(("joins_doubles", "kind"), [(False, SlowKind.CONVERSION), (True, SlowKind.DOUBLE_PRECISION)])
def test_a_conversion_to_doubles_is_one_where_code_alone_is_read(joins_doubles: bool, kind: SlowKind) -> None:
    slowness = find_slowness(find_architecture((8, 6)), "I2F.F64", joins_doubles=joins_doubles)
    assert slowness is not None and slowness.kind is kind
