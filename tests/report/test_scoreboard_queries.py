"""Instructions that set and that await scoreboards."""

from gpa_lsp.report.code_queries import MOST_STEPS, find_setters, find_waiters, list_awaited, list_set
from gpa_lsp.report.gather import AnalysedKernel, gather_report
from gpa_lsp.report.model import KernelReport
from tests.rows.written import write_kernel


def gather(text: str) -> KernelReport:
    return gather_report([AnalysedKernel(kernel=write_kernel(text))]).kernels[0]


LOOP = gather("""
    B-:R-:W0:-:S01      LDG.E R2, [R4.64]           // 0
    loop:
    B-:R-:W0:-:S01      LDG.E R3, [R6.64]           // 1
    B-:R-:W-:-:S01      IADD3 R8, R8, 0x1, RZ       // 2
    B0:R1:W0:-:S01      LDG.E R9, [R8.64]           // 3 waits, then sets again
    B-:R-:W-:-:S05      @P0 BRA loop                // 4
    B01:R-:W-:-:S01     FFMA R2, R2, R3, R9         // 5
    B-:R-:W-:-:S05      EXIT                        // 6
""")


def test_a_wait_is_for_every_setter_since_the_last_one() -> None:
    assert (list_awaited(LOOP, 3), list_awaited(LOOP, 5), list_awaited(LOOP, 6)) == ((0,), (0, 1), ())
    assert (list_set(LOOP, 0), list_set(LOOP, 3), list_set(LOOP, 2)) == ((0,), (0, 1), ())
    assert find_setters(LOOP, 3, 0).rows == (0, 1, 3)
    assert find_setters(LOOP, 5, 0).rows == (3,)
    assert find_waiters(LOOP, 0, 0).rows == (3,)
    assert find_waiters(LOOP, 3, 0).rows == (3, 5)


def test_a_result_that_was_waited_for_has_had_its_operands_read() -> None:
    kernel = gather("""
        B-:R1:W0:-:S01      LDG.E R2, [R4.64]
        B-:R1:W-:-:S01      STG.E [R4.64], R9
        B0:R-:W-:-:S01      FFMA R2, R2, R3, R9
        B1:R-:W-:-:S01      IADD3 R4, R4, 0x4, RZ
        B-:R-:W-:-:S05      EXIT
    """)
    assert find_setters(kernel, 3, 1).rows == (1,)
    assert (find_waiters(kernel, 0, 1).rows, find_waiters(kernel, 1, 1).rows) == ((), (3,))


def test_a_partial_wait_releases_nothing_for_certain() -> None:
    kernel = gather("""
        B-:R-:W0:-:S01      LDG.E R2, [R4.64]
        B-:R-:W-:-:S04      DEPBAR.LE SB0, 0x1
        B-:R-:W-:-:S04      @P0 DEPBAR.LE SB0, 0x0
        B-:R-:W-:-:S04      DEPBAR.LE SB0, 0x0, {2}
        B0:R-:W-:-:S01      FFMA R2, R2, R3, R9
        B-:R-:W-:-:S05      EXIT
    """)
    assert [list_awaited(kernel, row) for row in (1, 2, 3)] == [(0,), (0,), (0, 2)]
    assert find_waiters(kernel, 0, 0).rows == (1, 2, 3)
    assert (find_setters(kernel, 3, 0).rows, find_setters(kernel, 4, 0).rows) == ((0,), ())


def test_long_ways_are_cut() -> None:
    plain = "B-:R-:W-:-:S01  IADD3 R8, R8, 0x1, RZ\nnext{}:\n"
    text = "".join(plain.format(row) + f"@P0 BRA next{row}\n" for row in range(MOST_STEPS))
    kernel = gather(f"B-:R-:W0:-:S01 LDG.E R2, [R4.64]\n{text}B0:R-:W-:-:S01 FFMA R2, R2, R3, R9\nEXIT")
    assert not find_waiters(kernel, 0, 0).is_complete
    assert not find_setters(kernel, len(kernel.instructions) - 2, 0).is_complete
