"""Products of matrices of small integers are those of numpy, and done by the core."""

from collections.abc import Iterator

import numpy as np
import pytest

from tests.emulator.compiled.comparing import by_numpy
from tests.emulator.engine.running import GLOBAL_THREAD, Array, run_text, zeros

_THREADS = 64
_BYTES = ("s8", "u8")
_NIBBLES = ("s4", "u4")


def _list_products() -> Iterator[tuple[str, tuple[int, int, int]]]:
    """Instructions, and how many registers A, B and C have."""
    sums = ("", ".satfinite")
    for rows, depth, kinds, words in (
        (8, 16, _BYTES, sums), (16, 16, _BYTES, sums), (16, 32, _BYTES, sums), (8, 32, _NIBBLES, sums), (16, 32, _NIBBLES, sums),
        (16, 64, _NIBBLES, sums), (8, 128, ("b1",), (".xor", ".and")), (16, 128, ("b1",), (".xor", ".and")),
        (16, 256, ("b1",), (".xor", ".and")),
    ):  # fmt: skip
        for left in kinds:
            for right in kinds:
                for word in words:
                    end = f"{word}.popc" if left == "b1" else ""
                    name = (
                        f"mma.sync.aligned.m{rows}n8k{depth}.row.col{'' if end else word}.s32.{left}.{right}.s32{end}"
                    )
                    bits = int(left[1:])
                    yield name, (rows * depth * bits // 1024, depth * 8 * bits // 1024, rows // 4)
    for shape, counts in (("m16n16k16", (2, 2, 8)), ("m32n8k16", (4, 1, 8)), ("m8n32k16", (1, 4, 8))):
        for kind in _BYTES:
            yield f"wmma.mma.sync.aligned.row.col.{shape}.s32.{kind}.{kind}.s32", counts
            yield f"wmma.mma.sync.aligned.col.row.{shape}.s32.{kind}.{kind}.s32.satfinite", counts
    for kind in _NIBBLES:
        yield f"wmma.mma.sync.aligned.row.col.m8n8k32.s32.{kind}.{kind}.s32", (1, 1, 2)
    for word in ("xor", "and"):
        yield f"wmma.mma.{word}.popc.sync.aligned.row.col.m8n8k128.s32.b1.b1.s32", (1, 1, 2)


_PRODUCTS = tuple(_list_products())


def _run(name: str, counts: tuple[int, int, int], *, guard: str = "", in_place: bool = False) -> Array:
    """Results of a product of random registers; the addends are near both ends of the range."""
    random = np.random.Generator(np.random.PCG64(len(name)))
    a, b, c = counts
    values = random.integers(0, 1 << 32, (a + b + c, _THREADS), dtype=np.uint32)
    values[a + b :] = random.choice(np.array([0x7FFFFFF0, 0x80000010, 0, 77], np.uint32), (c, _THREADS))
    loads = " ".join(f"ld.global.u32 %r{number}, [%d31+{4 * _THREADS * number}];" for number in range(a + b + c))
    first = a + b if in_place else 30
    blank = " ".join(f"mov.u32 %r{30 + number}, {number};" for number in range(c))
    stores = " ".join(f"st.global.u32 [%d32+{4 * _THREADS * number}], %r{first + number};" for number in range(c))
    sets = (range(first, first + c), range(a), range(a, a + b), range(a + b, a + b + c))
    operands = ", ".join("{" + ", ".join(f"%r{number}" for number in one) + "}" for one in sets)
    body = f"{GLOBAL_THREAD} setp.gt.u32 %p0, %r59, 40; {loads} {blank} {guard} {name} {operands}; {stores}"
    arrays: dict[str, Array] = {"in": values.reshape(-1), "out": zeros(c * _THREADS)}
    found = run_text(body, arrays, block=_THREADS)
    assert not found.faults
    return found.arrays["out"].view(np.uint32)


def _compare(name: str, counts: tuple[int, int, int], guard: str = "", in_place: bool = False) -> None:
    with by_numpy():
        expected = _run(name, counts, guard=guard, in_place=in_place)
    assert _run(name, counts, guard=guard, in_place=in_place).tolist() == expected.tolist()
    assert len(set(expected.tolist())) > 8


@pytest.mark.parametrize(("name", "counts"), _PRODUCTS, ids=[name for name, _ in _PRODUCTS])
def test_products_are_those_of_numpy(name: str, counts: tuple[int, int, int]) -> None:
    _compare(name, counts)


@pytest.mark.parametrize(("guard", "in_place"), [("@%p0", False), ("@!%p0", True), ("", True)])
def test_lanes_that_a_guard_leaves_out_keep_what_they_had(guard: str, in_place: bool) -> None:
    name = "mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.u8.s32"
    _compare(name, (4, 2, 4), guard=guard, in_place=in_place)
