"""The lines at which loops are written, with the inlined calls around them."""

import numpy as np
import pytest

from gpa_lsp.code.binary.model import LineTable
from gpa_lsp.code.control_flow import build as loop_lines
from gpa_lsp.code.control_flow.build import build_flow_graph
from gpa_lsp.code.control_flow.model import Loop, LoopLines
from gpa_lsp.foundation.locations import Frame, InlineChain
from tests.control_flow.assembly import assemble

PLACES = {
    "k": ("k.cu", "kernel"),
    "o": ("other.cu", None),
    "f": ("f.cuh", "f"),
    "m": ("math.h", "f"),
    "c": ("/usr/local/cuda/include/cub/block/block_reduce.cuh", "Sum"),
}


def read_chain(text: str) -> InlineChain | None:
    """``f80<k13``: line 80 of ``f``, inlined at line 13 of the kernel; ``-`` for no line."""
    if text == "-":
        return None
    return tuple(
        Frame(file=PLACES[one[0]][0], line=int(one[1:]), function=PLACES[one[0]][1]) for one in text.split("<")
    )


def locate(*rows: str) -> list[Loop]:
    """Loops of a listing: each row is a chain and an instruction, perhaps behind a label."""
    parts = [row.split(maxsplit=1) for row in rows]
    found = [read_chain(chain) for chain, _ in parts]
    chains = tuple(dict.fromkeys(chain for chain in found if chain is not None))
    lines = LineTable(
        row_offsets=np.arange(len(rows), dtype=np.int64) * 16,
        row_chain=np.array([-1 if chain is None else chains.index(chain) for chain in found], dtype=np.int32),
        chains=chains,
    )
    listing = "\n".join(text.replace(": ", ":\n") for _, text in parts)
    return list(build_flow_graph(*assemble(listing), lines).loops)


# Listing, and the chain, the first and the last line of its loop
LOOPS = {
    "a plain loop": (
        (
            "k9 MOV R0, RZ",
            "k11 top: LDG R1, [R2]",
            "k12 FADD R3, R3, R1",
            "f80<k13 FMUL R3, R3, R1",
            "k10 @P0 BRA `(top)",
        ),
        ("k10", 10, 13),
    ),
    "the condition tells the line where the branch has another, as in code for sm_120": (
        (
            *("k11 top: LDG R1, [R2]", "k10 UISETP.NE UP0, UR4, 0x10", "k12 ISETP.NE P0, R4, 0x10"),
            *("k11 FADD R3, R3, R1", "k11 BRA.U UP0, `(top)"),
        ),
        ("k10", 10, 12),
    ),
    "the branch tells the line where the condition has another, as with a predicate kept in a register over a call": (
        ("k12 top: LDG R1, [R2]", "k11 ISETP.NE P6, R18, RZ", "k10 @!P6 BRA `(top)"),
        ("k10", 10, 12),
    ),
    "a condition from far away is not looked for": (
        ("k1 ISETP.NE P0, R4, 0x10", "k10 top: NOP", *["k11 NOP"] * 300, "k12 @P0 BRA `(top)"),
        ("k12", 10, 12),
    ),
    "one stray instruction of the caller does not move an inlined loop into the caller": (
        ("f31<k5 top: LDG R1, [R2]", "k2 MOV R7, 0x7", "m7<f32<k5 FADD R3, R3, R1", "f30<k5 @P0 BRA `(top)"),
        ("f30<k5", 30, 32),
    ),
    "a loop whose condition is inlined stays with its statement": (
        (
            *("f80<k10 top: LDG R1, [R2]", "k11 FADD R3, R3, R1", "k12 FADD R3, R3, R1", "k13 FADD R3, R3, R1"),
            "f81<k10 @P0 BRA `(top)",
        ),
        ("k10", 10, 13),
    ),
    "one function inlined twice is two places": (
        ("f80<k10 top: LDG R1, [R2]", "f80<k11 @P0 BRA `(top)"),
        ("k11", 10, 11),
    ),
    "instructions without lines do not count": (
        ("- top: LDG R1, [R2]", "k12 FADD R3, R3, R1", "k0 FADD R3, R3, R1", "- @P0 BRA `(top)"),
        ("k12", 12, 12),
    ),
    "the file of most instructions counts": (
        ("k11 top: LDG R1, [R2]", "o400 LDG R1, [R2]", "k10 @P0 BRA `(top)"),
        ("k10", 10, 11),
    ),
    "a loop of a library is the line that calls it": (
        ("c31<f7<k5 top: LDG R1, [R2]", "c32<f7<k5 FADD R3, R3, R1", "c30<f7<k5 @P0 BRA `(top)"),
        ("f7<k5", 7, 7),
    ),
    "a loop that is a library's all through keeps its line": (
        ("f3<c31<c90 top: LDG R1, [R2]", "c30<c90 @P0 BRA `(top)"),
        ("c30<c90", 30, 31),
    ),
    "no line at all": (("- top: NOP", "- @P0 BRA `(top)"), None),
    "lines that are all zero": (("k0 top: NOP", "k0 @P0 BRA `(top)"), None),
}


@pytest.mark.parametrize("name", LOOPS)
def test_the_lines_of_a_loop(name: str) -> None:
    rows, expected = LOOPS[name]
    (loop,) = locate(*rows, "k1 EXIT" if name == "no line at all" else "- EXIT")
    if expected is None:
        assert loop.lines is None
        return
    frame, *callers = read_chain(expected[0]) or ()
    first, last = expected[1:]
    assert loop.lines == LoopLines(frame=frame, callers=tuple(callers), first_line=first, last_line=last)


def test_a_condition_before_an_inner_loop_is_found() -> None:
    outer, inner = locate(
        *("k10 outer: ISETP.NE P0, R4, 0x10", "k12 inner: ISETP.NE P1, R5, 0x10"),
        *("k13 @P1 BRA `(inner)", "k13 @P0 BRA `(outer)", "- EXIT"),
    )
    assert outer.lines is not None and inner.lines is not None
    assert (outer.lines.frame.line, inner.lines.frame.line) == (10, 12)


def test_without_a_line_table() -> None:
    (loop,) = build_flow_graph(*assemble("top:\nNOP\n@P0 BRA `(top)\nEXIT")).loops
    assert loop.lines is None


def test_nests_deeper_than_any_compiler_writes_get_no_lines() -> None:
    depth = loop_lines.DEEPEST_NEST + 2
    rows = [f"k1 top{level}: NOP" for level in range(depth)]
    rows += [f"k2 @P0 BRA `(top{level})" for level in reversed(range(depth))]
    loops = locate(*rows, "- EXIT")
    assert [loop.depth for loop in loops] == list(range(1, depth + 1))
    assert [loop.lines is None for loop in loops] == [level >= loop_lines.DEEPEST_NEST for level in range(depth)]
