"""Matrix products: fragments as the ISA's formulas place them, products as the oracle computes them, and accesses of fragments."""

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from gpa_lsp.code.ptx.model import Space
from gpa_lsp.execution.emulator.model import TraceSettings
from gpa_lsp.execution.emulator.semantics.matrix_layouts import (
    left_fragment,
    matrix_addresses,
    right_fragment,
    sum_fragment,
)
from gpa_lsp.execution.emulator.semantics.matrix_products import describe_product
from tests.emulator.engine.running import GLOBAL_THREAD, run_text
from tests.emulator.operations.evaluating import as_signed, bind_product, read_instruction
from tests.emulator.oracle.find import bind_operation

RANDOM = np.random.Generator(np.random.PCG64(9))
WARPS = 3

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
    "f32": 32,
    "s32": 32,
}


def number(bits: int, kind: str) -> Any:
    """Value of an element's bits."""
    if kind == "f16":
        return float(np.uint16(bits).view(np.float16))
    if kind == "bf16":
        return float(np.uint32(bits << 16).view(np.float32))
    if kind == "tf32":
        return float(np.uint32(bits & 0xFFFF_E000).view(np.float32))
    return as_signed(bits, int(kind[1:])) if kind[0] == "s" else bits


def draw(kind: str, size: tuple[int, ...]) -> np.ndarray:
    """Bits of elements: small numbers in floating point, anything in integers."""
    if kind == "f16":
        return RANDOM.standard_normal(size).astype(np.float16).view(np.uint16).astype(np.uint64)
    if kind in ("bf16", "tf32"):
        bits = RANDOM.standard_normal(size).astype(np.float32).view(np.uint32)
        return (bits >> 16 if kind == "bf16" else bits).astype(np.uint64)
    return RANDOM.integers(0, 1 << ELEMENT_BITS[kind], size).astype(np.uint64)


def braces(prefix: str, first: int, count: int) -> str:
    return "{" + ", ".join(f"{prefix}{first + place}" for place in range(count)) + "}"


def list_products() -> Iterator[tuple[str, tuple[int, int, int]]]:
    """Products without operands, and how many registers A, B and C have."""
    for kinds, bits, shapes in (
        (("s8", "u8"), 8, ((8, 16), (16, 16), (16, 32))), (("s4", "u4"), 4, ((8, 32), (16, 32), (16, 64))),
        (("b1",), 1, ((8, 128), (16, 128), (16, 256))),
    ):  # fmt: skip
        for (rows, depth), left, right, word in itertools.product(shapes, kinds, kinds, (0, 1)):
            clamp, join = ("", (".xor.popc", ".and.popc")[word]) if bits == 1 else (("", ".satfinite")[word], "")
            name = f"mma.sync.aligned.m{rows}n8k{depth}.row.col{clamp}.s32.{left}.{right}.s32{join}"
            yield name, (rows * depth * bits // 1024, depth * bits // 128, rows // 4)
    for shape, counts in (("m16n16k16", (2, 2, 8)), ("m32n8k16", (4, 1, 8)), ("m8n32k16", (1, 4, 8))):
        for kind, word in itertools.product(("s8", "u8"), ("row.col", "col.row")):
            yield f"wmma.mma.sync.aligned.{word}.{shape}.s32.{kind}.{kind}.s32.satfinite", counts
    yield from ((f"wmma.mma.sync.aligned.row.col.m8n8k32.s32.{kind}.{kind}.s32", (1, 1, 2)) for kind in ("s4", "u4"))
    yield from (
        (f"wmma.mma.{word}.popc.sync.aligned.row.col.m8n8k128.s32.b1.b1.s32", (1, 1, 2)) for word in ("xor", "and")
    )
    for depth, kind in (
        (8, "f16"),
        (16, "f16"),
        (8, "bf16"),
        (16, "bf16"),
        (4, "tf32"),
        (8, "tf32"),
        (32, "e4m3"),
        (32, "e5m2"),
    ):
        registers = depth * ELEMENT_BITS[kind] // 64
        yield f"mma.sync.aligned.m16n8k{depth}.row.col.f32.{kind}.{kind}.f32", (registers, registers // 2, 4)
    yield "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16", (4, 2, 2)
    for rows, depth in ((8, 4), (16, 4), (16, 8), (16, 16)):
        yield f"mma.sync.aligned.m{rows}n8k{depth}.row.col.f64.f64.f64.f64", (rows * depth // 32, depth // 4, rows // 4)
    for layouts, (sums, count) in itertools.product(
        ("row.col", "row.row", "col.col", "col.row"), (("f32", 8), ("f16", 4))
    ):
        yield f"mma.sync.aligned.m8n8k4.{layouts}.{sums}.f16.f16.{sums}", (2, 2, count)


def draw_registers(random: np.random.Generator, kind: str, count: int) -> list[np.ndarray]:
    """Registers of a warp with elements of a type: small numbers in floating point, addends at both ends of the range, else anything."""
    size = (count, WARPS, 32)
    normal = random.standard_normal((*size, 2))
    if kind == "f64":
        return list(normal[..., 0])
    if kind == "f32":
        return list(normal[..., 0].astype(np.float32))
    if kind == "s32":
        return list(random.choice(np.array([0x7FFFFFF0, 0x80000010, 0, 77], np.uint32), size))
    if kind in ("e4m3", "e5m2"):
        return list(random.integers(0, 0x78, (*size, 4), np.uint8).view(np.uint32)[..., 0])
    high, low = np.moveaxis(normal.astype(np.float32).view(np.uint32), -1, 0)
    floats = {
        "f16": normal.astype(np.float16).view(np.uint32)[..., 0],
        "bf16": high >> 16 << 16 | low >> 16,
        "tf32": high,
    }
    return list(floats.get(kind, random.integers(0, 1 << 32, size, dtype=np.uint32)))


@pytest.mark.parametrize(("name", "counts"), [*list_products()])
def test_products_are_those_of_the_oracle(name: str, counts: tuple[int, int, int]) -> None:
    result, left, right, addend = (one for one in name.split(".") if one in ELEMENT_BITS)
    letter, factor = ({"f32": "%f", "f64": "%e"}.get(kind, "%r") for kind in (result, left))
    places = zip((letter, factor, factor, letter), (0, 8, 16, 24), (counts[2], *counts), strict=True)
    text = f"{name} {', '.join(braces(*one) for one in places)}"
    random = np.random.Generator(np.random.PCG64(len(name)))
    given = [
        one
        for kind, count in zip((left, right, addend), counts, strict=True)
        for one in draw_registers(random, kind, count)
    ]
    operation = bind_operation(read_instruction(text))
    assert operation is not None
    with np.errstate(all="ignore"):
        expected = operation.evaluate(np.ones((WARPS, 32), np.bool_), *given)
    expected = expected if isinstance(expected, tuple) else (expected,)
    found = bind_product(text)(*given)
    assert [one.tobytes() for one in found] == [np.ascontiguousarray(one).tobytes() for one in expected]


@pytest.mark.parametrize(("rows", "depth", "per"), [(16, 16, 2), (16, 32, 4), (8, 16, 4), (16, 8, 1), (16, 256, 32)])
def test_elements_lie_where_the_isa_has_them(rows: int, depth: int, per: int) -> None:
    """The first two lie as written for .f16 m16n8k16 and .s8 m16n8k32, the others by the same rule."""
    fragments = left_fragment(rows, depth, per), right_fragment(depth, 8, per), sum_fragment(rows, 8)

    def left(lane: int, i: int) -> tuple[int, int]:
        if per in (2, 4) and rows == 16:
            row = lane // 4 + (0 if i // per in (0, 2) else 8)
            return row, lane % 4 * per + i % per + (4 * per if i >= 2 * per else 0)
        register, within = divmod(i, per)
        return lane // 4 + 8 * (register % (rows // 8)), lane % 4 * per + within + 4 * per * (register // (rows // 8))

    def right(lane: int, i: int) -> tuple[int, int]:
        return lane % 4 * per + i % per + 4 * per * (i // per), lane // 4

    def total(lane: int, i: int) -> tuple[int, int]:
        return lane // 4 + 8 * (i // 2), lane % 4 * 2 + i % 2

    for fragment, place in zip(fragments, (left, right, total), strict=True):
        for lane in range(32):
            found = zip(fragment.row[lane].tolist(), fragment.column[lane].tolist(), strict=True)
            assert list(found) == [place(lane, i) for i in range(fragment.elements)]


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
