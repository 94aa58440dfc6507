"""What an operand stands for, and what is done to it."""

import pytest

from gpa_lsp.code.binary.model import name_resource
from gpa_lsp.editor.sass.operand_spans import find_mentions, find_value, list_values


def show(text: str) -> list[str]:
    """Each operand as its text, the registers it stands for, and ``<`` for read and ``>`` for written."""
    shown = []
    for one in list_values(text):
        names = ",".join(name_resource(resource) for resource in one.resources)
        shown.append(f"{text[one.start : one.end]}{'<' * one.is_read}{'>' * one.is_written}{names}")
    return shown


@pytest.mark.parametrize(
    ("text", "operands"),
    [
        ("", []),
        ("EXIT", []),
        ("@!P0 BRA 0x10", ["@!P0<P0", "0x10"]),
        ("HMMA.16816.F32 R4, R8, R12, R4", ["R4>R4,R5,R6,R7", "R8<R8,R9,R10,R11", "R12<R12,R13", "R4<R4,R5,R6,R7"]),
        ("LDG.E.64 R4, desc[UR4][R2.64+0x10]", ["R4>R4,R5", "UR4<UR4,UR5", "R2<R2,R3", "0x10"]),
        ("STG.E.64 [R2.64], R4", ["R2<R2,R3", "R4<R4,R5"]),
        ("ISETP.GE.AND P0, PT, R4, c[0x0][0x160], PT", ["P0>P0", "PT", "R4<R4", "c[0x0][0x160]", "PT"]),
        ("R2P PR, R0, 0x3", ["PR>P0,P1,P2,P3,P4,P5,P6", "R0<R0", "0x3"]),
        ("IMAD.WIDE.U32 R2, R3, 0x4, R6", ["R2>R2,R3", "R3<R3", "0x4", "R6<R6,R7"]),
        ("RET.REL.NODEC R20 0x0", ["R20<R20,R21", "0x0"]),
        ("BSYNC B0", ["B0<B0"]),
        ("DEPBAR.LE SB0, 0x1", ["SB0", "0x1"]),
    ],
)
def test_operands_stand_for_registers(text: str, operands: list[str]) -> None:
    assert show(text) == operands


def test_a_cursor_points_at_what_it_is_on_or_right_behind() -> None:
    text = "STG.E [R2.64+0x8], R4"
    found = [find_value(text, column) for column in range(len(text) + 1)]
    names = [one and text[one.start : one.end] for one in found]
    assert names[6:10] == [None, "R2", "R2", "R2"] and names[12:17] == [None, "0x8", "0x8", "0x8", "0x8"]
    assert names[19:] == ["R4", "R4", "R4"]


def test_mentions_are_told_by_what_is_done() -> None:
    text = "IADD3 R2, R2, R3, RZ"
    assert [one.start for one in find_mentions(text, 2, is_written=True)] == [6]
    assert [one.start for one in find_mentions(text, 2, is_written=False)] == [10]
    assert find_mentions(text, 4, is_written=False) == []
