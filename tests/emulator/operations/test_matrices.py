"""Matrix products: fragments as the ISA's formulas place them, products in Python's integers and fractions."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from gpa_lsp.code.ptx.model import Space
from gpa_lsp.execution.emulator.model import TraceSettings
from gpa_lsp.execution.emulator.semantics.matrix_layouts import matrix_addresses
from gpa_lsp.execution.emulator.semantics.matrix_products import describe_product
from tests.emulator.engine.running import GLOBAL_THREAD, run_text
from tests.emulator.operations.evaluating import as_signed, bind_product, read_instruction
from tests.emulator.operations.exact_floats import F32, decode_table, encode

RANDOM = np.random.Generator(np.random.PCG64(9))
WARPS = 3
Place = Callable[[int, int], tuple[int, int]]

ELEMENT_BITS = {
    "f16": 16,
    "bf16": 16,
    "tf32": 32,
    "f64": 64,
    "s8": 8,
    "u8": 8,
    "s4": 4,
    "u4": 4,
    "b1": 1,
    "e4m3": 8,
    "e5m2": 8,
}


def left(lane: int, i: int, per: int, rows: int) -> tuple[int, int]:
    """Element i of A: ``per`` to a register; with 16 rows every second register is eight rows below."""
    register, within = divmod(i, per)
    halves = rows // 8
    return lane // 4 + 8 * (register % halves), lane % 4 * per + within + 4 * per * (register // halves)


def right(lane: int, i: int, per: int) -> tuple[int, int]:
    return lane % 4 * per + i % per + 4 * per * (i // per), lane // 4


def total(lane: int, i: int) -> tuple[int, int]:
    return lane // 4 + 8 * (i // 2), lane % 4 * 2 + i % 2


def f16_m16n8k16_left(lane: int, i: int) -> tuple[int, int]:
    """Row and column of an element of A, as the ISA gives them for .f16 m16n8k16."""
    row = lane // 4 + (0 if i < 2 or 4 <= i < 6 else 8)
    return row, lane % 4 * 2 + (i & 1) + (8 if i >= 4 else 0)


def s8_m16n8k32_left(lane: int, i: int) -> tuple[int, int]:
    row = lane // 4 + (0 if i < 4 or 8 <= i < 12 else 8)
    return row, lane % 4 * 4 + (i & 3) + (16 if i >= 8 else 0)


def test_the_general_layout_is_that_of_the_isa() -> None:
    for lane in range(32):
        assert [left(lane, i, 2, 16) for i in range(8)] == [f16_m16n8k16_left(lane, i) for i in range(8)]
        assert [left(lane, i, 4, 16) for i in range(16)] == [s8_m16n8k32_left(lane, i) for i in range(16)]
        assert [right(lane, i, 4) for i in range(8)] == [
            (lane % 4 * 4 + (i & 3) + (16 if i >= 4 else 0), lane // 4) for i in range(8)
        ]


def number(bits: int, kind: str) -> Any:
    """Value of an element's bits."""
    if kind == "f16":
        return Fraction(float(np.uint16(bits).view(np.float16)))
    if kind == "bf16":
        return Fraction(float(np.uint32(bits << 16).view(np.float32)))
    if kind == "tf32":
        return Fraction(float(np.uint32(bits & 0xFFFF_E000).view(np.float32)))
    if kind in ("e4m3", "e5m2"):
        return Fraction(float(decode_table(kind)[bits]))
    return as_signed(bits, int(kind[1:])) if kind[0] == "s" else bits


def draw(kind: str, size: tuple[int, ...]) -> np.ndarray:
    """Bits of elements: small numbers in floating point, anything in integers."""
    if kind == "f16":
        return RANDOM.standard_normal(size).astype(np.float16).view(np.uint16).astype(np.uint64)
    if kind in ("bf16", "tf32"):
        bits = RANDOM.standard_normal(size).astype(np.float32).view(np.uint32)
        return (bits >> 16 if kind == "bf16" else bits).astype(np.uint64)
    if kind in ("e4m3", "e5m2"):
        return RANDOM.integers(0, 0x78, size).astype(np.uint64)
    return RANDOM.integers(0, 1 << ELEMENT_BITS[kind], size).astype(np.uint64)


def to_registers(matrix: np.ndarray, kind: str, place: Place, elements: int) -> list[np.ndarray]:
    """Matrix of bits [w, rows, columns] → registers [w, 32]."""
    bits = ELEMENT_BITS[kind]
    per = 32 // bits
    registers = [np.zeros((len(matrix), 32), np.uint64) for _ in range(elements // per)]
    for lane in range(32):
        for i in range(elements):
            row, column = place(lane, i)
            registers[i // per][:, lane] |= matrix[:, row, column] << np.uint64(bits * (i % per))
    return [register.astype(np.uint32) for register in registers]


def braces(prefix: str, first: int, count: int) -> str:
    return "{" + ", ".join(f"{prefix}{first + place}" for place in range(count)) + "}"


INTEGER_PRODUCTS = [
    (8, 16, "s8", "s8"), (16, 16, "u8", "s8"), (16, 32, "s8", "u8"), (16, 32, "u8", "u8"), (8, 32, "s4", "s4"), (16, 32, "u4", "s4"),
    (16, 64, "s4", "u4"), (16, 64, "u4", "u4"), (8, 128, "b1", "b1"), (16, 128, "b1", "b1"), (16, 256, "b1", "b1"),
]  # fmt: skip


@pytest.mark.parametrize(("rows", "depth", "a_kind", "b_kind"), INTEGER_PRODUCTS)
def test_integers(rows: int, depth: int, a_kind: str, b_kind: str) -> None:
    per = 32 // ELEMENT_BITS[a_kind]
    a, b = draw(a_kind, (WARPS, rows, depth)), draw(b_kind, (WARPS, depth, 8))
    c = RANDOM.integers(-(2**31), 2**31, (WARPS, rows, 8))
    a_registers = to_registers(a, a_kind, lambda lane, i: left(lane, i, per, rows), rows * depth // 32)
    b_registers = to_registers(b, b_kind, lambda lane, i: right(lane, i, per), depth // 4)
    sums = rows // 4
    c_registers = [np.array([[c[w][total(lane, i)] for lane in range(32)] for w in range(WARPS)]) for i in range(sums)]
    names = f"{braces('%r', 0, sums)}, {braces('%r', 8, len(a_registers))}, {braces('%r', 16, len(b_registers))}, {braces('%r', 24, sums)}"
    words = [".xor.popc", ".and.popc"] if a_kind == "b1" else ["", ".satfinite"]
    for word in words:
        clamp = ".satfinite" if word == ".satfinite" else ""
        join = word if "popc" in word else ""
        text = f"mma.sync.aligned.m{rows}n8k{depth}.row.col{clamp}.s32.{a_kind}.{b_kind}.s32{join} {names}"
        with np.errstate(all="ignore"):
            found = bind_product(text)(
                *a_registers, *b_registers, *(register.astype(np.uint32) for register in c_registers)
            )
        for w in range(WARPS):
            for lane in (0, 1, 6, 31):
                for i in range(sums):
                    row, column = total(lane, i)
                    pairs = [(int(a[w, row, k]), int(b[w, k, column])) for k in range(depth)]
                    if a_kind == "b1":
                        dot = sum(x ^ y if "xor" in word else x & y for x, y in pairs)
                    else:
                        dot = sum(number(x, a_kind) * number(y, b_kind) for x, y in pairs)
                    wanted = int(c[w, row, column]) + dot
                    if clamp:
                        wanted = min(max(wanted, -(2**31)), 2**31 - 1)
                    assert int(found[i][w, lane]) == wanted & 0xFFFF_FFFF


FLOAT_PRODUCTS = [
    (8, "f16"), (16, "f16"), (8, "bf16"), (16, "bf16"), (4, "tf32"), (8, "tf32"), (32, "e4m3"), (32, "e5m2"),
]  # fmt: skip


@pytest.mark.parametrize("in_place", [False, True])
def test_lanes_that_a_guard_leaves_out_keep_what_they_had(in_place: bool) -> None:
    values = np.random.Generator(np.random.PCG64(3)).integers(0, 1 << 32, (10, 64), dtype=np.uint32)
    values[6:] = [[0x7FFFFFF0], [0x80000010], [0], [77]]  # addends
    first = 6 if in_place else 10
    loads = " ".join(f"ld.global.u32 %r{number}, [%d31+{256 * number}];" for number in range(10))
    sets = ", ".join(braces("%r", start, count) for start, count in ((first, 4), (0, 4), (4, 2), (6, 4)))
    stores = " ".join(f"st.global.u32 [%d32+{256 * number}], %r{first + number};" for number in range(4))
    found = []
    for guard in ("", "@%p0", "@!%p0"):
        body = f"""{GLOBAL_THREAD} setp.gt.u32 %p0, %r59, 40; {loads} {"" if in_place else "mov.u32 %r10, 1; mov.u32 %r13, 4;"}
        {guard} mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.u8.s32 {sets}; {stores}"""
        run = run_text(body, {"in": values.reshape(-1), "out": np.zeros(256, np.uint32)}, block=64)
        found.append(run.arrays["out"].view(np.uint32).reshape(4, 64))
    before = values[6:] if in_place else np.array([[1], [0], [0], [4]], np.uint32)
    is_later = np.arange(64) > 40
    assert np.array_equal(found[1], np.where(is_later, found[0], before))
    assert np.array_equal(found[2], np.where(is_later, before, found[0]))
    assert len(np.unique(found[0])) > 8


@pytest.mark.parametrize(("depth", "kind"), FLOAT_PRODUCTS)
def test_floats_with_single_precision_sums(depth: int, kind: str) -> None:
    per = 32 // ELEMENT_BITS[kind]
    a, b = draw(kind, (WARPS, 16, depth)), draw(kind, (WARPS, depth, 8))
    c = RANDOM.standard_normal((WARPS, 16, 8)).astype(np.float32)
    a_registers = to_registers(a, kind, lambda lane, i: left(lane, i, per, 16), depth // 2)
    b_registers = to_registers(b, kind, lambda lane, i: right(lane, i, per), depth // 4)
    c_registers = [np.array([[c[w][total(lane, i)] for lane in range(32)] for w in range(WARPS)]) for i in range(4)]
    names = f"{braces('%f', 0, 4)}, {braces('%r', 0, len(a_registers))}, {braces('%r', 8, len(b_registers))}, {braces('%f', 8, 4)}"
    text = f"mma.sync.aligned.m16n8k{depth}.row.col.f32.{kind}.{kind}.f32 {names}"
    found = bind_product(text)(*a_registers, *b_registers, *c_registers)
    for w in range(WARPS):
        for lane in (0, 5, 31):
            for i in range(4):
                row, column = total(lane, i)
                dot = sum(number(int(a[w, row, k]), kind) * number(int(b[w, k, column]), kind) for k in range(depth))
                wanted = encode(dot + Fraction(float(c[w, row, column])), F32)
                assert abs(int(found[i].view(np.uint32)[w, lane]) - wanted) <= 1  # double sums are rarely inexact


def test_halves_with_half_precision_sums() -> None:
    a, b, c = (draw("f16", size) for size in ((WARPS, 16, 16), (WARPS, 16, 8), (WARPS, 16, 8)))
    a_registers = to_registers(a, "f16", lambda lane, i: left(lane, i, 2, 16), 8)
    b_registers = to_registers(b, "f16", lambda lane, i: right(lane, i, 2), 4)
    c_registers = to_registers(c, "f16", total, 4)
    text = "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%r0, %r1}, {%r2, %r3, %r4, %r5}, {%r6, %r7}, {%r8, %r9}"
    found = bind_product(text)(*a_registers, *b_registers, *c_registers)
    matrices = [part.astype(np.uint16).view(np.float16).astype(np.float64) for part in (a, b, c)]
    expected = (matrices[0] @ matrices[1] + matrices[2]).astype(np.float16).view(np.uint16).astype(np.uint64)
    for got, wanted in zip(found, to_registers(expected, "f16", total, 4), strict=True):
        assert np.array_equal(got, wanted)


@pytest.mark.parametrize(("rows", "depth"), [(8, 4), (16, 4), (16, 8), (16, 16)])
def test_doubles_are_fused_in_the_order_of_the_depth(rows: int, depth: int) -> None:
    a, b, c = (RANDOM.standard_normal((WARPS, *size)) for size in ((rows, depth), (depth, 8), (rows, 8)))
    halves = rows // 8

    def spread(matrix: np.ndarray, place: Place, count: int) -> list[np.ndarray]:
        return [
            np.array([[matrix[w][place(lane, i)] for lane in range(32)] for w in range(WARPS)]) for i in range(count)
        ]

    a_registers = spread(
        a, lambda lane, i: (lane // 4 + 8 * (i % halves), lane % 4 + 4 * (i // halves)), rows * depth // 32
    )
    b_registers = spread(b, lambda lane, i: (lane % 4 + 4 * i, lane // 4), depth // 4)
    c_registers = spread(c, total, rows // 4)
    sizes = (len(c_registers), len(a_registers), len(b_registers), len(c_registers))
    names = ", ".join(braces("%e", 8 * place, size) for place, size in enumerate(sizes))
    text = f"mma.sync.aligned.m{rows}n8k{depth}.row.col.f64.f64.f64.f64 {names}"
    found = bind_product(text)(*a_registers, *b_registers, *c_registers)
    for i in range(rows // 4):
        for lane in (0, 13, 31):
            row, column = total(lane, i)
            value = float(c[0, row, column])
            for k in range(depth):
                value = float(Fraction(float(a[0, row, k])) * Fraction(float(b[0, k, column])) + Fraction(value))
            assert found[i][0, lane] == value


VOLTA_LAYOUTS = [("row", "col"), ("row", "row"), ("col", "col"), ("col", "row")]


@pytest.mark.parametrize("layouts", VOLTA_LAYOUTS)
@pytest.mark.parametrize("sums", ["f32", "f16"])
def test_four_products_of_quad_pairs(layouts: tuple[str, str], sums: str) -> None:
    a, b = (draw("f16", (4, *size)) for size in ((8, 4), (4, 8)))
    c = RANDOM.standard_normal((4, 8, 8)).astype(np.float16)

    def left_place(lane: int, i: int) -> tuple[int, int]:
        if layouts[0] == "row":
            return lane % 4 + (4 if lane >= 16 else 0), i
        return i % 4 + (4 if lane >= 16 else 0), lane % 4

    def right_place(lane: int, i: int) -> tuple[int, int]:
        if layouts[1] == "row":
            return lane % 4, i + (4 if lane >= 16 else 0)
        return i, lane % 4 + (4 if lane >= 16 else 0)

    def sum_place(lane: int, i: int) -> tuple[int, int]:
        low = 4 if lane >= 16 else 0
        if sums == "f16":
            return lane % 4 + low, i
        return (lane & 1) + (i & 2) + low, (i & 4) + (lane & 2) + (i & 1)

    def spread(matrices: np.ndarray, place: Place, count: int) -> np.ndarray:
        return np.array([[matrices[lane % 16 // 4][place(lane, i)] for i in range(count)] for lane in range(32)])

    def to_pairs(elements: np.ndarray) -> list[np.ndarray]:
        return list(np.ascontiguousarray(elements.astype(np.uint16)).view(np.uint32).T[:, None, :])

    a_registers, b_registers = to_pairs(spread(a, left_place, 4)), to_pairs(spread(b, right_place, 4))
    spread_c = spread(c, sum_place, 8)
    c_registers = (
        to_pairs(spread_c.view(np.uint16)) if sums == "f16" else list(spread_c.astype(np.float32).T[:, None, :])
    )
    letter, count = ("%r", 4) if sums == "f16" else ("%f", 8)
    text = (
        f"mma.sync.aligned.m8n8k4.{layouts[0]}.{layouts[1]}.{sums}.f16.f16.{sums} "
        f"{braces(letter, 0, count)}, {{%r20, %r21}}, {{%r22, %r23}}, {braces(letter, 10, count)}"
    )
    found = bind_product(text)(*a_registers, *b_registers, *c_registers)
    numbers = [part.astype(np.uint16).view(np.float16).astype(np.float64) for part in (a, b)]
    expected = spread(np.matmul(*numbers) + c.astype(np.float64), sum_place, 8)
    if sums == "f16":
        pairs = np.stack([register[0] for register in found], 1)
        assert np.array_equal(np.ascontiguousarray(pairs).view(np.uint16), expected.astype(np.float16).view(np.uint16))
    else:
        assert np.array_equal(np.stack([register[0] for register in found], 1), expected.astype(np.float32))


def load(text: str, memory: np.ndarray, addresses: np.ndarray, stride: int) -> list[np.ndarray]:
    """Registers that a matrix load reads, byte by byte, by the pieces."""
    access = matrix_addresses(read_instruction(text))
    assert access is not None
    registers = np.zeros((len(access.register_types), 32), np.uint64)
    for piece in access.pieces:
        places = addresses[piece.address_lane] + piece.offset_bytes + stride * piece.stride_bits // 8
        for octet in range(piece.size_bytes):
            registers[piece.register] |= memory[places + octet].astype(np.uint64) << np.uint64(
                piece.shift_bits + 8 * octet
            )
    return [
        register.view(np.float64)[None] if kind.bytes == 8 else register.astype(np.uint32)[None]
        for register, kind in zip(registers, access.register_types, strict=True)
    ]


@pytest.mark.parametrize("trans", ["", ".trans"])
@pytest.mark.parametrize("count", [1, 2, 4])
def test_loading_eight_by_eight_matrices(count: int, trans: str) -> None:
    matrices = RANDOM.integers(0, 65536, (count, 8, 8)).astype(np.uint16)
    memory = matrices.view(np.uint8).reshape(-1)
    addresses = np.full(32, -(10**6))
    addresses[: 8 * count] = 16 * np.arange(8 * count)
    text = f"ldmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 {braces('%r', 0, count)}, [%r9]"
    found = load(text, memory, addresses, 0)
    for matrix in range(count):
        source = matrices[matrix].T if trans else matrices[matrix]
        for lane in range(32):
            row, column = lane // 4, lane % 4 * 2
            assert int(found[matrix][0, lane]) == int(source[row, column]) | int(source[row, column + 1]) << 16
    stored = matrix_addresses(
        read_instruction(f"stmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 [%r9], {braces('%r', 0, count)}")
    )
    assert stored is not None
    assert stored.address_lanes == 8 * count
    assert stored.row_bytes == 16


WMMA = [
    ((16, 16, 16), "f16", "f32", ("row", "col")),
    ((32, 8, 16), "f16", "f32", ("col", "row")),
    ((8, 32, 16), "bf16", "f32", ("row", "row")),
    ((16, 16, 8), "tf32", "f32", ("row", "col")),
    ((16, 16, 16), "s8", "s32", ("col", "col")),
    ((8, 32, 16), "u8", "s32", ("row", "row")),
    ((8, 8, 4), "f64", "f64", ("col", "row")),
    ((8, 8, 32), "s4", "s32", ("row", "col")),
    ((8, 8, 128), "b1", "s32", ("row", "col")),
]


@pytest.mark.parametrize(("shape", "kind", "sums", "layouts"), WMMA)
def test_wmma_loads_multiplies_and_stores(
    shape: tuple[int, int, int], kind: str, sums: str, layouts: tuple[str, str]
) -> None:
    rows, columns, depth = shape
    bits = ELEMENT_BITS[kind]
    padding = 8 * 32 // bits if bits < 32 else 4
    if kind == "f64":
        a, b = RANDOM.standard_normal((rows, depth)), RANDOM.standard_normal((depth, columns))
        values = [a, b]
    else:
        a, b = draw(kind, (rows, depth)), draw(kind, (depth, columns))
        values = [np.array([[float(number(int(x), kind)) for x in line] for line in part]) for part in (a, b)]
    c = RANDOM.integers(-99, 99, (rows, columns))
    name = f"m{rows}n{columns}k{depth}"
    registers: list[np.ndarray] = []
    counts = []
    lane_registers = {"f64": "%e"}.get(kind, "%r")
    for which, matrix, layout in (("a", a, layouts[0]), ("b", b, layouts[1])):
        lines = matrix if layout == "row" else matrix.T
        memory, stride = lay_out(lines, bits, padding)
        start = f"wmma.load.{which}.sync.aligned.{layout}.{name}.global.{kind}"
        access = matrix_addresses(read_instruction(f"{start} {braces(lane_registers, 0, 8)}, [%d9], 64"))
        assert access is not None
        counts.append(len(access.register_types))
        assert access.default_stride_elements == lines.shape[1]
        text = f"{start} {braces(lane_registers, 0, counts[-1])}, [%d9], 64"
        found = load(text, memory, np.zeros(32, np.int64), stride)
        registers += found
    sum_dtype = {"f32": np.float32, "f64": np.float64, "s32": np.int32}[sums]
    c_memory, c_stride = c.astype(sum_dtype), columns
    letter = {"f32": "%f", "f64": "%e", "s32": "%r"}[sums]
    sum_count = rows * columns // 32
    text = f"wmma.load.c.sync.aligned.row.{name}.global.{sums} {braces(letter, 0, sum_count)}, [%d9], 64"
    for register in load(text, c_memory.view(np.uint8).reshape(-1), np.zeros(32, np.int64), c_stride):
        registers.append(register.view({"f32": np.float32, "f64": np.float64, "s32": np.uint32}[sums]))
    words = {"f16": f".{sums}.{sums}"}.get(kind, f".{sums}.{kind}.{kind}.{sums}")
    start = ".xor.popc" if kind == "b1" else ""
    factors = f"{braces(lane_registers, 10, counts[0])}, {braces(lane_registers, 20, counts[1])}"
    names = f"{braces(letter, 0, sum_count)}, {factors}, {braces(letter, 30, sum_count)}"
    text = f"wmma.mma{start}.sync.aligned.{layouts[0]}.{layouts[1]}.{name}{words} {names}"
    with np.errstate(all="ignore"):
        found_sums = bind_product(text)(*registers)
    store = matrix_addresses(
        read_instruction(
            f"wmma.store.d.sync.aligned.row.{name}.global.{sums} [%d9], {braces(letter, 0, sum_count)}, 64"
        )
    )
    assert store is not None
    result = np.zeros((rows, columns), sum_dtype)
    for piece in store.pieces:
        assert piece.size_bytes == result.itemsize
        places = (piece.offset_bytes + columns * piece.stride_bits // 8) // result.itemsize
        result.reshape(-1)[places] = found_sums[piece.register][0].view(sum_dtype)
    if kind == "b1":
        expected = c + (np.array([[int(np.sum(x != y)) for y in b.T] for x in a]))
        assert np.array_equal(result, expected)
    else:
        assert np.allclose(result, values[0] @ values[1] + c, rtol=1e-6, atol=1e-5 if sums != "f64" else 1e-12)


def lay_out(lines: np.ndarray, bits: int, padding: int) -> tuple[np.ndarray, int]:
    """Rows with some elements between them, as bytes; and their distance in elements."""
    stride = lines.shape[1] + padding
    if lines.dtype == np.float64:
        memory = np.zeros((len(lines), stride))
        memory[:, : lines.shape[1]] = lines
        return memory.view(np.uint8).reshape(-1), stride
    ones = np.zeros((len(lines), stride, bits), np.uint8)
    for place in range(bits):
        ones[:, : lines.shape[1], place] = lines >> np.uint64(place) & np.uint64(1)
    return np.packbits(ones.reshape(-1), bitorder="little"), stride


@pytest.mark.parametrize(
    "text",
    [
        "mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 {%f0,%f1,%f2,%f3}, {%r0,%r1,%r2,%r3}, {%r4,%r5,%r6,%r7}, {%f4,%f5,%f6,%f7}, %r8, 0",
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f0,%f1,%f2,%f3}, {%r0,%r1}, {%r4,%r5}, {%f4,%f5,%f6,%f7}",
        "mma.sync.aligned.m16n8k17.row.col.f32.f16.f16.f32 {%f0,%f1,%f2,%f3}, {%r0,%r1,%r2,%r3}, {%r4,%r5}, {%f4,%f5,%f6,%f7}",
        "mma.sync.aligned.m16n8k999.row.col.f32.f16.f16.f32 %f0, %r0, %r1, %f1",
    ],
)
def test_products_that_are_not_known(text: str) -> None:
    assert describe_product(read_instruction(text)) is None


HARDWARE = [
    # kind, matrix, shape, layout: requests and bytes per lane of global memory; the same of shared memory
    ("f16", "a", "m16n16k16", "row", (4, 4), (1, 16)),
    ("f16", "a", "m16n16k16", "col", (4, 4), (1, 16)),
    ("f16", "b", "m16n16k16", "row", (4, 4), (1, 16)),
    ("f16", "c", "m16n16k16", "col", (4, 4), (4, 4)),
    ("f16", "a", "m32n8k16", "row", (8, 4), (2, 16)),
    ("f16", "b", "m32n8k16", "row", (2, 4), (1, 16)),
    ("bf16", "b", "m8n32k16", "col", (8, 4), (2, 16)),
    ("tf32", "a", "m16n16k8", "row", (4, 4), (4, 4)),
    ("tf32", "b", "m16n16k8", "row", (4, 4), (4, 4)),
    ("s8", "a", "m16n16k16", "row", (2, 4), (1, 16)),
    ("s8", "a", "m16n16k16", "col", (8, 1), (8, 1)),
    ("s8", "b", "m8n32k16", "row", (16, 1), (16, 1)),
    ("f64", "a", "m8n8k4", "col", (1, 8), (1, 8)),
    ("f64", "c", "m8n8k4", "row", (1, 16), (1, 16)),
    ("f64", "c", "m8n8k4", "col", (2, 8), (2, 8)),
    ("f32", "c", "m16n16k16", "row", (4, 8), (4, 8)),
    ("f32", "c", "m16n16k16", "col", (8, 4), (8, 4)),
    ("f32", "c", "m8n32k16", "row", (8, 4), (8, 4)),
    ("s32", "c", "m8n32k16", "col", (4, 8), (4, 8)),
]
"""What ptxas 13.0 writes for sm_80 (LDG, LDS and LDSM)."""


@pytest.mark.parametrize("row", HARDWARE)
def test_wmma_asks_memory_as_the_hardware_does(
    row: tuple[str, str, str, str, tuple[int, int], tuple[int, int]],
) -> None:
    """The requests are as many and as wide as the hardware's, and together read each byte of the matrix once."""
    kind, which, shape, layout, everywhere, in_shared = row
    text = f"wmma.load.{which}.sync.aligned.{layout}.{shape}.global.{kind}"
    found = next(
        access
        for count in (1, 2, 4, 8)
        if (access := matrix_addresses(read_instruction(f"{text} {braces('%r', 0, count)}, [%d9], 64"))) is not None
    )
    stride = 1000
    moved = np.unique(
        [
            piece.offset_bytes + stride * piece.stride_bits // 8 + byte
            for piece in found.pieces
            for byte in range(piece.size_bytes)
        ]
    )
    for requests, (count, size) in ((found.requests, everywhere), (found.shared_requests or found.requests, in_shared)):
        assert (len(requests), {one.size_bytes for one in requests}) == (count, {size})
        asked = np.concatenate(
            [
                (one.offset_bytes + stride * one.stride_bits // 8 + byte)[: one.lanes]
                for one in requests
                for byte in range(size)
            ]
        )
        assert np.array_equal(np.sort(asked), moved)


def test_a_wmma_load_is_traced_as_four_requests_of_a_warp() -> None:
    body = """ld.param.u64 %d2, [k_param_0]; mov.u32 %r40, 64;
    wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}, [%d0], %r40;
    wmma.load.a.sync.aligned.row.m16n16k16.f16 {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}, [%d0], %r40;"""
    run = run_text(body, {"in": np.zeros(1024, np.uint32)}, trace=TraceSettings())
    assert run.trace is not None and run.faults == ()
    accesses = run.trace.accesses
    assert accesses.bytes.tolist() == [4] * 8
    assert set(accesses.space.tolist()) == {int(Space.GLOBAL)}
    for number in range(8):
        first = int(accesses.first_address[number])
        assert len(np.unique(accesses.addresses[first : first + 32] // 32)) == 8


def test_rows_that_generic_addresses_lead_to_stand_in_traces_from_where_shared_memory_begins() -> None:
    body = """.shared .align 16 .b8 tile[512]; mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 4; mov.u32 %r3, tile; add.u32 %r4, %r2, %r3;
    cvt.u64.u32 %d5, %r4; cvta.shared.u64 %d6, %d5; st.shared.v4.u32 [%r4], {%r1, %r2, %r3, %r4}; bar.sync 0;
    ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r10, %r11}, [%r4]; ldmatrix.sync.aligned.m8n8.x2.b16 {%r12, %r13}, [%d6];"""
    run = run_text(body, {"in": np.zeros(1, np.uint32)}, trace=TraceSettings())
    assert run.trace is not None and run.faults == ()
    accesses = run.trace.accesses
    assert accesses.space.tolist() == [int(Space.SHARED)] * 3
    assert (accesses.bytes[1:].tolist(), accesses.lane_mask[1:].tolist()) == ([16, 16], [0xFFFF, 0xFFFF])
    assert accesses.addresses[32:].tolist() == [16 * lane for lane in range(16)] * 2
