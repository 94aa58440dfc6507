"""Reads, writes and targets of instructions, and the treatment of text that is no instruction."""

import random
from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gpa_lsp.code.binary.model import Flow, Instructions, name_resource
from gpa_lsp.code.binary.opcodes import UNDECODED
from gpa_lsp.code.binary.sass import decode_instructions
from tests.binary.listing import parse_listing
from tests.binary.opcode_table import TABLE, find_unknown_opcodes

USES = """
IADD3 R6, P0, R20, c[0x0][0x168], RZ                       | R20                   | R6 P0
IADD3.X R7, R0, c[0x0][0x16c], RZ, P0, !PT                 | R0 P0                 | R7
IADD3 R46, P0, P2, -R6, ~R9, UR4                           | R6 R9 UR4             | R46 P0 P2
IADD.64 R8, R2, UR6                                        | R2 R3 UR6 UR7         | R8 R9
IMAD.WIDE R4, R3.reuse, R4, c[0x0][0x170]                  | R3 R4                 | R4 R5
IMAD.WIDE.U32 R2, P0, R4, R9, R6                           | R4 R6 R7 R9           | R2 R3 P0
IMAD.HI.U32 R0, R1, 0x5, R2                                | R1 R2 R3              | R0
LEA.HI.X R15, R23, UR5, R38, 0x2, P1                       | R23 R38 P1 UR5        | R15
LOP3.LUT P1, RZ, R3, 0x7, RZ, 0xc0, !PT                    | R3                    | P1
ISETP.NE.AND.EX P4, PT, RZ, R5, P2, P1                     | R5 P1 P2              | P4
ISETP.GE.U64.AND P0, PT, R8, R10, PT                       | R8 R9 R10 R11         | P0
PLOP3.LUT P0, P3, P1, P2, PT, 0xe0, 0x8                    | P1 P2                 | P0 P3
VOTE.ANY R24, P1, P0                                       | P0                    | R24 P1
P2R R6, PR, R7, 0x11                                       | R7 P0 P4              | R6
R2P PR, R14.B1, 0x6                                        | R14                   | P1 P2
UP2UR UR6, UPR, URZ, 0x20                                  | UP5                   | UR6
SEL R10, R6, R9, !P1                                       | R6 R9 P1              | R10
@!P3 MOV R2, R4                                            | R4 P3                 | R2
@!PT LDS RZ, [RZ]                                          |                       |
DFMA R8, -R28, c[0x2][0x8], |R6|                           | R6 R7 R28 R29         | R8 R9
DSETP.NEU.AND P0, PT, |R6|, +INF, PT                       | R6 R7                 | P0
F2F.F64.F32 R10, R4                                        | R4                    | R10 R11
F2I.S64.F64 R10, R4                                        | R4 R5                 | R10 R11
I2F.F64 R10, R4                                            | R4                    | R10 R11
CS2R R10, SRZ                                              |                       | R10 R11
CS2R.32 R10, SR_CLOCKLO                                    |                       | R10
MUFU.RCP64H R5, R7                                         | R7                    | R5
FFMA2 R94, R13.F32, R16.F32x2.HI_LO, -|R74|.F32x2.HI_LO    | R13 R16 R17 R74 R75   | R94 R95
LDG.E.128.CONSTANT R8, [R16.64+0x10]                       | R16 R17               | R8 R9 R10 R11
LDG.E.64.SYS R14, [R16.U32+UR4]                            | R16 UR4 UR5           | R14 R15
LDG.E.U8 R3, desc[UR12][R4.64]                             | R4 R5 UR12 UR13       | R3
LDG.E.ENL2.256 R22, R20, desc[UR4][R2.64+0xc0], 0x95       | R2 R3 UR4 UR5         | R20 R21 R22 R23
LDS.U.16 R4, [R10.X4+UR5+0x10]                             | R10 UR5               | R4
LDSM.16.MT88.4 R36, [R0+UR6]                               | R0 UR6                | R36 R37 R38 R39
LDC.64 R2, c[0x0][R4+0x10]                                 | R4                    | R2 R3
ULDC.64 UR6, c[0x0][0x118]                                 |                       | UR6 UR7
STG.E.64 desc[UR6][R12.64], R66                            | R12 R13 R66 R67 UR6 UR7 |
STS.128 [R5+0x20], R8                                      | R5 R8 R9 R10 R11      |
STL [R1+0x4], R7                                           | R1 R7                 |
ATOMG.E.CAS.64.STRONG.GPU PT, R2, [R4.64], R6, R8          | R4 R5 R6 R7 R8 R9     | R2 R3
ATOMG.E.ADD.STRONG.GPU P1, RZ, desc[UR4][R2.64], R5        | R2 R3 R5 UR4 UR5      | P1
ATOMS.CAST.SPIN.64 P0, [R9], R4, R6                        | R4 R5 R6 R7 R9        | P0
RED.E.ADD.F64.RN.STRONG.GPU [R2.64], R6                    | R2 R3 R6 R7           |
LDGSTS.E.BYPASS.128 [R3+0x800], desc[UR14][R6.64], !P2     | R3 R6 R7 P2 UR14 UR15 |
SHFL.DOWN P0, R6, R19, R15, R14                            | R14 R15 R19           | R6 P0
TEX.SCR.LL RZ, R4, R8, R10, 0x0, 0x54, 2D, 0x3             | R8 R9 R10             | R4 R5
TEX.LL R7, R16, R4, R13, UR6, 3D, 0xb                      | R4 R5 R6 R13 UR6 UR7  | R7 R16 R17
SUST.D.BA.2D.64.STRONG.SM.TRAP [R14], R12, R21             | R12 R13 R14 R15 R21   |
HMMA.16816.F32.BF16 R4, R32, R42, R8                       | R8 R9 R10 R11 R32 R33 R34 R35 R42 R43 | R4 R5 R6 R7
HMMA.1688.F16 R64, R66, R68, RZ                            | R66 R67 R68           | R64 R65
HMMA.884.F32.F32.STEP2 R8, R36.ROW, R40.COL, R8            | R8 R9 R36 R37 R40 R41 | R8 R9
IMMA.8816.S8.S8 R4, R2.ROW, R3.COL, R6                     | R2 R3 R6 R7           | R4 R5
DMMA.8x8x4 R4, R8, R10, R12                                | R8 R9 R10 R11 R12 R13 R14 R15 | R4 R5 R6 R7
HGMMA.64x8x16.F32 R24, gdesc[UR8], R24, !UPT, gsb0         | R24 R25 R26 R27 UR8 UR9 UR10 UR11 | R24 R25 R26 R27
UTMALDG.2D [UR8], [UR4], desc[UR6]                         | UR4 UR5 UR6 UR7 UR8 UR9 UR10 UR11 |
SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [R3+URZ], R2            | R2 R3                 | P0
S2UR UR4, SR_CTAID.X                                       |                       | UR4
R2UR UR5, R4                                               | R4                    | UR5
ELECT P1, URZ, PT                                          |                       | P1
BRA P1, 0x0                                                | P1                    |
BRA.U !UP0, 0x0                                            | UP0                   |
BRX R10 -0xad0                                             | R10 R11               |
RET.REL.NODEC R22 0x0                                      | R22 R23               |
CALL.REL.NOINC R6 0x0                                      | R6 R7                 |
BSSY B1, 0x10                                              |                       | B1
BSYNC B1                                                   | B1                    |
@P0 BREAK B2                                               | P0 B2                 | B2
BMOV.32.CLEAR R4, B6                                       | B6                    | R4 B6
BMOV.32 B6, R19                                            | R19                   | B6
WARPSYNC R4                                                | R4                    |
DEPBAR.LE SB0, 0x2                                         |                       |
NOP                                                        |                       |
"""


@pytest.mark.parametrize("line", USES.strip().splitlines(), ids=lambda line: line.partition("|")[0].strip())
def test_reads_and_writes(line: str) -> None:
    text, reads, writes = (part.strip() for part in line.split("|", 2)) if line.count("|") == 2 else split_last(line)
    instructions = parse_listing(text)
    assert find_unknown_opcodes(instructions) == ()
    assert set(map(name_resource, instructions.reads.of(0))) == set(reads.split())
    assert set(map(name_resource, instructions.writes.of(0))) == set(writes.split())


def split_last(line: str) -> tuple[str, str, str]:
    """Absolute values have bars of their own."""
    text, reads, writes = line.rsplit("|", 2)
    return text.strip(), reads.strip(), writes.strip()


def test_a_descriptor_that_only_the_encoding_names() -> None:
    """sm_80: bits 32..37 of a load, 64..69 of a store; 63 is none. Rows with the same text can have different ones."""

    def word(low_bits: int, high_bits: int) -> bytes:
        return (low_bits << 32).to_bytes(8, "little") + high_bits.to_bytes(8, "little")

    texts = ["LDG.E R2, [R4.64]", "LDG.E R2, [R4.64]", "STG.E [R4.64], R2", "LDG.E R2, [R4]", "LDG.E R2, [R4.64]"]
    code = word(6, 0) + word(8, 0) + word(0, 10) + word(6, 0) + word(63, 0)
    instructions = decode_instructions(texts, code)
    uniform = [[name_resource(one) for one in instructions.reads.of(row) if one >> 8 == 1] for row in range(5)]
    assert uniform == [["UR6", "UR7"], ["UR8", "UR9"], ["UR10", "UR11"], [], []]
    assert [instructions.writes.of(row) for row in range(5)] == [(2,), (2,), (), (2,), (2,)]
    assert instructions.texts == tuple(texts)


FLOWS = """
BRA 0x30                       | BRANCH
@P0 BRA 0x30                   | BRANCH
@!PT BRA 0x30                  | BRANCH
@PT BRA 0x30                   | BRANCH
BRA P1, 0x30                   | BRANCH
BRA.U UP0, 0x30                | BRANCH
BRA.DIV ~URZ, 0x30             | BRANCH
BRA.CONV ~URZ, 0x30            | BRANCH
BRX R4 -0x40                   | INDIRECT_BRANCH
JMX R4                         | INDIRECT_BRANCH
CALL.REL.NOINC 0x30            | CALL
CALL.ABS.NOINC R4              | INDIRECT_CALL
CALL.REL.NOINC R4 0x0          | INDIRECT_CALL
RET.REL.NODEC R4 0x0           | RETURN
@P0 RET.REL.NODEC R4 0x0       | RETURN
EXIT                           | EXIT
@!P0 EXIT                      | EXIT
EXIT P0                        | EXIT
KILL                           | EXIT
BSSY B0, 0x30                  | BARRIER_SET
BSYNC B0                       | BARRIER_WAIT
BPT.TRAP 0x1                   | TRAP
BPT.INT 0x1                    | NONE
YIELD                          | NONE
WARPSYNC.COLLECTIVE R4, 0x30   | NONE
"""


@pytest.mark.parametrize("line", FLOWS.strip().splitlines(), ids=lambda line: line.partition("|")[0].strip())
def test_flow(line: str) -> None:
    text, flow = (part.strip() for part in line.split("|"))
    instructions = parse_listing("\n".join([text, "NOP", "NOP", "NOP"]))
    assert Flow(int(instructions.flow[0])).name == flow
    has_target = flow in ("BRANCH", "CALL", "BARRIER_SET")
    assert instructions.target[0] == (0x30 if has_target else -1)


def test_targets_outside_the_section_or_given_by_a_relocation_are_none() -> None:
    texts = ["BRA 0x40", "BRA -0x10", "BRA 0x8", "BRA 0x30", "CALL.REL.NOINC 0x10"]
    control = parse_listing("NOP\n" * 5).control
    assert decode_instructions(texts, b"", control=control).target.tolist() == [0x40, -1, -1, 0x30, 0x10]
    assert decode_instructions(texts[:4], b"", control=control).target.tolist() == [-1, -1, -1, 0x30]
    assert decode_instructions(texts, b"", control=control, relocated={0x40}).target.tolist()[4] == -1


def test_guards_and_mnemonics_are_columns() -> None:
    instructions = parse_listing("@!UP2 UMOV UR4, URZ\n@P1 MOV R2, R3\nMOV R2, R4\n@!PT MOV R2, R4")
    assert instructions.guard.tolist() == [0x302, 0x201, -1, -1]
    assert instructions.guard_negated.tolist() == [True, False, False, True]
    assert [instructions.mnemonics[index] for index in instructions.mnemonic_index] == ["UMOV", "MOV", "MOV", "MOV"]


def test_an_unknown_opcode_is_guessed_at_and_named() -> None:
    instructions = parse_listing("FROB.64 R2, P1, R4, [R6.64]\nNOP")
    assert find_unknown_opcodes(instructions) == ("FROB",)
    assert instructions.writes.of(0) == (2,)
    assert instructions.reads.of(0) == (4, 6, 7, 0x201)


def test_what_cannot_be_decoded_reads_and_writes_nothing() -> None:
    instructions = parse_listing(f"{UNDECODED} 0x0123456789abcdef, 0xffffffffffffffff")
    assert find_unknown_opcodes(instructions) == ()
    assert instructions.reads.of(0) == instructions.writes.of(0) == ()


def test_nothing_at_all() -> None:
    instructions = decode_instructions([], b"")
    assert len(instructions) == 0
    assert instructions.reads.starts.tolist() == [0]


REAL_LINES = [line.partition("|")[0].strip() for line in (USES + FLOWS).splitlines() if line]
PIECES = st.sampled_from(
    [
        " ",
        ", ",
        ".",
        "@",
        "!",
        "R255",
        "R9999",
        "UR4",
        "PT",
        "[",
        "]",
        "]]",
        "0x",
        "-0x1",
        "c[0x0][",
        "desc[",
        "B15",
        "|",
        "~",
        "`(",
        "é",
        "",
    ]
)


@st.composite
def mutated_lines(draw: st.DrawFn) -> str:
    """Real text with pieces taken out, put in, doubled or exchanged; or an opcode with anything behind it."""
    line = draw(st.sampled_from(REAL_LINES))
    if draw(st.booleans()):
        line = draw(st.sampled_from(tuple(TABLE))) + draw(st.text(max_size=30))
    for _ in range(draw(st.integers(1, 4))):
        start, stop = sorted((draw(st.integers(0, len(line))), draw(st.integers(0, len(line)))))
        line = line[:start] + draw(st.one_of(PIECES, st.just(line[start:stop] * 2))) + line[stop:]
    return line


@given(st.lists(mutated_lines(), min_size=1, max_size=4))
@example([" B15.64 R2, c[0x0][R4+0x10]"])
@example([" MOV R254.64, P6.64"])
def test_any_text_becomes_a_row(lines: list[str]) -> None:
    rng = random.Random(len(lines))
    instructions = decode_instructions(lines, rng.randbytes(16 * len(lines)))
    check_columns(instructions, len(lines))
    assert instructions.texts == tuple(lines)


def check_columns(instructions: Instructions, count: int) -> None:
    assert len(instructions) == count
    for column in (instructions.guard, instructions.flow, instructions.target, instructions.mnemonic_index):
        assert len(column) == count
    assert all(-1 <= one < count * 16 for one in instructions.target.tolist())
    for lists in (instructions.reads, instructions.writes):
        assert len(lists.starts) == count + 1 and lists.starts[-1] == len(lists.numbers)
        for index in range(count):
            check_numbers(lists.of(index))


def check_numbers(numbers: Iterable[int]) -> None:
    numbers = list(numbers)
    assert numbers == sorted(set(numbers))
    limits = np.array([255, 255, 7, 7, 16])
    assert all(0 <= one >> 8 < 5 and one & 0xFF < limits[one >> 8] for one in numbers)
