"""Exchanges between lanes, one warp and one lane at a time in Python."""

import itertools

import numpy as np
import pytest

from tests.emulator.operations.evaluating import bind_warp

RANDOM = np.random.Generator(np.random.PCG64(5))
WARPS = 6


def draw(dtype: str, *, low: int = 0, high: int = 2**32) -> np.ndarray:
    return RANDOM.integers(low, high, (WARPS, 32)).astype(dtype)


ACTIVE = np.concatenate(
    [np.ones((2, 32), bool), RANDOM.integers(0, 2, (WARPS - 2, 32)).astype(bool) | (np.arange(32) == 3)]
)
MEMBERS = np.zeros((WARPS, 32), np.uint32) + np.packbits(ACTIVE, axis=1, bitorder="little").view("<u4")


def shuffle(mode: str, lane: int, b: int, c: int) -> tuple[int, bool]:
    """The pseudocode of the ISA."""
    b, clamp, segment = b & 31, c & 31, c >> 8 & 31
    highest = (lane & segment) | (clamp & ~segment)
    lowest = lane & segment
    source, inside = {
        "up": (lane - b, lane - b >= highest),
        "down": (lane + b, lane + b <= highest),
        "bfly": (lane ^ b, lane ^ b <= highest),
        "idx": (lowest | (b & ~segment), lowest | (b & ~segment) <= highest),
    }[mode]
    if mode == "bfly":
        inside = (lane ^ b) <= highest
    if mode == "idx":
        inside = (lowest | (b & ~segment)) <= highest
    return (source, True) if inside else (lane, False)


@pytest.mark.parametrize("mode", ["up", "down", "bfly", "idx"])
def test_shuffles(mode: str) -> None:
    operation = bind_warp(f"shfl.sync.{mode}.b32 %r1|%p1, %r2, %r3, %r4, %r5")
    a = draw("u4")
    clamps = (0, 31, 0x1F, 0x181F, 0x1C1F, 0x1800, 0x1007, 0x0F0F)
    for b, c in itertools.product((0, 1, 2, 16, 31, 33), clamps):
        expected = [shuffle(mode, lane, b, c) for lane in range(32)]
        wide_b, wide_c = (np.broadcast_to(np.uint32(number), (WARPS, 32)) for number in (b, c))
        for spread in ((wide_b, wide_c), (wide_b.copy(), wide_c)):
            values, inside = operation.evaluate(ACTIVE, a, *spread, MEMBERS)
            assert np.array_equal(values, a[:, [source for source, _ in expected]])
            assert (inside == [found for _, found in expected]).all()


def test_shuffles_by_different_lanes() -> None:
    operation = bind_warp("shfl.sync.idx.b32 %r1, %r2, %r3, 31, %r5")
    a, b = draw("u4"), draw("u4", high=64)
    values = operation.evaluate(ACTIVE, a, b, np.broadcast_to(np.uint32(31), a.shape), MEMBERS)
    assert [[int(a[warp, b[warp, lane] & 31]) for lane in range(32)] for warp in range(WARPS)] == values.tolist()


def lanes_of(warp: int) -> list[int]:
    return np.flatnonzero(ACTIVE[warp]).tolist()


@pytest.mark.parametrize("high", [1, 2])
def test_votes(high: int) -> None:
    a = draw("u1", high=high).astype(bool)
    a[1] = True
    results = {
        name: bind_warp(text).evaluate(ACTIVE, a, MEMBERS)
        for name, text in {
            "all": "vote.sync.all.pred %p1, %p2, %r1",
            "any": "vote.sync.any.pred %p1, %p2, %r1",
            "uni": "vote.sync.uni.pred %p1, %p2, %r1",
            "ballot": "vote.sync.ballot.b32 %r2, %p2, %r1",
        }.items()
    }
    for warp in range(WARPS):
        votes = [bool(a[warp, lane]) for lane in lanes_of(warp)]
        active = lanes_of(warp)
        assert (results["all"][warp, active] == all(votes)).all()
        assert (results["any"][warp, active] == any(votes)).all()
        assert (results["uni"][warp, active] == (len(set(votes)) == 1)).all()
        assert (results["ballot"][warp, active] == sum(1 << lane for lane in lanes_of(warp) if a[warp, lane])).all()


@pytest.mark.parametrize("bits", [32, 64])
def test_matches(bits: int) -> None:
    reg = {32: "%r", 64: "%d"}[bits]
    a = draw(f"u{bits // 8}", high=3)
    a[1] = 7
    any_of = bind_warp(f"match.any.sync.b{bits} %r1, {reg}2, %r3").evaluate(ACTIVE, a, MEMBERS)
    all_of, holds = bind_warp(f"match.all.sync.b{bits} %r1|%p1, {reg}2, %r3").evaluate(ACTIVE, a, MEMBERS)
    for warp in range(WARPS):
        for lane in lanes_of(warp):
            same = sum(1 << other for other in lanes_of(warp) if a[warp, other] == a[warp, lane])
            assert any_of[warp, lane] == same
        alike = len({int(a[warp, lane]) for lane in lanes_of(warp)}) == 1
        assert (holds[warp, lanes_of(warp)] == alike).all()
        assert (all_of[warp, lanes_of(warp)] == (MEMBERS[warp, 0] if alike else 0)).all()


REDUCTIONS = {
    "add.u32": lambda values: sum(values) & 0xFFFF_FFFF,
    "add.s32": lambda values: sum(values) & 0xFFFF_FFFF,
    "min.u32": min,
    "max.u32": max,
    "min.s32": lambda values: min(values, key=lambda v: v - (v >> 31 << 32)),
    "max.s32": lambda values: max(values, key=lambda v: v - (v >> 31 << 32)),
    "and.b32": lambda values: int(np.bitwise_and.reduce(values)),
    "or.b32": lambda values: int(np.bitwise_or.reduce(values)),
    "xor.b32": lambda values: int(np.bitwise_xor.reduce(values)),
}


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(name: str) -> None:
    a = draw("u4")
    operation = bind_warp(f"redux.sync.{name} %r1, %r2, %r3")
    found = operation.evaluate(ACTIVE, a.view(operation.meaning.sources[0].natural_dtype), MEMBERS)
    for warp in range(WARPS):
        expected = REDUCTIONS[name]([int(a[warp, lane]) for lane in lanes_of(warp)])
        assert (found[warp, lanes_of(warp)].astype(np.int64) & 0xFFFF_FFFF == expected).all()


def test_reductions_of_floats() -> None:
    a = RANDOM.standard_normal((WARPS, 32)).astype(np.float32)
    a[0, 4], a[1] = np.nan, np.nan
    found = bind_warp("redux.sync.max.f32 %f1, %f2, %r3").evaluate(ACTIVE, a, MEMBERS)
    kept = bind_warp("redux.sync.min.abs.NaN.f32 %f1, %f2, %r3").evaluate(ACTIVE, a, MEMBERS)
    assert np.isnan(found[1][ACTIVE[1]]).all() and np.isnan(kept[:2][ACTIVE[:2]]).all()
    for warp in (0, *range(2, WARPS)):
        assert found[warp, 3] == max(a[warp, lane] for lane in lanes_of(warp) if a[warp, lane] == a[warp, lane])
        if warp:
            assert kept[warp, 3] == min(abs(a[warp, lane]) for lane in lanes_of(warp))


def test_a_matrix_is_turned() -> None:
    a = draw("u4")
    found = bind_warp("movmatrix.sync.aligned.m8n8.trans.b16 %r1, %r2").evaluate(ACTIVE, a)
    for row, column in itertools.product(range(8), range(8)):
        before = a[:, row * 4 + column // 2] >> 16 * (column % 2) & 0xFFFF
        after = found[:, column * 4 + row // 2] >> 16 * (row % 2) & 0xFFFF
        assert np.array_equal(before, after)


def test_forms_without_synchronisation() -> None:
    operation = bind_warp("shfl.down.b32 %r1, %r2, 1, 31")
    a = draw("u4")
    found = operation.evaluate(ACTIVE, a, np.uint32(1), np.uint32(31))
    assert np.array_equal(found[:, :31], a[:, 1:]) and np.array_equal(found[:, 31], a[:, 31])
    ballot = bind_warp("vote.ballot.b32 %r1, %p1")
    assert np.array_equal(ballot.evaluate(ACTIVE, np.True_)[ACTIVE], MEMBERS[ACTIVE])


def test_lanes_with_members_of_their_own_exchange_among_themselves() -> None:
    active, lanes = np.ones((1, 32), bool), np.arange(32)
    members = np.where(lanes % 2 == 0, np.uint32(0x5555_5555), np.uint32(0xAAAA_AAAA))[None]
    a = lanes[None].astype(np.uint32) * 3
    ballot = bind_warp("vote.sync.ballot.b32 %r1, %p1, %r2").evaluate(active, a > 45, members)
    assert ballot.tolist() == [[0x5555_0000, 0xAAAA_0000] * 16]
    assert bind_warp("redux.sync.max.u32 %r1, %r2, %r3").evaluate(active, a, members).tolist() == [[90, 93] * 16]
    same = bind_warp("match.any.sync.b32 %r1, %r2, %r3").evaluate(active, a // 48, members)
    assert same[0, :2].tolist() == [0x5555, 0xAAAA] and same[0, 30:].tolist() == [0x5555_0000, 0xAAAA_0000]
    a = np.where(lanes % 2 == 0, lanes, 5)[None].astype(np.uint32)
    alike = bind_warp("match.all.sync.b32 %r1, %r2, %r3").evaluate(active, a, members)
    assert alike.tolist() == [[0, 0xAAAA_AAAA] * 16]
    leader, is_leader = bind_warp("elect.sync %r1|%p1, %r2").evaluate(
        (lanes != 8)[None], np.full((1, 32), 0xFF00, np.uint32)
    )
    assert leader[0, 9] == 9 and np.flatnonzero(is_leader).tolist() == [9]
