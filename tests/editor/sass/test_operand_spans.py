"""Every operand a person can point at is found, at its place, as what it is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpa_lsp.code.binary.model import name_resource
from gpa_lsp.editor.sass.operand_spans import (
    SpanKind,
    find_mentions,
    find_mnemonic,
    find_value,
    list_operands,
    list_values,
)
from tests.binary.listing import parse_listing

INSTRUCTIONS = """
    @!P0 LDG.E.128 R4, desc[UR4][R2.64+0x10]
    @UP1 LDS R3, [R5.X4+UR6+-0x20]
    IMAD.WIDE.U32 R8, P1, R9.reuse, c[0x0][0x160], R10
    LDC R2, c[0x3][R4+0x8]
    ULDC.64 UR4, c[0x0][0x118]
    FSETP.GEU.FTZ.AND P0, PT, |R6|, +INF, !P2
    FADD R0, -|R1|.reuse, -1.5e-05
    ISETP.GT.AND.EX P3, PT, R2, RZ, PT, P4
    UISETP.NE.AND UP0, UPT, UR4, URZ, !UP1
    S2R R0, SR_TID.X
    CS2R R2, SRZ
    BSSY B0, 0x20
    BSYNC B0
    DEPBAR.LE SB0, 0x1
    @!P0 BRA 0x20
    BRA.CONV ~URZ, 0x20
    EXIT
    P2R R0, PR, RZ, 0x7f
    TEX.SCR.LL RZ, R0, R0, R4, 0x0, 0x58, 1D
"""
TEXTS = parse_listing(INSTRUCTIONS).texts


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (
            "@!P0 LDG.E.128 R4, desc[UR4][R2.64+0x10]",
            "guard @!P0 P0 | register R4 R4 | uniform_register UR4 UR4,UR5 | register R2 R2,R3 | immediate 0x10",
        ),
        (
            "LDS R3, [R5.X4+UR6+-0x20]",
            "register R3 R3 | register R5 R5 | uniform_register UR6 UR6 | immediate -0x20",
        ),
        ("LDC R2, c[0x3][R4+0x8]", "register R2 R2 | constant c[0x3] | register R4 R4 | immediate 0x8"),
        (
            "IMAD R8, R9.reuse, -c[0x0][0x160], RZ",
            "register R8 R8 | register R9 R9 | constant c[0x0][0x160] | register RZ",
        ),
        (
            "FSETP.GEU.AND P0, PT, |R6|, +INF, !P2",
            "predicate P0 P0 | predicate PT | register R6 R6 | immediate +INF | predicate P2 P2",
        ),
        ("FADD R0, -|R1|.reuse, -1.5e-05", "register R0 R0 | register R1 R1 | immediate -1.5e-05"),
        (
            "UISETP.NE.AND UP0, UPT, UR4, URZ, !UP1",
            "uniform_predicate UP0 UP0 | uniform_predicate UPT | uniform_register UR4 UR4 | uniform_register URZ | "
            "uniform_predicate UP1 UP1",
        ),
        ("S2R R0, SR_TID.X", "register R0 R0 | special_register SR_TID.X"),
        ("BSSY B0, 0x20", "convergence_barrier B0 B0 | target 0x20"),
        ("DEPBAR.LE SB0, 0x1", "scoreboard SB0 | immediate 0x1"),
        ("@!P0 BRA 0x20", "guard @!P0 P0 | target 0x20"),
        ("BRA `(.L_x_R2)", "target `(.L_x_R2)"),
        ("CALL.REL.NOINC `(__cuda_sm20_div_u64)", "target `(__cuda_sm20_div_u64)"),
        ("TEX.LL RZ, R0, R4, 0x58, 1D", "register RZ | register R0 R0 | register R4 R4 | immediate 0x58"),
        ("EXIT", ""),
        ("", ""),
    ],
)
def test_operands(text, wanted):
    found = [
        " ".join(
            filter(
                None, (span.kind.value, text[span.start : span.end], ",".join(name_resource(n) for n in span.resources))
            )
        )
        for span in list_operands(text)
    ]
    assert " | ".join(found) == wanted


def test_every_resource_the_text_names_is_one_the_decoder_reads_or_writes():
    listing = parse_listing(INSTRUCTIONS)
    for row, text in enumerate(TEXTS):
        named = {number for span in list_operands(text) for number in span.resources}
        assert named <= {*listing.reads.of(row), *listing.writes.of(row)}, text


@pytest.mark.parametrize("text", TEXTS)
def test_spans_are_in_order_and_apart(text):
    spans = list_operands(text)
    ends = [0, *(span.end for span in spans)]
    assert all(end <= span.start < span.end <= len(text) for end, span in zip(ends, spans, strict=False))
    assert not any(" " in text[span.start : span.end] for span in spans)


@pytest.mark.parametrize(
    ("text", "mnemonic"),
    [("@!P0 BRA.U 0x10", "BRA.U"), ("EXIT", "EXIT"), ("@P0", ""), ("", ""), ("@P0  RET R2", "RET")],
)
def test_mnemonic(text, mnemonic):
    _, start, end = find_mnemonic(text)
    assert text[start:end] == mnemonic


@given(st.text(alphabet="@!PRUBSTZcxd[]0123456789.,` ()+-|~ef_é\t", max_size=40))
def test_any_text_has_spans_inside_it(text):
    spans = list_operands(text)
    ends = [0, *(span.end for span in spans)]
    assert all(end <= span.start <= span.end <= len(text) for end, span in zip(ends, spans, strict=False))
    assert all(span.kind in SpanKind for span in spans)


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
