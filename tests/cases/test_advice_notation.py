"""The fence ``advice``: whatever differs is found, and what is no line of it is said."""

import pytest

from gpa_lsp.diagnosis.blame.blame import blame_kernel
from tests.cases.advice_fence import check_advice, read_fence
from tests.rows.written import write_kernel

SASS = """
    B-:R-:W0:-:S02  LDS R2, [R4]                      # k.cu:3 | selected=100
    B0:R-:W-:-:S05  FFMA R3, R2, R2, R3               # k.cu:4 | short_scoreboard=250/240 selected=100
    B-:R-:W-:-:S02  STS [R5], R3                      # k.cu:4 | wait=50/50 selected=100
    B-:R-:W-:-:S06  BAR.SYNC 0x0                      # k.cu:5 | selected=100
    B-:R-:W-:-:S02  STG.E [R6.64], R3                 # k.cu:6 | barrier=200/190 selected=50
    B-:R-:W-:-:S05  EXIT                              # k.cu:7 | selected=50
"""
METRICS = {"gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed": 45.5}
FENCE = """
warp_balance 1.22x  bound 2.198x  interval 1.118-1.338  uncapped 1.250x  M=200/190  function k.cu:3 ~ the next limit
    0x0040 STG <- 0x0030 BAR  barrier=200/190  1 instruction, 6 cycles
    hint ~ fewer barriers
    caveat ~ taken as avoidable
    reason ~ Equation 2
silence fast_math not_matched ~ none of the 6 instructions
also barrier_removal
"""


def check(text: str, sass: str = SASS) -> None:
    kernel = write_kernel(sass, metrics=METRICS if sass is SASS else None)
    check_advice(kernel, blame_kernel(kernel), text)


def test_what_is_right_passes() -> None:
    check(FENCE)


@pytest.mark.parametrize(
    ("right", "wrong", "message"),
    [
        ("1.22x  bound", "1.26x  bound", r"the estimate is 1.22\d* instead of 1.26"),
        ("bound 2.198x", "bound 1.4x", r"the bound is 2.19\d* instead of 1.4"),
        ("interval 1.118-", "interval 1.126-", r"the low end is 1.11\d* instead of 1.126"),
        ("-1.338 ", "-1.30 ", r"the high end is 1.33\d* instead of 1.30"),
        ("uncapped 1.250x", "uncapped 1.251x", "the uncapped value is 1.2500 instead of 1.251"),
        ("M=200/190", "M=201/190", "the M is 200.0000 instead of 201"),
        ("M=200/190", "M=200/190.5", r"the M\^L is 190.0000 instead of 190.5"),
        ("function k.cu:3", "function k.cu:4", "the scope is function k.cu:3 instead of function k.cu:4"),
        ("function k.cu:3", "loop k.cu:3", "the scope is function k.cu:3 instead of loop k.cu:3"),
        ("function k.cu:3", "kernel", "the scope is function k.cu:3 instead of kernel"),
        ("function k.cu:3", "function k.cu:3-6", "the scope is function k.cu:3 instead"),
        ("~ the next limit", "~ the roof", "the bound's reason is 'DRAM, at 46 %, becomes the next limit"),
        ("0x0030 BAR  ", "0x0020 STS  ", "a hotspot is '0x0040 STG <- 0x0030 BAR"),
        ("0x0030 BAR  ", "itself  ", "a hotspot is '0x0040 STG <- 0x0030 BAR"),
        ("barrier=200/190  1", "barrier=199/190  1", "a hotspot is"),
        ("barrier=200/190  1", "barrier=200/191  1", "a hotspot is"),
        ("barrier=200/190  1", "wait=200/190  1", "a hotspot is"),
        ("6 cycles", "5 cycles", "a hotspot is"),
        ("6 cycles", "6 cycles ~ late", "the note at .* is ''"),
        ("6 cycles", "6 cycles\n    0x0040 STG <- itself  barrier=1/1", "1 hotspots instead of 2"),
        ("    0x0040 STG <- 0x0030 BAR  barrier=200/190  1 instruction, 6 cycles\n", "", "1 hotspots instead of 0"),
        ("hint ~ fewer barriers", "hint ~ no barriers", "the hint does not say 'no barriers'"),
        ("caveat ~ taken", "caveat ~ given", "no caveat says 'given as avoidable'"),
        ("reason ~ Equation 2", "reason ~ Equation 4", "no reason says 'Equation 4'"),
        ("fast_math not_matched", "fast_math gated", "fast_math is silent as not_matched instead of gated"),
        ("the 6 instructions", "the 7 instructions", "fast_math is silent because"),
        ("silence fast_math", "silence warp_balance", "warp_balance is not silent"),
        ("silence fast_math", "also fast_math\nsilence fast_math", "fast_math is silent: not_matched"),
        ("warp_balance 1.22x", "fast_math 1.22x", "fast_math is silent: not_matched(.|\n)*warp_balance speaks, too"),
    ],
)
def test_whatever_differs_is_found(right: str, wrong: str, message: str) -> None:
    assert FENCE.count(right) >= 1
    with pytest.raises(AssertionError, match=message):
        check(FENCE.replace(right, wrong, 1))


def test_a_number_of_regions_is_held_to() -> None:
    region = "    region 1.22x  M=200/190  function k.cu:3\n"
    check(FENCE.replace("    0x0040", f"{region}    0x0040"))
    with pytest.raises(AssertionError, match="1 regions instead of 2"):
        check(FENCE.replace("    0x0040", f"{region}{region}    0x0040"))


LOOP = """
    loop:
        B-:R-:W-:-:S06  BAR.SYNC 0x0                  # k.cu:4 | selected=10
        B-:R-:W0:-:S02  MUFU.EX2 R2, R3               # k.cu:5 | barrier=40/40 selected=10
        B0:R-:W-:-:S05  @P0 BRA loop                  # k.cu:4 | short_scoreboard=30/30 selected=10
        B-:R-:W-:-:S05  EXIT                          # k.cu:6
"""
AT_THE_BARRIER = """
warp_balance 1.67x  M=40/40  loop k.cu:4-5
    0x0010 MUFU <- 0x0000 BAR  barrier=40/40  1 instruction, 6 cycles
"""
AT_THE_FUNCTION = """
strength_reduction 2.00x  M=30/30  line k.cu:5
    0x0020 BRA <- 0x0010 MUFU  short_scoreboard=30/30  1 instruction, 2 cycles
"""


def test_who_else_speaks_has_to_be_named() -> None:
    with pytest.raises(AssertionError, match="strength_reduction speaks, too"):
        check(f"{AT_THE_BARRIER}also barrier_removal", LOOP)
    check(f"{AT_THE_BARRIER}\nalso barrier_removal, strength_reduction", LOOP)


def test_the_order_of_advice_is_held_to() -> None:
    check(f"{AT_THE_FUNCTION}{AT_THE_BARRIER}also barrier_removal", LOOP)
    with pytest.raises(AssertionError, match="the order is strength_reduction, warp_balance"):
        check(f"{AT_THE_BARRIER}{AT_THE_FUNCTION}also barrier_removal", LOOP)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "a fence names an advice or a silence"),
        ("also fast_math", "a fence names an advice or a silence"),
        ("silence magic not_matched", "no optimizer is named magic"),
        ("fast_math 1.5x M=1/1 kernel", "'1.5x M=1/1 kernel' is neither a number nor a scope"),
        ("fast_math 1.50x M=1/1", "lacks kind"),
        ("fast_math 1.50x kernel", "lacks matched"),
        ("fast_math 1.50x M=1/1 room k.cu:3", "is neither a number nor a scope"),
        ("hint ~ words", "belongs to no advice"),
        ("fast_math 1.50x M=1/1 kernel\nhints ~ words", "is no line of an advice fence"),
    ],
)
def test_what_is_no_notation_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_fence(text)
