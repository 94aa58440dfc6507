"""The instructions of a division, a root, a function: in written code, in real code of four architectures, in code made at random."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpa_lsp.code.binary.containers import find_cubins
from gpa_lsp.kernel.dataflow.arithmetic import ArithmeticSequences, Constancy, find_arithmetic_sequences
from gpa_lsp.kernel.dataflow.expansions import Family, recognise_routine
from gpa_lsp.kernel.join import list_unmeasured_kernels
from gpa_lsp.kernel.model import KernelRows
from tests.conftest import ROOT
from tests.rows.listings import (
    DIVISION,
    DIVISION_CALL_ROWS,
    DIVISION_ROWS,
    INTEGER_DIVISION,
    INTEGER_DIVISION_ROWS,
    ROUTINE_ROWS,
)
from tests.rows.written import write_kernel

ARCHITECTURES = ("sm_75", "sm_80", "sm_90", "sm_120")


def find(text: str) -> ArithmeticSequences:
    return find_arithmetic_sequences(write_kernel(text).rows)


@cache
def read_fixture(pattern: str, role: str, sm: str) -> KernelRows:
    (cubin,) = find_cubins(ROOT / "fixtures" / "cubins" / sm / f"{pattern}_{role}.cubin")
    (kernel, *_), problems = list_unmeasured_kernels(cubin)
    assert not problems
    return kernel.rows


def name_all(found: ArithmeticSequences) -> list[str]:
    return [one.operation.title for one in found.sequences] + ["widened"] * len(found.widened)


def test_a_division_is_its_chain_its_test_its_call_and_the_routine() -> None:
    (division,) = find(DIVISION).sequences
    assert division.operation.title == "FP64 division"
    assert set(division.inlined) == DIVISION_ROWS
    assert set(division.call_block) == DIVISION_CALL_ROWS
    assert division.site == 16
    assert division.callee == ROUTINE_ROWS
    assert division.divisor.constancy is Constancy.VARYING


def test_the_routine_itself_is_not_looked_into() -> None:
    found = find(DIVISION)
    assert np.flatnonzero(found.routine_rows).tolist() == list(ROUTINE_ROWS)
    assert all(row not in ROUTINE_ROWS for one in found.sequences for row in (*one.inlined, *one.call_block))


def test_a_routine_without_a_telling_name_is_known_by_its_structure() -> None:
    (division,) = find(DIVISION.replace("__cuda_sm20_div_rn_f64_full", "slow")).sequences
    assert division.operation.title == "FP64 division"
    assert set(division.inlined) == DIVISION_ROWS


def test_a_function_with_lines_of_its_own_is_the_users() -> None:
    text = DIVISION.replace("__cuda_sm20_div_rn_f64_full", "mine").replace("# - |", "# k.cu:20 |")
    assert find(text).sequences == ()


def test_a_routine_that_touches_memory_is_no_arithmetic() -> None:
    text = DIVISION.replace("__cuda_sm20_div_rn_f64_full", "slow").replace(
        "DFMA R4, R10, R10, R4", "LDG.E.64 R4, [R10.64]"
    )
    assert find(text).sequences == ()


def test_a_divisor_written_into_the_code_is_constant() -> None:
    text = DIVISION.replace("MUFU.RCP64H R7, R23  ", "MUFU.RCP64H R7, 12   ", 1)
    (division,) = find(text).sequences
    assert (division.divisor.constancy, division.divisor.text) == (Constancy.CONSTANT, "12")


def test_a_call_outside_any_branch_is_only_the_call_and_its_copies() -> None:
    (power,) = find(
        """
        DADD R2, R2, R4               # k.cu:3
        MOV R8, R2                    # k.cu:4
        IMAD.MOV.U32 R9, RZ, RZ, R3   # k.cu:4
        CALL.REL.NOINC $k$__internal_accurate_pow   # k.cu:4
        DMUL R8, R8, R2               # k.cu:5
        EXIT                          # k.cu:6
    $k$__internal_accurate_pow:
        DMUL R8, R8, R8               # -
        RET.REL.NODEC R20 0x0         # -
        """
    ).sequences
    assert power.operation.title == "FP64 power"
    assert (power.inlined, power.call_block) == ((), (1, 2, 3))


def test_an_integer_division_reaches_from_the_conversion_to_the_last_correction() -> None:
    (division,) = find(INTEGER_DIVISION).sequences
    assert division.operation.family is Family.INTEGER_DIVISION
    assert set(division.inlined) == INTEGER_DIVISION_ROWS
    assert division.divisor.constancy is Constancy.INVARIANT


def test_a_reciprocal_that_no_integer_is_multiplied_with_is_no_division() -> None:
    assert find(INTEGER_DIVISION.replace("I2F.U32.RP", "I2F.U32")).sequences == ()
    assert find(INTEGER_DIVISION.replace("IMAD.HI.U32 R9, R6, R7, RZ", "IADD3 R9, R7, 0x2, RZ")).sequences == ()


def test_a_widened_value_must_be_narrowed_again() -> None:
    text = """
        F2F.F64.F32 R2, R13
        DFMA R2, R2, R10, c[0x2][0x0]
        {last}
        STG.E.64 [R20.64], R2
        EXIT
    """
    assert find(text.format(last="F2F.F32.F64 R2, R2")).widened == ((0, 1, 2),)
    assert find(text.format(last="DADD R2, R2, R4")).widened == ()
    assert find("F2F.F64.F32 R2, R13\nF2F.F32.F64 R2, R2\nEXIT").widened == ()


def test_an_inlined_function_is_its_line_from_the_telling_constant_on() -> None:
    (sine,) = find(
        """
        LDG.E R4, [R2.64]                              # k.cu:3
        FADD R4, R4, R5                                # k.cu:4
        FMUL R6, R4, 0.63661974668502807617            # k.cu:4
        F2I.NTZ R6, R6                                 # k.cu:4
        IADD3 R30, R30, 0x1, RZ                        # k.cu:5
        I2F R7, R6                                     # k.cu:4
        FFMA R8, R7, -1.5707962512969970703, R4        # k.cu:4
        STG.E [R20.64], R8                             # k.cu:6
        EXIT                                           # k.cu:7
        """
    ).sequences
    assert sine.operation.title == "FP32 sine, cosine or tangent"
    assert sine.inlined == (2, 3, 5, 6)


def test_what_widens_the_result_of_a_function_on_its_line_is_no_part_of_it() -> None:
    found = find(
        """
        LDG.E R5, [R2.64]                              # k.cu:3
        FFMA.RM R4, R5, R7, 12582913                   # k.cu:4
        FFMA R6, R5, 1.4426950216293334961, -R4        # k.cu:4
        FFMA R8, R5, 1.925963033500011079e-08, R6      # k.cu:4
        MUFU.EX2 R5, R8                                # k.cu:4
        FMUL R9, R4, R5                                # k.cu:4
        F2F.F64.F32 R10, R9                            # k.cu:4
        DMUL R10, R10, c[0x2][0x0]                     # k.cu:4
        F2F.F32.F64 R5, R10                            # k.cu:4
        STG.E [R2.64], R5                              # k.cu:5
        EXIT                                           # k.cu:6
        """
    )
    assert found.sequences[0].operation.title == "FP32 exponential"
    assert found.sequences[0].inlined == (3, 4, 5)
    assert found.widened == ((6, 7, 8),)


@pytest.mark.parametrize(
    ("symbol", "title"),
    [
        ("__cuda_sm20_div_f64_slowpath_v2", "FP64 division"),
        ("$__internal_13_$__cuda_sm20_div_rn_f64_full", "FP64 division"),
        ("$__internal_0_$__cuda_sm3x_div_rn_noftz_f32_slowpath", "FP32 division"),
        ("$__internal_11_$__cuda_sm20_dblrcp_rn_slowpath_v3", "FP64 reciprocal"),
        ("$__internal_6_$__cuda_sm20_rcp_rn_f32_slowpath@17", "FP32 reciprocal"),
        ("$__internal_10_$__cuda_sm20_dsqrt_rn_f64_mediumpath_v1", "FP64 square root"),
        ("$__internal_9_$__cuda_sm20_drsqrt_f64_slowpath_v2", "FP64 reciprocal square root"),
        ("$__internal_5_$__cuda_sm20_sqrt_rn_f32_slowpath", "FP32 square root"),
        ("$__internal_4_$__cuda_sm20_div_s64", "INT64 division"),
        ("$__internal_3_$__cuda_sm20_rem_u64", "INT64 division"),
        ("$dpow_$__internal_accurate_pow", "FP64 power"),
        ("$dsin_$__internal_trig_reduction_slowpathd", "FP64 sine, cosine or tangent"),
        ("__nv_erfinv", "library function erfinv"),
        ("_ZN6vector3divEdd", None),
        ("my__cuda_sm20_div_f64", None),
    ],
)
def test_routines_by_their_symbols(symbol: str, title: str | None) -> None:
    routine = recognise_routine(symbol)
    assert (routine.operation.title if routine else None) == title


@pytest.mark.parametrize("sm", ARCHITECTURES)
def test_what_the_fixtures_hold(sm: str) -> None:
    held = {
        "integer_division": ["integer division"],
        "math_functions": [
            "FP32 sine, cosine or tangent",
            "FP32 power or base-2 logarithm",
            "FP32 division",
        ],
        "double_constant": ["widened"] * 4,
        "fp64_heavy": [],
        "device_calls": [],
    }
    for pattern, names in held.items():
        assert name_all(find_arithmetic_sequences(read_fixture(pattern, "original", sm))) == names, pattern
        assert name_all(find_arithmetic_sequences(read_fixture(pattern, "improved", sm))) == [], pattern


@pytest.mark.parametrize("sm", ARCHITECTURES)
def test_the_checked_division_of_the_fixture_is_found_whole(sm: str) -> None:
    kernel = read_fixture("math_functions", "original", sm)
    division = find_arithmetic_sequences(kernel).sequences[-1]
    names = [kernel.opcode(row).name for row in division.inlined]
    # One approximation, one check, five steps; and the branch with its two barriers.
    assert (
        names.count("MUFU")
        == names.count("FCHK")
        == names.count("BSSY")
        == names.count("BSYNC")
        == names.count("BRA")
        == 1
    )
    assert names.count("FFMA") == 5
    assert [kernel.opcode(row).name for row in division.call_block][-1] in ("CALL", "MOV", "IMAD")
    assert len(division.callee) > 100
    lines = {kernel.chain(row)[0].line for row in division.inlined if kernel.chain(row)}  # type: ignore[index]
    assert lines == {13}


@pytest.mark.parametrize("sm", ARCHITECTURES)
def test_every_quotient_and_remainder_of_the_fixture_is_found(sm: str) -> None:
    kernel = read_fixture("integer_division", "original", sm)
    (division,) = find_arithmetic_sequences(kernel).sequences
    high_products = [row for row in range(len(kernel)) if kernel.mnemonic(row).startswith("IMAD.HI")]
    assert set(high_products) <= set(division.inlined)
    kept = [kernel.mnemonic(row) for row in range(len(kernel)) if row not in division.inlined]
    # The multiplier of the program's own generator, 1664525, stays the program's.
    assert sum(name == "IMAD" for name in kept) >= 4
    assert division.divisor.constancy is Constancy.INVARIANT


_LINES = [line.partition("#")[0].strip() for line in (DIVISION + INTEGER_DIVISION).splitlines()]
_CODE = [line.partition(" ")[2].strip() for line in _LINES if line.startswith("B")]
_PLAIN = sorted({line for line in _CODE if not line.startswith(("@", "CALL", "RET", "BSSY", "BSYNC", "EXIT"))})


@given(st.lists(st.sampled_from([*_PLAIN, "BSYNC B6", "@P0 BRA 0x20", "@P1 EXIT"]), min_size=4, max_size=40))
def test_no_instruction_is_in_two_sequences(lines: list[str]) -> None:
    found = find("\n".join([*lines, "EXIT"]))
    rows = [row for one in found.sequences for row in (*one.inlined, *one.call_block)]
    rows.extend(row for chain in found.widened for row in chain)
    assert len(rows) == len(set(rows))
    assert all(0 <= row <= len(lines) for row in rows)


def test_large_functions() -> None:
    lines = [line.replace("EXIT", "NOP") for line in DIVISION.splitlines()]
    end = next(index for index, line in enumerate(lines) if line.strip().startswith("$"))
    text = "\n".join(
        [
            *(line.replace("join", f"join{number}") for number in range(2000) for line in lines[:end]),
            "EXIT",
            *lines[end:],
        ]
    )
    found = find(text)
    assert len(found.sequences) == 2000
    assert {len(one.inlined) for one in found.sequences} == {len(DIVISION_ROWS)}
