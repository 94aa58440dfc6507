"""Logic, shifts, bit fields, permutations and moves against Python's integers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import examples
from tests.emulator.operations.evaluating import as_signed, bits_of, edge_integers, evaluate, pairs, prepare, triples

REGISTERS = {16: "%h", 32: "%r", 64: "%d"}
WIDTHS = (16, 32, 64)
SHIFTS = (0, 1, 5, 15, 16, 17, 31, 32, 33, 63, 64, 65, 255, 256, 65536, 0x8000_0000, 0xFFFF_FFFF)


@pytest.mark.parametrize("bits", WIDTHS)
def test_logic(bits: int) -> None:
    reg, mask = REGISTERS[bits], (1 << bits) - 1
    a, b = pairs(edge_integers(bits))
    for name, function in (("and", lambda x, y: x & y), ("or", lambda x, y: x | y), ("xor", lambda x, y: x ^ y)):
        found = bits_of(evaluate(f"{name}.b{bits} {reg}1, {reg}2, {reg}3", a, b))
        assert found == [function(x, y) for x, y in zip(a, b, strict=True)]
    assert bits_of(evaluate(f"not.b{bits} {reg}1, {reg}2", a)) == [~x & mask for x in a]
    assert bits_of(evaluate(f"cnot.b{bits} {reg}1, {reg}2", a)) == [int(x == 0) for x in a]


def test_logic_of_predicates() -> None:
    a, b = [False, False, True, True], [False, True, False, True]
    assert evaluate("and.pred %p1, %p2, %p3", a, b).tolist() == [False, False, False, True]
    assert evaluate("or.pred %p1, %p2, %p3", a, b).tolist() == [False, True, True, True]
    assert evaluate("xor.pred %p1, %p2, %p3", a, b).tolist() == [False, True, True, False]
    assert evaluate("not.pred %p1, %p2", a).tolist() == [True, True, False, False]


def test_every_truth_table() -> None:
    a, b, c = (np.array([pattern] * 3, np.uint32) for pattern in (0xF0F0_00FF, 0xCCCC_0F0F, 0xAAAA_3333))
    texts = [f"lop3.b32 %r1, %r2, %r3, %r4, {table}" for table in range(256)]
    prepare(*texts)
    for table, text in enumerate(texts):
        found = evaluate(text, a, b, c, [table] * 3)
        for place in range(32):
            key = sum((int(source[0]) >> place & 1) << power for source, power in ((a, 2), (b, 1), (c, 0)))
            assert int(np.ravel(found)[0]) >> place & 1 == table >> key & 1, table


def test_truth_tables_with_a_predicate() -> None:
    a, b, c = [0, 5, 8], [0, 3, 1], [0, 0, 2]
    table = [0x80] * 3
    result, holds = evaluate("lop3.or.b32 %r1|%p1, %r2, %r3, %r4, 0x80, %p2", a, b, c, table, [False, False, True])
    assert result.tolist() == [0, 0, 0]
    assert holds.tolist() == [False, False, True]
    result, holds = evaluate("lop3.and.b32 %r1|%p1, %r2, %r3, %r4, 0xfe, %p2", a, b, c, [0xFE] * 3, [True, True, False])
    assert result.tolist() == [0, 7, 11]
    assert holds.tolist() == [False, True, False]


def shift(value: int, amount: int, bits: int, kind: str) -> int:
    if kind == "shl":
        return value << amount & ((1 << bits) - 1) if amount < bits else 0
    number = as_signed(value, bits) if kind[4] == "s" else value
    return number >> min(amount, bits) & ((1 << bits) - 1)


@pytest.mark.parametrize("bits", WIDTHS)
@pytest.mark.parametrize("name", ["shl.b", "shr.b", "shr.u", "shr.s"])
def test_shifts(name: str, bits: int) -> None:
    reg = REGISTERS[bits]
    values = edge_integers(bits)
    a = [value for value in values for _ in SHIFTS]
    b = list(SHIFTS) * len(values)
    kind = name if name.startswith("shr") else "shl"
    expected = [shift(x, y, bits, kind) for x, y in zip(a, b, strict=True)]
    assert bits_of(evaluate(f"{name}{bits} {reg}1, {reg}2, %r3", a, b)) == expected
    for amount in SHIFTS:
        found = bits_of(evaluate(f"{name}{bits} {reg}1, {reg}2, {amount}", values, [amount] * len(values)))
        assert found == [shift(x, amount, bits, kind) for x in values]


@pytest.mark.parametrize("way", ["l.clamp", "l.wrap", "r.clamp", "r.wrap"])
def test_funnel_shifts(way: str) -> None:
    a, b, c = triples([*edge_integers(32)[::3], *SHIFTS[::2]])

    def funnel(low: int, high: int, amount: int) -> int:
        amount = amount & 31 if "wrap" in way else min(amount, 32)
        both = high << 32 | low
        return (both << amount >> 32 if way[0] == "l" else both >> amount) & 0xFFFF_FFFF

    expected = [funnel(*source) for source in zip(a, b, c, strict=True)]
    assert bits_of(evaluate(f"shf.{way}.b32 %r1, %r2, %r3, %r4", a, b, c)) == expected
    for amount in (0, 1, 8, 31, 32, 40):
        found = bits_of(evaluate(f"shf.{way}.b32 %r1, %r2, %r3, {amount}", a, b, [amount] * len(a)))
        assert found == [funnel(x, y, amount) for x, y in zip(a, b, strict=True)]


@pytest.mark.parametrize("bits", [32, 64])
def test_counts(bits: int) -> None:
    reg = REGISTERS[bits]
    a = edge_integers(bits, more=40) + [1 << place for place in range(bits)]
    assert bits_of(evaluate(f"popc.b{bits} %r1, {reg}2", a)) == [x.bit_count() for x in a]
    assert bits_of(evaluate(f"clz.b{bits} %r1, {reg}2", a)) == [bits - x.bit_length() for x in a]
    assert bits_of(evaluate(f"brev.b{bits} {reg}1, {reg}2", a)) == [int(f"{x:0{bits}b}"[::-1], 2) for x in a]
    for kind in ("u", "s"):
        patterns = [~x & ((1 << bits) - 1) if kind == "s" and x >> (bits - 1) else x for x in a]
        highest = [x.bit_length() - 1 for x in patterns]
        assert bits_of(evaluate(f"bfind.{kind}{bits} %r1, {reg}2", a)) == [place & 0xFFFF_FFFF for place in highest]
        moved = bits_of(evaluate(f"bfind.shiftamt.{kind}{bits} %r1, {reg}2", a))
        assert moved == [bits - 1 - place if place >= 0 else 0xFFFF_FFFF for place in highest]


def find_nth(mask: int, start: int, offset: int) -> int:
    if start >= 32:
        return 0xFFFF_FFFF
    if offset == 0:
        return start if mask >> start & 1 else 0xFFFF_FFFF
    places = range(start, 32) if offset > 0 else range(start, -1, -1)
    found = [place for place in places if mask >> place & 1]
    return found[abs(offset) - 1] if abs(offset) <= len(found) else 0xFFFF_FFFF


@examples(40)
@given(
    st.lists(st.tuples(st.integers(0, 2**32 - 1), st.integers(0, 40), st.integers(-33, 33)), min_size=2, max_size=20)
)
def test_the_nth_bit_that_is_set(lanes: list[tuple[int, int, int]]) -> None:
    found = bits_of(evaluate("fns.b32 %r1, %r2, %r3, %r4", *map(list, zip(*lanes, strict=True))))
    assert found == [find_nth(*lane) for lane in lanes]


def extract(a: int, position: int, length: int, bits: int, *, signed: bool) -> int:
    """Bit by bit, as the ISA writes it."""
    position, length, top = position & 0xFF, length & 0xFF, bits - 1
    sign = 0 if not signed or length == 0 else a >> min(position + length - 1, top) & 1
    return sum(
        (a >> (position + place) & 1 if place < length and position + place <= top else sign) << place
        for place in range(bits)
    )


def insert(a: int, b: int, position: int, length: int, bits: int) -> int:
    position, length = position & 0xFF, length & 0xFF
    for place in range(length):
        if position + place < bits:
            b = b & ~(1 << position + place) | (a >> place & 1) << position + place
    return b


FIELDS = [(p, n) for p in (0, 1, 7, 31, 32, 40, 63, 64, 255, 256) for n in (0, 1, 8, 31, 32, 33, 64, 255, 257)]


@pytest.mark.parametrize("kind", ["u32", "s32", "u64", "s64"])
def test_bit_fields(kind: str) -> None:
    bits = int(kind[1:])
    reg = REGISTERS[bits]
    values = edge_integers(bits)[::2]
    a = [value for value in values for _ in FIELDS]
    positions, lengths = (list(column) * len(values) for column in zip(*FIELDS, strict=True))
    expected = [extract(*lane, bits, signed=kind[0] == "s") for lane in zip(a, positions, lengths, strict=True)]
    assert bits_of(evaluate(f"bfe.{kind} {reg}1, {reg}2, %r3, %r4", a, positions, lengths)) == expected
    for position, length in FIELDS[::4]:
        found = bits_of(
            evaluate(
                f"bfe.{kind} {reg}1, {reg}2, {position}, {length}",
                values,
                [position] * len(values),
                [length] * len(values),
            )
        )
        assert found == [extract(x, position, length, bits, signed=kind[0] == "s") for x in values]
    if kind[0] == "u":
        b = a[::-1]
        found = bits_of(evaluate(f"bfi.b{bits} {reg}1, {reg}2, {reg}3, %r4, %r5", a, b, positions, lengths))
        assert found == [insert(*lane, bits) for lane in zip(a, b, positions, lengths, strict=True)]


@pytest.mark.parametrize("mode", ["clamp", "wrap"])
def test_masks_and_extensions(mode: str) -> None:
    a, b = pairs([0, 1, 5, 16, 31, 32, 33, 0xFFFF_FFFF, 0x8765_4321])

    def count(number: int) -> int:
        return number & 31 if mode == "wrap" else min(number, 32)

    found = bits_of(evaluate(f"bmsk.{mode}.b32 %r1, %r2, %r3", a, b))
    assert found == [((1 << count(y)) - 1) << count(x) & 0xFFFF_FFFF for x, y in zip(a, b, strict=True)]
    found = bits_of(evaluate(f"szext.{mode}.u32 %r1, %r2, %r3", a, b))
    assert found == [x & ((1 << count(y)) - 1) for x, y in zip(a, b, strict=True)]
    found = bits_of(evaluate(f"szext.{mode}.s32 %r1, %r2, %r3", a, b))
    assert found == [
        as_signed(x & ((1 << count(y)) - 1), count(y)) & 0xFFFF_FFFF if count(y) else 0
        for x, y in zip(a, b, strict=True)
    ]


def permute(a: int, b: int, selector: int) -> int:
    octets = (b << 32 | a).to_bytes(8, "little")
    picked = []
    for place in range(4):
        nibble = selector >> 4 * place & 0xF
        octet = octets[nibble & 7]
        picked.append((0xFF if octet >> 7 else 0) if nibble & 8 else octet)
    return int.from_bytes(bytes(picked), "little")


@examples(40)
@given(st.integers(0, 2**16 - 1), st.lists(st.integers(0, 2**32 - 1), min_size=4, max_size=4))
def test_permutations(selector: int, words: list[int]) -> None:
    a, b = words[:2], words[2:]
    expected = [permute(x, y, selector) for x, y in zip(a, b, strict=True)]
    assert bits_of(evaluate(f"prmt.b32 %r1, %r2, %r3, {selector}", a, b, [selector] * 2)) == expected
    assert bits_of(evaluate("prmt.b32 %r1, %r2, %r3, %r4", a, b, [selector | 0x5_0000] * 2)) == expected


@pytest.mark.parametrize(
    "selector", [0x3210, 0x7654, 0x5410, 0x7632, 0x0123, 0x4321, 0x8888, 0xFEDC, 0x1054, 0x0000, 0x2222]
)
def test_permutations_that_compilers_write(selector: int) -> None:
    a, b = pairs([0, 0x8040_2010, 0x0102_0384, 0xFFFF_FFFF])
    found = bits_of(evaluate(f"prmt.b32 %r1, %r2, %r3, {selector}", a, b, [selector] * len(a)))
    assert found == [permute(x, y, selector) for x, y in zip(a, b, strict=True)]


def test_permutation_modes() -> None:
    a, b = 0x3322_1100, 0x7766_5544
    known = {
        "f4e": [0x3322_1100, 0x4433_2211, 0x5544_3322, 0x6655_4433],
        "b4e": [0x5566_7700, 0x6677_0011, 0x7700_1122, 0x0011_2233],
        "rc8": [0x0000_0000, 0x1111_1111, 0x2222_2222, 0x3333_3333],
        "ecl": [0x3322_1100, 0x3322_1111, 0x3322_2222, 0x3333_3333],
        "ecr": [0x0000_0000, 0x1111_1100, 0x2222_1100, 0x3322_1100],
        "rc16": [0x1100_1100, 0x3322_3322, 0x1100_1100, 0x3322_3322],
    }
    for mode, words in known.items():
        assert bits_of(evaluate(f"prmt.b32.{mode} %r1, %r2, %r3, %r4", [a] * 4, [b] * 4, [0, 1, 2, 3])) == words, mode
        assert bits_of(evaluate(f"prmt.b32.{mode} %r1, %r2, %r3, 2", [a], [b], [2])) == words[2:3], mode


def test_moves_pack_and_unpack() -> None:
    words = [0x1234_5678, 0x9ABC_DEF0]
    low, high = evaluate("mov.b32 {%h1, %h2}, %r1", words)
    assert [low.tolist(), high.tolist()] == [[0x5678, 0xDEF0], [0x1234, 0x9ABC]]
    assert bits_of(evaluate("mov.b32 %r1, {%h1, %h2}", low, high)) == words
    parts = evaluate("mov.b64 {%h1, %h2, %h3, %h4}, %d1", [0x0123_4567_89AB_CDEF] * 2)
    assert [int(part[0]) for part in parts] == [0xCDEF, 0x89AB, 0x4567, 0x0123]
    assert bits_of(evaluate("mov.b64 %d1, {%h1, %h2, %h3, %h4}", *parts)) == [0x0123_4567_89AB_CDEF] * 2
    low, high = evaluate("mov.b64 {%r1, %r2}, %d1", [0x0123_4567_89AB_CDEF] * 2)
    assert bits_of(evaluate("mov.b64 %d1, {%r1, %r2}", low, high)) == [0x0123_4567_89AB_CDEF] * 2
    assert evaluate("mov.f32 %f1, %f2", np.float32([1.5, -0.0])).tolist() == [1.5, 0.0]
    assert evaluate("mov.pred %p1, %p2", [True, False]).tolist() == [True, False]


SINGLE = {
    "vadd": lambda x, y: x + y,
    "vsub": lambda x, y: x - y,
    "vabsdiff": lambda x, y: abs(x - y),
    "vmin": min,
    "vmax": max,
}


def parts_of(word: int, count: int, *, signed: bool) -> list[int]:
    width = 32 // count
    fields = [word >> width * place & ((1 << width) - 1) for place in range(count)]
    return [as_signed(field, width) for field in fields] if signed else fields


@pytest.mark.parametrize("name", SINGLE)
@pytest.mark.parametrize("types", ["u32.u32.u32", "s32.s32.s32", "s32.u32.s32"])
def test_video_instructions(name: str, types: str) -> None:
    a, b = pairs([0, 1, 0x7F80_FF01, 0x8000_7FFF, 0xFFFF_FFFF, 0x1234_89AB])
    result, left, right = (word[0] == "s" for word in types.split("."))
    for count in (2, 4):
        low = -(1 << 32 // count - 1) if result else 0
        high = low + (1 << 32 // count) - 1
        plain, clamped, summed = [], [], []
        for x, y in zip(a, b, strict=True):
            values = [
                SINGLE[name](p, q)
                for p, q in zip(parts_of(x, count, signed=left), parts_of(y, count, signed=right), strict=True)
            ]
            mask = (1 << 32 // count) - 1
            plain.append(sum((value & mask) << 32 // count * place for place, value in enumerate(values)))
            limited = [min(max(value, low), high) for value in values]
            clamped.append(sum((value & mask) << 32 // count * place for place, value in enumerate(limited)))
            summed.append(sum(values) + x & 0xFFFF_FFFF)
        assert bits_of(evaluate(f"{name}{count}.{types} %r1, %r2, %r3, %r4", a, b, a)) == plain
        assert bits_of(evaluate(f"{name}{count}.{types}.sat %r1, %r2, %r3, %r4", a, b, a)) == clamped
        assert bits_of(evaluate(f"{name}{count}.{types}.add %r1, %r2, %r3, %r4", a, b, a)) == summed


def test_video_selectors_and_merging() -> None:
    a, b, c = [0x8011_22F3], [0x0000_0102], [0xAABB_CCDD]
    assert bits_of(evaluate("vadd.s32.s32.u32 %r1, %r2.b0, %r3.h0", a, b)) == [0xF3 - 256 + 0x102]
    assert bits_of(evaluate("vsub.u32.u32.u32.add %r1, %r2.b3, %r3.b0, %r4", a, b, c)) == [0x80 - 2 + 0xAABB_CCDD]
    assert bits_of(evaluate("vadd.u32.u32.u32 %r1.b2, %r2.b1, %r3.b0, %r4", a, b, c)) == [0xAA24_CCDD]
    assert bits_of(evaluate("vmad.s32.s32.s32.shr7 %r1, %r2.h1, %r3.b1, %r4", a, b, [128])) == [
        (as_signed(0x8011, 16) + 128 >> 7) & 0xFFFF_FFFF
    ]
    assert bits_of(evaluate("vmad.s32.s32.s32.po %r1, %r2.h1, %r3.b1, %r4", a, b, [128])) == [
        (as_signed(0x8011, 16) + 128 + 1) & 0xFFFF_FFFF
    ]
    assert bits_of(evaluate("vadd.u32.u32.u32.max %r1, %r2, %r3, %r4", a, b, c)) == c
    assert bits_of(evaluate("vadd.u32.u32.u32.min %r1, %r2, %r3, %r4", a, b, c)) == [0x8011_23F5]
    assert bits_of(evaluate("vshl.u32.u32.u32.wrap %r1, %r2, %r3", a, [52])) == [0x2F30_0000]
    assert bits_of(evaluate("vset.u32.u32.gt %r1, %r2, %r3", a, b)) == [1]
    assert bits_of(evaluate("vshr.u32.s32.u32.clamp %r1, %r2, %r3", a, [40])) == [0xFFFF_FFFF]
    assert bits_of(evaluate("vset4.u32.u32.gt %r1, %r2, %r3, %r4", a, [0x8000_2201], c)) == [0x0001_0001]
    assert bits_of(evaluate("vavrg4.s32.s32.s32 %r1, %r2, %r3, %r4", [0x03FD_0005], [0x0600_00F8], c)) == [0x05FE_00FE]
