"""Number of live registers at each instruction."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpa_lsp.report.code_queries import count_live_registers
from gpa_lsp.report.count import build_kernel_code
from tests.conftest import examples
from tests.real_reports import REPORTS, analyse_report
from tests.rows.written import write_kernel


def count(text: str) -> list[int]:
    return count_live_registers(build_kernel_code(write_kernel(text))).tolist()


def test_values_are_alive_from_their_definition_to_their_last_use() -> None:
    assert count("""
        MOV R0, 0x1                 // R0
        MOV R1, 0x2                 // R0 R1
        IADD3 R2, R0, R1, RZ        // R0 R1 R2
        STG.E [R4.64], R2           // R2 R4 R5
        EXIT
    """) == [3, 4, 5, 3, 0]  # fmt: skip


def test_what_a_loop_needs_is_alive_all_around_it() -> None:
    assert count("""
        MOV R0, RZ                        // 0  R0, and R3 R4 R5 R6 R7 R8 from outside
    loop:
        LDG.E R2, [R4.64]
        FFMA R0, R2, R3, R0
        IADD3 R4, R4, 0x4, RZ
        ISETP.LT.AND P0, PT, R4, R8, PT
        @P0 BRA loop
        STG.E [R6.64], R0
        EXIT
    """) == [7, 8, 8, 7, 7, 7, 3, 0]  # fmt: skip


def test_a_guarded_write_keeps_what_was_there() -> None:
    assert count("@P0 MOV R1, 0x1\nSTG.E [R4.64], R1\nEXIT") == [3, 3, 0]
    assert count("MOV R1, 0x1\nSTG.E [R4.64], R1\nEXIT") == [3, 3, 0]
    assert count("MOV R2, 0x1\n@P0 MOV R1, 0x1\nSTG.E [R4.64], R1\nEXIT")[0] == 4, "R1 of before, and R2"
    assert count("MOV R2, 0x1\nMOV R1, 0x1\nSTG.E [R4.64], R1\nEXIT")[0] == 3


def test_predicates_and_uniform_registers_are_not_counted() -> None:
    assert count("ISETP.LT.AND P0, PT, R4, R8, PT\nUMOV UR4, URZ\n@P0 EXIT\nEXIT") == [2, 0, 0, 0]


@examples(30)
@given(st.lists(st.tuples(st.integers(0, 9), st.booleans(), st.integers(0, 7)), min_size=1, max_size=20))
def test_what_is_read_and_written_is_alive(rows: list[tuple[int, bool, int]]) -> None:
    text = "\n".join(
        f"{'@P0 ' * guarded}BRA {16 * (target % len(rows)):#x}"
        if register == 0
        else f"{'@P0 ' * guarded}IADD3 R{register}, R{target}, R{target + 1}, RZ"
        for register, guarded, target in rows
    )
    counts = count(f"{text}\nEXIT")
    assert all(0 <= one <= 10 for one in counts)
    assert all(one >= 2 for one, (register, *_) in zip(counts, rows, strict=False) if register)


@pytest.mark.corpus
@pytest.mark.parametrize("name", REPORTS)
def test_real_kernels_have_as_many_registers_as_they_need(name: str) -> None:
    """A compiler gives a kernel at least the registers that are alive somewhere, and large kernels hardly more."""
    for kernel in analyse_report(name).kernels:
        registers = kernel.configuration.registers_per_thread
        assert kernel.code is not None and registers is not None
        most = int(count_live_registers(kernel.code).max())
        assert most <= registers, kernel.name
        assert most >= 0.7 * registers or registers < 64, kernel.name
