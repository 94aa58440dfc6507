"""The writers of a register, and the constants of address arithmetic."""

import numpy as np
import pytest

from gpa_lsp.code.binary.model import ResourceKind, encode_resource
from gpa_lsp.kernel.dataflow.accesses import RegisterWriters
from tests.binary.listing import parse_listing

CODE = parse_listing("""
MOV R9, 0x10
IMAD.WIDE R2, R0, R9, R6
IADD3 R2, R2, 0x4, RZ
ISETP.LT.AND P0, PT, R2, R6, PT
@P0 LDG.E.64 R4, [R2.64]
""")


def test_writers_are_found_by_resource():
    writers = RegisterWriters(CODE)
    assert writers.rows_of(2).tolist() == [1, 2]
    assert writers.rows_of(3).tolist() == [1], "the upper half of a wide result"
    assert writers.rows_of(5).tolist() == [4]
    assert writers.rows_of(encode_resource(ResourceKind.PREDICATE, 0)).tolist() == [3]
    assert writers.rows_of(77).tolist() == []


def test_equal_counts_before_two_rows_mean_an_equal_value():
    writers = RegisterWriters(CODE)
    assert [writers.count_before(2, row) for row in range(5)] == [0, 0, 1, 2, 2]


def test_a_loop_that_writes_any_of_the_registers_is_told():
    writers = RegisterWriters(CODE)
    inside = np.array([False, False, True, True, False])
    assert writers.is_written_in((3, 2), inside)
    assert not writers.is_written_in((3, 9), inside)


@pytest.mark.parametrize(
    ("address", "scale"),
    [
        ("MOV R9, 0x10\nIMAD.WIDE R2, R0, R9, R6", 16),
        ("IMAD.MOV.U32 R9, RZ, RZ, 0x4\nIMAD.WIDE.U32 R2, R0, R9, R6", 4),
        ("HFMA2.MMA R9, -RZ, RZ, 0, 9.5367431640625e-07\nIMAD.WIDE R2, R0, R9, R6", 16),
        ("HFMA2 R9, -RZ, RZ, 0, 2.384185791015625e-07\nIMAD.WIDE R2, R0, R9, R6", 4),
        ("IMAD.WIDE R2, R0, -0x8, R6", 8),
        ("LEA R2, P0, R0, R6, 0x3", 8),
        ("LEA.HI.X R2, R0, R6, R5, 0x3, P0", None),
        ("IMAD.WIDE R2, R0, R9, R6", None),
        ("MOV R9, R8\nIMAD.WIDE R2, R0, R9, R6", None),
        ("IADD3 R2, R2, R4, RZ", None),
        ("FADD R4, R4, R5", None),
    ],
)
def test_the_scale_of_an_index_is_read_from_the_address_computation(address, scale):
    code = parse_listing(f"{address}\nLDG.E R4, [R2.64]")
    assert RegisterWriters(code).find_index_scale(2, len(code) - 1) == scale
