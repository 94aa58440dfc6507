"""Blocks against what their words mean, on random control flow."""

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpa_lsp.code.ptx import blocks as liveness
from gpa_lsp.code.ptx.blocks import PtxBlocks, find_blocks, find_live_in
from gpa_lsp.code.ptx.model import PtxFunction, list_reads, list_writes
from tests.conftest import examples
from tests.ptx.notation import parse_body

LABELS = 6
_LINES = st.sampled_from(
    [
        *(f"bra L{label};" for label in range(LABELS)),
        *(f"@%p{label % 3} bra L{label};" for label in range(LABELS)),
        "@%p1 exit;",
        "ret;",
        "trap;",
        "brx.idx %r1, TABLE;",
        "bar.sync 0;",
        "add.s32 %r1, %r2, %r3;",
        "@!%p2 mov.u32 %r2, %r1;",
        "mov.u32 %r3, %tid.x;",
        "mov.b64 {%r1, %r2}, %rd1;",
        "st.global.u32 [%rd1], %r3;",
        "ld.global.b64 %rd1, [%rd2];",
        "setp.eq.s32 %p1|%p2, %r1, 0;",
    ]
)


@st.composite
def functions(draw: st.DrawFn) -> PtxFunction:
    """Kernels with a label before some of their lines; labels that came nowhere stand before the last one."""
    lines = draw(st.lists(_LINES, min_size=1, max_size=24))
    places = [draw(st.integers(0, len(lines))) for _ in range(LABELS)]
    text = "TABLE: .branchtargets L0, L1, L5, L1;\n"
    for place, line in enumerate([*lines, "ret;"]):
        text += "".join(f"L{label}:\n" for label in range(LABELS) if places[label] == place) + line + "\n"
    return parse_body(text)


def list_next(function: PtxFunction, index: int) -> list[int]:
    """Instructions that can follow one; by the meaning of each instruction alone."""
    instruction = function.instructions[index]
    after = [index + 1] if index + 1 < len(function.instructions) else []
    if instruction.opcode == "bra":
        assert instruction.target is not None
        return [instruction.target, *(after if instruction.guard else [])]
    if instruction.opcode == "brx":
        return list(instruction.targets)
    if instruction.opcode in ("ret", "exit", "trap"):
        return after if instruction.guard else []
    return after


def find_reached(function: PtxFunction, start: int) -> set[int]:
    """Instructions that can come at or after ``start``."""
    reached: set[int] = set()
    waiting = [start]
    while waiting:
        index = waiting.pop()
        if index not in reached:
            reached.add(index)
            waiting.extend(list_next(function, index))
    return reached


@given(functions())
@examples(120)
def test_blocks_are_the_longest_runs_without_jumps(function: PtxFunction) -> None:
    blocks = find_blocks(function)
    covered = [
        index for block in range(len(blocks.first)) for index in range(blocks.first[block], blocks.last[block] + 1)
    ]
    assert covered == list(range(len(function.instructions)))
    assert all(blocks.first[block] <= index <= blocks.last[block] for index, block in enumerate(blocks.block_of))
    for block, last in enumerate(blocks.last):
        following = list_next(function, last)
        assert {blocks.first[other] for other in blocks.successors[block]} == set(following)
        assert len(set(blocks.successors[block])) == len(blocks.successors[block])
        for index in range(blocks.first[block], last):
            assert list_next(function, index) == [index + 1]


@given(functions())
@examples(120)
def test_live_registers_are_those_some_path_reads_first(function: PtxFunction) -> None:
    blocks = find_blocks(function)
    for block, first in enumerate(blocks.first):
        assert set(blocks.live_in[block]) == set(find_read_first(function, first))
        assert list(blocks.live_in[block]) == sorted(blocks.live_in[block])


def find_read_first(function: PtxFunction, start: int) -> Iterable[int]:
    """Slots that a path from ``start`` reads before it writes them, found path by path."""
    for slot in range(len(function.registers)):
        waiting, met = [start], set()
        while waiting:
            index = waiting.pop()
            if index in met:
                continue
            met.add(index)
            instruction = function.instructions[index]
            if slot in list_reads(instruction):
                yield slot
                break
            if instruction.guard is not None or slot not in list_writes(instruction):
                waiting.extend(list_next(function, index))


@given(functions())
@examples(120)
def test_ranks_are_an_order_in_which_only_loops_go_back(function: PtxFunction) -> None:
    blocks = find_blocks(function)
    assert sorted(blocks.ranks) == list(range(len(blocks.first)))
    assert blocks.ranks[0] == 0
    reached = {blocks.block_of[index] for index in find_reached(function, 0)}
    for block in reached:
        for other in blocks.successors[block]:
            if blocks.ranks[other] <= blocks.ranks[block]:
                assert blocks.first[block] in find_reached(function, blocks.first[other])
    assert all(blocks.ranks[block] >= len(reached) for block in range(len(blocks.first)) if block not in reached)


def ranked(blocks: PtxBlocks) -> list[int]:
    return sorted(range(len(blocks.first)), key=blocks.ranks.__getitem__)


def test_what_follows_a_loop_runs_after_all_of_it() -> None:
    """A break out of the middle: the block behind the loop has its label in the middle of the text."""
    body = """
    HEAD: @%p1 bra LATCH;
    @%p2 bra OUT;
    bra LATCH;
    OUT: mov.u32 %r1, 0; ret;
    LATCH: @%p3 bra HEAD;
    bra OUT;
    """
    function = parse_body(body)
    blocks = find_blocks(function)
    out = blocks.block_of[next(one.index for one in function.instructions if one.opcode == "mov")]
    assert ranked(blocks)[-1] == out


def test_both_sides_of_a_branch_run_before_the_block_where_they_meet() -> None:
    function = parse_body(
        "@%p1 bra ELSE; mov.u32 %r1, 1; bra END; ELSE: mov.u32 %r1, 2; END: st.global.u32 [%rd1], %r1; ret;"
    )
    blocks = find_blocks(function)
    assert ranked(blocks)[0] == 0
    assert ranked(blocks)[-1] == 3


def test_deeply_nested_loops_are_ranked_in_order_of_their_text() -> None:
    depth = 300
    body = "\n".join(f"H{level}:" + " mov.u32 %r1, 0;" for level in range(depth))
    body += "\n".join(f"@%p1 bra H{level};" for level in reversed(range(depth))) + "ret;"
    blocks = find_blocks(parse_body(body))
    assert blocks.ranks == tuple(range(2 * depth))


def test_where_sets_would_take_too_long_all_registers_count_as_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    function = parse_body("L0: mov.u32 %r1, %r2; @%p1 bra L0; mov.u32 %r3, %r4; ret;")
    blocks = find_blocks(function)
    monkeypatch.setattr(liveness, "_MOST_WORDS", 0)
    everything = find_live_in(function.instructions, blocks.first, blocks.last, blocks.successors)
    assert everything == (tuple(range(len(function.registers))),) * len(blocks.first)


def test_a_function_without_instructions_has_no_blocks() -> None:
    blocks = find_blocks(parse_body(""))
    assert (blocks.first, blocks.ranks, blocks.live_in) == ((), (), ())
