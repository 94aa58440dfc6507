"""Kernels that are large, nested deeply or full of numbers beyond addresses end soon, and nothing wrong is said of them."""

import pytest

from gpa_lsp.code.symbolic_accesses import find
from gpa_lsp.code.symbolic_accesses.find import find_symbolic_accesses
from gpa_lsp.code.symbolic_accesses.model import SymbolicAccesses, WarpPattern
from tests.emulator.engine.running import build_module

START = "mov.u32 %r10, %tid.x; mov.u32 %r11, %r0;"
LOAD = "mul.wide.u32 %d10, {index}, 4; add.u64 %d11, %d0, %d10; ld.global.u32 %r15, [%d11];"


def follow(body: str) -> SymbolicAccesses | None:
    return find_symbolic_accesses(build_module(f"{START} {body}", ("d", "r")), "k")


def list_patterns(body: str) -> list[WarpPattern]:
    found = follow(body)
    return [one.pattern for one in found.accesses]


def test_hashes_are_not_followed() -> None:
    rounds = " ".join(
        f"mul.lo.u32 %r10, %r10, 2654435761; xor.b32 %r10, %r10, {n}; shl.b32 %r10, %r10, 9;" for n in range(40)
    )
    assert list_patterns(rounds + LOAD.format(index="%r10")) == [WarpPattern.UNKNOWN]
    wide = "cvt.u64.u32 %d5, %r10; mul.lo.u64 %d5, %d5, 11400714819323198485; add.u64 %d5, %d5, 9223372036854775807;"
    assert list_patterns(f"{wide} cvt.u32.u64 %r12, %d5; {LOAD.format(index='%r12')}") == [WarpPattern.UNKNOWN]


def test_long_chains_and_deep_nests_end() -> None:
    chain = " ".join("mad.lo.u32 %r12, %r12, %r11, %r10; xor.b32 %r12, %r12, %r11;" for _ in range(2000))
    assert len(list_patterns(chain + LOAD.format(index="%r12"))) == 1
    depth = 40
    heads = " ".join(f"H{level}: add.u32 %r12, %r12, %r10;" for level in range(depth))
    turn = "add.u32 %r{n}, %r{n}, 1; setp.lt.u32 %p1, %r{n}, %r0; @%p1 bra H{level};"
    tails = " ".join(turn.format(n=20 + level % 30, level=level) for level in range(depth - 1, -1, -1))
    assert len(list_patterns(f"{heads} {LOAD.format(index='%r12')} {tails}")) == 1


def test_what_is_too_large_is_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    body = LOAD.format(index="%r10")
    assert list_patterns(body) == [WarpPattern.CONTIGUOUS]
    monkeypatch.setattr(find, "MOST_INSTRUCTIONS", 3)
    assert follow(body) is None


def test_a_value_changed_in_a_loop_that_lanes_leave_apart_is_unknown_behind_it() -> None:
    loop = "mov.u32 %r12, 0; H: add.u32 %r12, %r12, 1; setp.lt.u32 %p1, %r12, %r10; @%p1 bra H;"
    assert list_patterns(loop + LOAD.format(index="%r12")) == [WarpPattern.UNKNOWN]
    even = "mov.u32 %r12, 0; H: add.u32 %r12, %r12, 1; setp.lt.u32 %p1, %r12, %r11; @%p1 bra H;"
    assert list_patterns(even + LOAD.format(index="%r12")) == [WarpPattern.UNIFORM]


def test_ways_that_lanes_took_apart_meet_in_what_nobody_knows() -> None:
    apart = "and.b32 %r13, %r10, 1; setp.eq.u32 %p1, %r13, {with_}; mov.u32 %r12, 5; @%p1 bra E; mov.u32 %r12, 9; E:"
    assert list_patterns(apart.format(with_="0") + LOAD.format(index="%r12")) == [WarpPattern.UNKNOWN]
    of_all = "setp.eq.u32 %p1, %r11, 3; mov.u32 %r12, 5; @%p1 bra E; mov.u32 %r12, 9; E:"
    assert list_patterns(of_all + LOAD.format(index="%r12")) == [WarpPattern.UNIFORM]


@pytest.mark.parametrize(("second", "pattern"), [("1", WarpPattern.STRIDED), ("2", WarpPattern.CONTIGUOUS)])
def test_a_condition_of_lanes_that_two_ways_compute_alike_or_not(second: str, pattern: WarpPattern) -> None:
    way = "and.b32 %r13, %r10, 3; setp.eq.u32 %p2, %r13, {};"
    body = f"setp.eq.u32 %p1, %r11, 3; @%p1 bra T; {way.format(1)} bra E; T: {way.format(second)} E: @!%p2 bra D;"
    assert list_patterns(f"{body} {LOAD.format(index='%r10')} D:") == [pattern]


ODD = "mov.u32 %r20, 0; mov.u32 %r21, 0; and.b32 %r13, {of}, 1; setp.eq.u32 %p1, %r13, 0;"
NEXT = "add.u32 %r21, %r21, 1; setp.lt.u32 %p2, %r21, %r11;"
INNER = "mov.u32 %r22, 0; I: add.u32 %r22, %r22, 1; setp.lt.u32 %p3, %r22, {of}; @%p3 bra I;"
AT_THE_HEAD = LOAD.format(index="%r20")
LOOPS = {
    "two jumps back": f"O: {AT_THE_HEAD} {NEXT} @!%p2 bra E; @%p1 bra A; add.u32 %r20, %r20, 2; bra O; A: add.u32 %r20, %r20, 1; bra O; E:",
    "a sum of what an inner loop counts": f"O: {AT_THE_HEAD} {INNER} add.u32 %r20, %r20, %r22; {NEXT} @%p2 bra O;",
    "an inner loop that may be passed by": (
        f"O: {AT_THE_HEAD} mov.u32 %r22, 0; setp.eq.u32 %p4, %r11, 9; @%p4 bra J; {INNER} "
        f"J: add.u32 %r20, %r20, %r22; {NEXT} @%p2 bra O;"
    ),
    "an exit on one side of a branch": (
        f"O: @%p1 bra A; setp.gt.u32 %p4, %r20, 5; @%p4 bra E; A: add.u32 %r20, %r20, 1; {NEXT} @%p2 bra O; E: {AT_THE_HEAD}"
    ),
}


@pytest.mark.parametrize("name", LOOPS)
def test_lanes_that_go_through_a_loop_by_different_ways_hold_what_nobody_knows(name: str) -> None:
    loop = f"{ODD} {LOOPS[name]}"
    assert list_patterns(loop.replace("{of}", "%r10")) == [WarpPattern.UNKNOWN]
    assert list_patterns(loop.replace("{of}", "%r11")) == [WarpPattern.UNIFORM]


def test_a_hundred_branches_on_data_before_a_load_do_not_hide_its_pattern() -> None:
    skips = " ".join(
        f"ld.global.u32 %r15, [%d11]; setp.eq.u32 %p1, %r15, {n}; @%p1 bra S{n}; add.u32 %r16, %r16, 1; S{n}:"
        for n in range(100)
    )
    first = (
        "mul.wide.u32 %d10, %r10, 4; add.u64 %d11, %d0, %d10; mov.u32 %r12, 5; setp.eq.u32 %p2, %r11, 3; @%p2 bra E;"
    )
    body = f"{first} {skips} mov.u32 %r12, 9; E: {LOAD.format(index='%r12')}"
    assert list_patterns(body)[-1] is WarpPattern.UNIFORM
