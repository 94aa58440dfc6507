"""Kernels that are large, nested deeply or full of numbers beyond addresses end soon, and nothing wrong is said of them."""

import pytest

from gpa_lsp.symbolic_accesses import find
from gpa_lsp.symbolic_accesses.find import find_symbolic_accesses
from gpa_lsp.symbolic_accesses.model import SymbolicAccesses, WarpPattern
from tests.emulator.engine.running import build_module

START = "mov.u32 %r10, %tid.x; mov.u32 %r11, %r0;"
LOAD = "mul.wide.u32 %d10, {index}, 4; add.u64 %d11, %d0, %d10; ld.global.u32 %r15, [%d11];"


def follow(body: str) -> SymbolicAccesses | None:
    return find_symbolic_accesses(build_module(f"{START} {body}", ("d", "r")), "k")


def list_patterns(body: str) -> list[WarpPattern]:
    found = follow(body)
    assert found is not None
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
