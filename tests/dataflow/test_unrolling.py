"""Loops as the compiler left them: copies of the body, steps of counters, turns."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpa_lsp.code.binary.tool_location import find_tool
from gpa_lsp.kernel.dataflow.unrolling import (
    TurnCount,
    Unrolling,
    count_turns,
    find_common_factor,
    find_counter_step,
    find_repetition,
    find_unrolling,
)
from gpa_lsp.kernel.model import KernelRows
from gpa_lsp.kernel.scopes import find_scopes
from tests.pairs.made_up_profile import Circumstances, make_up_kernel
from tests.rows.written import write_kernel

CUBINS = Path(__file__).resolve().parents[2] / "fixtures" / "cubins"

needs_nvdisasm = pytest.mark.skipif(find_tool("nvdisasm") is None, reason="nvdisasm is not installed")


def find_only_loop(kernel: KernelRows) -> int:
    (scope,) = np.flatnonzero(find_scopes(kernel).is_loop).tolist()
    return int(scope)


def look(text: str) -> Unrolling:
    kernel = write_kernel(text).rows
    return find_unrolling(kernel, find_only_loop(kernel))


ONE = """
    LDG.E R2, [R4.64]                 # k.cu:5
    FFMA R6, R2, R3, R6               # k.cu:6
"""

CLOSE = """
    IADD3 R8, R8, {step}, RZ          # k.cu:4
    ISETP.GE.AND P0, PT, R8, R9, PT   # k.cu:4
    @!P0 BRA loop                     # k.cu:4
    EXIT
"""


def write_loop(body: str, step: str) -> str:
    return f"loop:\n{body}{CLOSE.format(step=step)}"


LOADS, WORK = ONE.strip().splitlines()
TWO_OPERANDS = ONE.replace("LDG.E R2, [R4.64] ", "LDG.E R2, [R4.64]  # k.cu:6\n LDG.E R3, [R14.64]")
AT_OFFSETS = "".join(
    f"LDG.E R{2 * k}, [R4.64+{4 * k:#x}]  # k.cu:5\nFFMA R6, R{2 * k}, R3, R6  # k.cu:6\n" for k in range(4)
)
IN_SEQUENCE = "LDG.E R2, [R4.64]\nFFMA R6, R2, R3, R6\nIADD3 R4, R4, R30, RZ\nSTS [R4], R6\n"
INTEGERS = "LOP3.LUT R2, R3, R4, RZ, 0x3c, !PT  # k.cu:5\nSHF.R.U32.HI R3, RZ, 0xf, R2  # k.cu:5\n"


@pytest.mark.parametrize(
    ("body", "step", "expected"),
    [
        pytest.param(ONE, "0x1", (1, 1, 5), id="rolled"),
        pytest.param(ONE * 4, "0x4", (4, 4), id="borne out by the counter"),
        pytest.param(ONE * 4, "-0x4", (4,), id="counting down"),
        pytest.param(ONE * 4, "0xfffffffc", (4,), id="counting down, unsigned"),
        pytest.param("\n".join([LOADS] * 4 + ["FADD R20, R21, R22  # k.cu:3"] + [WORK] * 4), "0x4", (4,), id="woven"),
        pytest.param(TWO_OPERANDS + TWO_OPERANDS.replace("FFMA", "FADD"), "0x1", (1,), id="two operands of one line"),
        pytest.param(ONE, "0x20", (1,), id="a stride"),
        pytest.param(AT_OFFSETS, "R30", (4, None), id="offsets where the counter is a register"),
        pytest.param(IN_SEQUENCE * 3, "R31", (3,), id="the sequence where nothing else tells"),
        pytest.param(INTEGERS * 4, "0x4", (4,), id="judged by integer arithmetic"),
    ],
)
def test_copies_of_a_body(body: str, step: str, expected: tuple[object, ...]) -> None:
    found = look(write_loop(body, step))
    assert (found.copies, found.counter_step, found.instructions)[: len(expected)] == expected


def test_an_inner_loop_unrolled_whole_repeats_but_is_no_copy_of_this_one() -> None:
    found = look(write_loop("FFMA R6, R2, R3, R6  # k.cu:6\n" * 16, "0x1"))
    assert (found.copies, found.repeats) == (1, 16)


@pytest.mark.parametrize(
    ("text", "step"),
    [
        ("loop:\n UIADD3 UR4, UR4, 0x2, URZ\n ISETP.LE.AND P0, PT, R8, UR4, PT\n @!P0 BRA loop\n EXIT", 2),
        ("loop:\n IADD3 R8, R8, R7, RZ\n ISETP.LE.AND P0, PT, R8, R9, PT\n @!P0 BRA loop\n EXIT", None),
        ("loop:\n LDG.E R8, [R8.64]\n ISETP.NE.AND P0, PT, R8, RZ, PT\n @P0 BRA loop\n EXIT", None),
        ("loop:\n @P1 IADD3 R8, R8, 0x2, RZ\n ISETP.LE.AND P0, PT, R8, R9, PT\n @!P0 BRA loop\n EXIT", None),
        ("loop:\n BRA loop", None),
    ],
)
def test_the_counters_step(text: str, step: int | None) -> None:
    kernel = write_kernel(text).rows
    assert find_counter_step(kernel, find_only_loop(kernel)) == step


@given(st.integers(2, 9), st.text("ABCDEFGH", min_size=4, max_size=12), st.text("XYZ", max_size=5))
def test_a_repeated_stretch_is_found(copies: int, part: str, other: str) -> None:
    start, period, found = find_repetition(other + part * copies + other)
    assert period * found >= len(part) * copies - len(part)
    assert found >= 2
    text = other + part * copies + other
    stretch = text[start : start + period * found]
    assert stretch == stretch[:period] * found


@given(st.lists(st.integers(1, 40), max_size=12))
def test_the_common_factor_divides_most(counts: list[int]) -> None:
    factor = find_common_factor(counts)
    assert sum(count for count in counts if count % factor == 0) >= 0.85 * sum(counts)


def count(text: str) -> TurnCount | None:
    kernel = write_kernel(text).rows
    return count_turns(kernel, find_only_loop(kernel), np.zeros(len(kernel)))


PREHEADER = """
    @P1 BRA over                      # - | selected=1 | x=100
    MOV R8, RZ                        # - | selected=1 | x=90
loop:
    IADD3 R8, R8, 0x1, RZ             # - | selected=1 | x=720
    ISETP.GE.AND P0, PT, R8, R9, PT   # - | selected=1 | x=720
    @!P0 BRA loop                     # - | selected=1 | x=720
over:
    EXIT                              # - | selected=1 | x=100
"""


def test_turns_are_executions_by_entries() -> None:
    assert count(PREHEADER) == TurnCount(mean=8.0, is_exact=True, is_least=False)


def test_where_not_every_warp_that_arrives_enters_turns_are_a_lower_bound() -> None:
    text = PREHEADER.replace("    MOV R8, RZ                        # - | selected=1 | x=90\n", "")
    assert count(text) == TurnCount(mean=7.2, is_exact=True, is_least=True)


def estimate(header: float, before: float) -> TurnCount | None:
    text = PREHEADER.replace(" | x=", " | y=")
    kernel = write_kernel(text).rows
    counts = np.array([before, before, header, header, header, before], dtype=np.float64)
    return count_turns(kernel, find_only_loop(kernel), counts)


def test_samples_tell_turns_where_executions_are_not_counted() -> None:
    assert estimate(160, 20) == TurnCount(mean=8.0, is_exact=False, is_least=False)


def test_a_loop_entered_too_rarely_to_be_seen_has_a_lower_bound() -> None:
    found = estimate(300, 0)
    assert found.is_least
    assert found.mean == pytest.approx(100.0)


def test_too_few_samples_tell_nothing() -> None:
    assert estimate(2, 0) is None


@needs_nvdisasm
@pytest.mark.parametrize("sm", [75, 80, 90, 120])
@pytest.mark.parametrize(
    ("name", "copies", "repeats"),
    [
        ("loop_not_unrolled_original", [1], [1]),
        ("double_constant_original", [4], [4]),
        ("strided_access_original", [4], [4]),
        ("short_def_use_original", [1], [8]),
        ("huge_body_original", [1], [1024]),
    ],
)
def test_real_loops(sm: int, name: str, copies: list[int], repeats: list[int]) -> None:
    kernel = make_up_kernel(CUBINS / f"sm_{sm}" / f"{name}.cubin", Circumstances(turns=16)).rows
    reachable = [
        scope
        for scope in np.flatnonzero(find_scopes(kernel).is_loop).tolist()
        if count_turns(kernel, scope, np.zeros(len(kernel)))
    ]
    found = [find_unrolling(kernel, scope) for scope in reachable]
    assert [one.copies for one in found] == copies
    assert [one.repeats for one in found] == repeats
    assert [count_turns(kernel, scope, np.zeros(len(kernel))) for scope in reachable] == [
        TurnCount(mean=16.0, is_exact=True, is_least=False)
    ]
