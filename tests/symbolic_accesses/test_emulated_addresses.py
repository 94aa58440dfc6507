"""Symbolic addresses, compared with those of the emulator: with sizes filled in, every address is the same."""

from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from gpa_lsp.code.ptx.model import PtxModule, Space
from gpa_lsp.code.ptx.static_instructions import AccessKind
from gpa_lsp.code.symbolic_accesses.find import count_sectors, find_symbolic_accesses
from gpa_lsp.code.symbolic_accesses.forms import Form, SymbolKind, SymbolTable
from gpa_lsp.code.symbolic_accesses.model import SymbolicAccess, WarpPattern
from gpa_lsp.execution.accesses.lane_addresses import spread_lanes, view_lanes
from gpa_lsp.execution.accesses.references import measure_requests
from gpa_lsp.execution.emulator.model import Trace, TraceSettings
from tests.conftest import examples
from tests.emulator.engine.running import build_module, run_text, zeros
from tests.traces.written_traces import TraceWriter, make_instruction

WORDS = 1 << 20
# Thread, row, block, size, global thread and a counter.
START = """
mov.u32 %r10, %tid.x; mov.u32 %r11, %tid.y; mov.u32 %r12, %ctaid.x; mov.u32 %r13, %ntid.x;
mad.lo.u32 %r14, %r12, %r13, %r10; mov.u32 %r15, 0;
"""

SOURCES = ("%r10", "%r11", "%r12", "%r14", "%r15", "%r0", "%r1")
LINEAR = ("add.u32 {to}, {one}, {two};", "mad.lo.u32 {to}, {one}, {number}, {two};", "shl.b32 {to}, {one}, {small};")
OF_SIZES = ("mad.lo.u32 {to}, {one}, %r0, {two};", "mad.lo.u32 {to}, {one}, %r1, {two};")
OF_BITS = (
    "and.b32 {to}, {one}, 31;",
    "and.b32 {to}, {one}, 6;",
    "and.b32 {to}, {one}, -8;",
    "shr.u32 {to}, {one}, {small};",
    "xor.b32 {to}, {one}, {number};",
    "or.b32 {to}, {one}, {number};",
    "bfe.u32 {to}, {one}, 1, 4;",
    "rem.u32 {to}, {one}, {number};",
    "div.u32 {to}, {one}, {number};",
    "min.u32 {to}, {one}, {two};",
    "setp.lt.u32 %p5, {one}, {two}; selp.b32 {to}, {one}, {two}, %p5;",
)


@st.composite
def bodies(draw, forms: tuple[str, ...]) -> str:  # type: ignore[no-untyped-def]
    """Instructions that compute an index in ``%r30``, in a loop that adds to the counter."""
    registers, text = list(SOURCES), []
    for place in range(draw(st.integers(1, 6))):
        to = f"%r{20 + place}"
        values = {
            "one": draw(st.sampled_from(registers)),
            "two": draw(st.sampled_from(registers)),
            "number": draw(st.integers(1, 9)),
            "small": draw(st.integers(0, 5)),
        }
        text.append(draw(st.sampled_from(forms)).format(to=to, **values))
        registers += [to, to]
    return f"{' '.join(text)} mov.u32 %r30, {registers[-1]};"


def build_body(index: str, trips: int, step: str) -> str:
    """The kernel: the index and the accesses, so many times."""
    return f"""{START}
    mov.u32 %r16, 0;
LOOP: {index}
    mul.wide.u32 %d10, %r30, 4; add.u64 %d11, %d0, %d10; ld.global.u32 %r40, [%d11+4]; st.global.u32 [%d11+8], %r40;
    add.u32 %r15, %r15, {step}; add.u32 %r16, %r16, 1; setp.lt.u32 %p1, %r16, {trips}; @%p1 bra LOOP;
"""


def fill_in(table: SymbolTable, form: Form, values: Mapping[str, int], counter: int) -> np.ndarray:
    """int64[threads], the value of a form."""
    total = np.zeros(table.threads, dtype=np.int64)
    for monomial, lanes in table.group(form).items():
        factor = 1
        for number in monomial:
            symbol = table.symbols[number]
            assert symbol.kind is SymbolKind.UNIFORM
            key = f"parameter {symbol.parameter}" if symbol.parameter is not None else symbol.name
            factor *= counter if symbol.is_counter else values[key]
        total += lanes * factor
    return total


def check(module: PtxModule, trace: Trace, *, block: tuple[int, int], numbers: tuple[int, int], is_known: bool) -> int:
    """Hold every access against the trace; how many were known exactly."""
    shape = (*block, 1) if is_known else None
    found = find_symbolic_accesses(module, "k", shape=shape)
    assert [one.kind for one in found.accesses] == [AccessKind.LOAD, AccessKind.STORE]
    exact = [one for one in found.accesses if one.is_certain and is_named(found.table, one.address)]
    for access in exact:
        check_access(found.table, access, trace, block=block, numbers=numbers, is_known=is_known)
    return len(exact)


def is_named(table: SymbolTable, form: Form) -> bool:
    """Whether a form is known once sizes are."""
    symbols = [table.symbols[number] for number in form.symbols]
    return all(one.lanes is not None or one.name or one.is_counter for one in symbols)


def check_access(
    table: SymbolTable,
    access: SymbolicAccess,
    trace: Trace,
    *,
    block: tuple[int, int],
    numbers: tuple[int, int],
    is_known: bool,
) -> None:
    rows = np.flatnonzero(trace.accesses.instruction == access.instruction.index)
    assert len(rows)
    addresses, active = spread_lanes(trace.accesses, rows)
    sectors = count_sectors(addresses.astype(np.int64), active, access.bytes_each)
    warps_along_x = max(block[0] // 32, 1)
    for place, row in enumerate(rows.tolist()):
        warp = int(trace.accesses.warp[row])
        values = {
            "blockIdx.x": int(trace.accesses.block[row]),
            "threadIdx.x / 32": warp % warps_along_x,
            "threadIdx.y": warp // warps_along_x,
            "blockDim.x / 32": warps_along_x,
            "parameter 0": int(trace.buffers[0].base),
            "parameter 8": numbers[0],
            "parameter 12": numbers[1],
        }
        lanes = fill_in(table, access.address, values, int(trace.accesses.execution[row]))
        own = lanes.reshape(-1, 32)[warp if is_known else 0]
        assert own[active[place]].tolist() == addresses[place][active[place]].astype(np.int64).tolist()
        is_plain = access.pattern is not WarpPattern.STRIDED or not any(term.factors for term in access.stride)
        if not is_known and is_plain and access.stride and access.cost is not None and access.most is not None:
            assert access.cost <= sectors[place] <= access.most


@pytest.mark.parametrize("is_known", [True, False])
@given(data=st.data())
@examples(40)
def test_affine_addresses_are_the_emulated_ones(is_known: bool, data: st.DataObject) -> None:
    index = data.draw(bodies((*LINEAR, *OF_SIZES)))
    assert compare(index, data, is_known=is_known) == 2


@pytest.mark.parametrize("is_known", [True, False])
@given(data=st.data())
@examples(80)
def test_addresses_of_bits_and_quotients_are_the_emulated_ones_where_they_are_certain(
    is_known: bool,
    data: st.DataObject,
) -> None:
    index = data.draw(bodies((*LINEAR, *OF_BITS)))
    compare(index, data, is_known=is_known)


def compare(index: str, data: st.DataObject, *, is_known: bool) -> int:
    """Emulate a kernel with a drawn launch and compare; how many accesses were known exactly."""
    blocks = [(64, 2), (32, 1), (96, 1)]
    block = data.draw(st.sampled_from([*blocks, (16, 4), (24, 3), (8, 8)] if is_known else blocks))
    numbers = (data.draw(st.integers(1, 50)), data.draw(st.integers(1, 50)))
    trips, step = data.draw(st.integers(1, 3)), data.draw(st.sampled_from(["1", "4", "%r0", "%r13"]))
    body = build_body(index, trips, step)
    emulation = run_text(
        body, {"in": zeros(WORDS)}, *numbers, block=(*block, 1), grid=3, trace=TraceSettings(), check_races=False
    )
    assume(not emulation.faults)
    module = build_module(body, ("d", "r", "r"))
    return check(module, emulation.trace, block=block, numbers=numbers, is_known=is_known)


@given(
    lanes=st.lists(st.integers(0, 2000), min_size=32, max_size=32),
    active=st.lists(st.booleans(), min_size=32, max_size=32).filter(any),
    width=st.sampled_from([1, 2, 4, 8, 16]),
)
@examples(60)
def test_sectors_are_those_of_traces(lanes: list[int], active: list[bool], width: int) -> None:
    addresses, marks = np.array([lanes], dtype=np.int64) * width, np.array([active])
    chosen = {lane: address for lane, address in enumerate(addresses[0].tolist()) if marks[0, lane]}
    trace = TraceWriter((make_instruction(0, width=width),)).access(0, chosen).finish()
    found = measure_requests(view_lanes(trace.accesses), np.zeros(1, np.int64))
    assert count_sectors(addresses, marks, width).tolist() == found.sectors.tolist()


def test_shared_memory_is_followed_too() -> None:
    body = """mov.u32 %r10, %tid.x; shl.b32 %r11, %r10, 7; mov.u32 %r12, s; add.u32 %r13, %r12, %r11;
    st.shared.u32 [%r13], %r10; mad.lo.u32 %r14, %r10, 132, %r12; st.shared.u32 [%r14], %r10;"""
    found = find_symbolic_accesses(build_module(body, ("d",), before=".shared .align 4 .b8 s[8192];"), "k")
    assert [(one.space, one.pattern, one.cost) for one in found.accesses] == [
        (Space.SHARED, WarpPattern.STRIDED, 32.0),
        (Space.SHARED, WarpPattern.CONTIGUOUS, 1.0),  # rows padded by a word
    ]
