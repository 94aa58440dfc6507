"""The lines at which loops are written, with the inlined calls around them."""

import numpy as np

from gpa_lsp.code.binary.model import LineTable
from gpa_lsp.code.control_flow import build as loop_lines
from gpa_lsp.code.control_flow.build import build_flow_graph
from gpa_lsp.code.control_flow.model import Loop, LoopLines
from gpa_lsp.foundation.locations import Frame, InlineChain
from tests.control_flow.assembly import assemble


def kernel(line: int) -> Frame:
    return Frame(file="k.cu", line=line, function="kernel")


def inlined(line: int, file: str = "f.cuh") -> Frame:
    return Frame(file=file, line=line, function="f")


def locate(*rows: tuple[str, InlineChain | None]) -> list[Loop]:
    """Loops of a listing with one chain per instruction; labels go in front of their instruction."""
    listing = "\n".join(text for text, _ in rows)
    chains = tuple(dict.fromkeys(chain for _, chain in rows if chain is not None))
    lines = LineTable(
        row_offsets=np.arange(len(rows), dtype=np.int64) * 16,
        row_chain=np.array([-1 if chain is None else chains.index(chain) for _, chain in rows], dtype=np.int32),
        chains=chains,
    )
    return list(build_flow_graph(*assemble(listing), lines).loops)


def test_a_plain_loop():
    (loop,) = locate(
        ("MOV R0, RZ", (kernel(9),)),
        ("top:\nLDG R1, [R2]", (kernel(11),)),
        ("FADD R3, R3, R1", (kernel(12),)),
        ("FMUL R3, R3, R1", (inlined(80), kernel(13))),
        ("@P0 BRA `(top)", (kernel(10),)),
        ("EXIT", (kernel(20),)),
    )
    assert loop.lines == LoopLines(frame=kernel(10), callers=(), first_line=10, last_line=13)


def test_the_condition_tells_the_line_where_the_branch_has_another():
    """Code for sm_120 is written so."""
    (loop,) = locate(
        ("top:\nLDG R1, [R2]", (kernel(11),)),
        ("UISETP.NE UP0, UR4, 0x10", (kernel(10),)),
        ("ISETP.NE P0, R4, 0x10", (kernel(12),)),
        ("FADD R3, R3, R1", (kernel(11),)),
        ("BRA.U UP0, `(top)", (kernel(11),)),
        ("EXIT", None),
    )
    assert loop.lines == LoopLines(frame=kernel(10), callers=(), first_line=10, last_line=12)


def test_the_branch_tells_the_line_where_the_condition_has_another():
    """A predicate that is kept in a register over a call looks so."""
    (loop,) = locate(
        ("top:\nLDG R1, [R2]", (kernel(12),)),
        ("ISETP.NE P6, R18, RZ", (kernel(11),)),
        ("@!P6 BRA `(top)", (kernel(10),)),
        ("EXIT", None),
    )
    assert loop.lines == LoopLines(frame=kernel(10), callers=(), first_line=10, last_line=12)


def test_a_condition_before_an_inner_loop_is_found():
    outer, inner = locate(
        ("outer:\nISETP.NE P0, R4, 0x10", (kernel(10),)),
        ("inner:\nISETP.NE P1, R5, 0x10", (kernel(12),)),
        ("@P1 BRA `(inner)", (kernel(13),)),
        ("@P0 BRA `(outer)", (kernel(13),)),
        ("EXIT", None),
    )
    assert outer.lines is not None and inner.lines is not None
    assert (outer.lines.frame, inner.lines.frame) == (kernel(10), kernel(12))


def test_a_condition_from_far_away_is_not_looked_for():
    (loop,) = locate(
        ("ISETP.NE P0, R4, 0x10", (kernel(1),)),
        ("top:\nNOP", (kernel(10),)),
        *[("NOP", (kernel(11),))] * 300,
        ("@P0 BRA `(top)", (kernel(12),)),
        ("EXIT", None),
    )
    assert loop.lines is not None
    assert loop.lines.frame == kernel(12)


def test_a_loop_inside_an_inlined_function():
    """One stray instruction of the caller, which compilers move into loops, does not move the loop into the caller."""
    (loop,) = locate(
        ("top:\nLDG R1, [R2]", (inlined(31), kernel(5))),
        ("MOV R7, 0x7", (kernel(2),)),
        ("FADD R3, R3, R1", (inlined(7, "math.h"), inlined(32), kernel(5))),
        ("@P0 BRA `(top)", (inlined(30), kernel(5))),
        ("EXIT", None),
    )
    assert loop.lines == LoopLines(frame=inlined(30), callers=(kernel(5),), first_line=30, last_line=32)


def test_a_loop_whose_condition_is_inlined_stays_with_its_statement():
    (loop,) = locate(
        ("top:\nLDG R1, [R2]", (inlined(80), kernel(10))),
        ("FADD R3, R3, R1", (kernel(11),)),
        ("FADD R3, R3, R1", (kernel(12),)),
        ("FADD R3, R3, R1", (kernel(13),)),
        ("@P0 BRA `(top)", (inlined(81), kernel(10))),
        ("EXIT", None),
    )
    assert loop.lines == LoopLines(frame=kernel(10), callers=(), first_line=10, last_line=13)


def test_one_function_inlined_twice_is_two_places():
    (loop,) = locate(
        ("top:\nLDG R1, [R2]", (inlined(80), kernel(10))),
        ("@P0 BRA `(top)", (inlined(80), kernel(11))),
        ("EXIT", None),
    )
    assert loop.lines == LoopLines(frame=kernel(11), callers=(), first_line=10, last_line=11)


def test_instructions_without_lines_do_not_count():
    (loop,) = locate(
        ("top:\nLDG R1, [R2]", None),
        ("FADD R3, R3, R1", (kernel(12),)),
        ("FADD R3, R3, R1", (kernel(0),)),
        ("@P0 BRA `(top)", None),
        ("EXIT", None),
    )
    assert loop.lines == LoopLines(frame=kernel(12), callers=(), first_line=12, last_line=12)


def test_the_file_of_most_instructions_counts():
    (loop,) = locate(
        ("top:\nLDG R1, [R2]", (kernel(11),)),
        ("LDG R1, [R2]", (Frame(file="other.cu", line=400),)),
        ("@P0 BRA `(top)", (kernel(10),)),
        ("EXIT", None),
    )
    assert loop.lines == LoopLines(frame=kernel(10), callers=(), first_line=10, last_line=11)


def test_a_loop_without_any_line():
    (loop,) = locate(("top:\nNOP", None), ("@P0 BRA `(top)", None), ("EXIT", (kernel(1),)))
    assert loop.lines is None


def test_lines_that_are_all_zero():
    (loop,) = locate(("top:\nNOP", (kernel(0),)), ("@P0 BRA `(top)", (kernel(0),)), ("EXIT", None))
    assert loop.lines is None


def test_without_a_line_table():
    (loop,) = build_flow_graph(*assemble("top:\nNOP\n@P0 BRA `(top)\nEXIT")).loops
    assert loop.lines is None


def test_nests_deeper_than_any_compiler_writes_get_no_lines():
    depth = loop_lines.DEEPEST_NEST + 2
    rows = [(f"top{level}:\nNOP", (kernel(1),)) for level in range(depth)]
    rows += [(f"@P0 BRA `(top{level})", (kernel(2),)) for level in reversed(range(depth))]
    loops = locate(*rows, ("EXIT", None))
    assert [loop.depth for loop in loops] == list(range(1, depth + 1))
    assert [loop.lines is None for loop in loops] == [level >= loop_lines.DEEPEST_NEST for level in range(depth)]


def library(line: int) -> Frame:
    return Frame(file="/usr/local/cuda/include/cub/block/block_reduce.cuh", line=line, function="Sum")


def test_a_loop_of_a_library_is_the_line_that_calls_it():
    (loop,) = locate(
        ("top:\nLDG R1, [R2]", (library(31), inlined(7), kernel(5))),
        ("FADD R3, R3, R1", (library(32), inlined(7), kernel(5))),
        ("@P0 BRA `(top)", (library(30), inlined(7), kernel(5))),
        ("EXIT", (kernel(9),)),
    )
    assert loop.lines == LoopLines(frame=inlined(7), callers=(kernel(5),), first_line=7, last_line=7)


def test_a_loop_that_is_a_librarys_all_through_keeps_its_line():
    (loop,) = locate(
        ("top:\nLDG R1, [R2]", (inlined(3), library(31), library(90))),
        ("@P0 BRA `(top)", (library(30), library(90))),
        ("EXIT", (library(91),)),
    )
    assert loop.lines == LoopLines(frame=library(30), callers=(library(90),), first_line=30, last_line=31)
