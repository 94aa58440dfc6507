"""Loads and stores in every space."""

import errno

import numpy as np
import pytest
from msgspec.structs import replace

from gpa_lsp.code.ptx.model import Space
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.execution.emulator.emulate import emulate
from gpa_lsp.execution.emulator.engine import arena
from gpa_lsp.execution.emulator.engine.arena import ARENA_BASE
from gpa_lsp.execution.emulator.model import FaultKind, TraceSettings
from gpa_lsp.execution.launches.launch import ArrayArgument, Generator, LaunchDescription
from gpa_lsp.foundation.errors import InputError
from tests.emulator.engine.running import GLOBAL_THREAD, build_module, run_text, words, zeros


def test_vectors_and_parts_of_words_are_loaded_and_stored() -> None:
    body = """ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%d0]; ld.global.v2.u64 {%d5, %d6}, [%d0+16];
    st.global.v2.u64 [%d1], {%d6, %d5}; st.global.v4.u32 [%d1+16], {%r4, %r3, %r2, %r1};
    ld.global.s8 %r5, [%d0]; ld.global.u8 %h1, [%d0+1]; ld.global.s16 %r6, [%d0+2]; ld.global.s8 %h2, [%d0];
    st.global.u32 [%d1+32], %r5; st.global.u16 [%d1+36], %h1; st.global.u16 [%d1+38], %h2; st.global.u32 [%d1+40], %r6; st.global.u8 [%d1+44], %r1;"""
    given = words(0x8001FF80, 2, 3, 4, 5, 6, 7, 8)
    emulation = run_text(body, {"in": given, "out": zeros(12)}, block=1)
    assert emulation.faults == ()
    out = emulation.arrays["out"]
    assert out[:8].tolist() == [7, 8, 5, 6, 4, 3, 2, 0x8001FF80]
    assert out[8] == 0xFFFFFF80
    assert out[9] == 0xFF8000FF
    assert out[10] == 0xFFFF8001
    assert out[11] == 0x80


def test_the_highest_lane_of_those_that_store_to_one_word_wins() -> None:
    body = f"""{GLOBAL_THREAD} st.global.u32 [%d1], %r59; shr.u32 %r1, %r59, 3; mul.wide.u32 %d2, %r1, 4; add.u64 %d2, %d2, %d1;
    st.global.u32 [%d2+4], %r59;"""
    emulation = run_text(body, {"in": zeros(1), "out": zeros(9)}, block=64)
    assert emulation.arrays["out"].tolist() == [63, 7, 15, 23, 31, 39, 47, 55, 63]


def test_generic_addresses_reach_every_space() -> None:
    """Lanes of one warp go to global, shared and local memory with one instruction."""
    body = """.shared .align 4 .b8 tile[128]; .local .align 4 .b8 own[16]; mov.u32 %r1, %tid.x; mul.wide.u32 %d5, %r1, 4;
    mov.u64 %d2, tile; cvta.shared.u64 %d2, %d2; add.u64 %d2, %d2, %d5; mov.u64 %d3, own; cvta.local.u64 %d3, %d3; add.u64 %d4, %d0, %d5;
    and.b32 %r2, %r1, 3; setp.eq.u32 %p1, %r2, 1; setp.eq.u32 %p2, %r2, 2; setp.eq.u32 %p3, %r2, 3;
    selp.b64 %d6, %d2, %d4, %p1; selp.b64 %d6, %d3, %d6, %p2; @%p3 mov.u64 %d6, 64;
    add.u32 %r3, %r1, 100; st.u32 [%d6], %r3; ld.u32 %r4, [%d6]; add.u64 %d7, %d1, %d5; st.global.u32 [%d7], %r4;
    isspacep.shared %p4, %d6; isspacep.local %p5, %d6; isspacep.global %p6, %d6; isspacep.const %p7, %d6;
    selp.u32 %r5, 1, 0, %p4; selp.u32 %r6, 2, 0, %p5; selp.u32 %r7, 4, 0, %p6; add.u32 %r5, %r5, %r6; add.u32 %r5, %r5, %r7;
    st.global.u32 [%d7+128], %r5;
    ld.shared.u32 %r8, [tile+4]; st.global.u32 [%d1+256], %r8;"""
    emulation = run_text(body, {"in": zeros(32), "out": zeros(65)}, trace=TraceSettings(), check_races=False)
    (load, store) = sorted(emulation.faults, key=lambda fault: "store" in fault.message)
    assert load.kind is store.kind is FaultKind.OUT_OF_BOUNDS
    assert load.count == store.count == 8
    assert "0x40" in load.message
    out = emulation.arrays["out"].reshape(-1)
    assert out[:32].tolist() == [0 if lane % 4 == 3 else lane + 100 for lane in range(32)]
    assert out[32:64].tolist() == [(4, 1, 2, 4)[lane % 4] for lane in range(32)]
    assert out[64] == 101
    assert emulation.arrays["in"].tolist() == [lane + 100 if lane % 4 == 0 else 0 for lane in range(32)]
    assert emulation.trace is not None
    rows = emulation.trace.accesses
    generic = rows.instruction == rows.instruction[0]
    found = {(int(space), int(mask)) for space, mask in zip(rows.space[generic], rows.lane_mask[generic], strict=True)}
    assert found == {(Space.SHARED, 0x22222222), (Space.LOCAL, 0x44444444), (Space.GLOBAL, 0x99999999)}


def test_constants_parameters_and_initial_values_are_read_by_address() -> None:
    before = """.const .align 4 .u32 table[4] = {10, 20, 30, 40}; .global .align 8 .u64 pointer[2] = {values, values+8};
    .global .align 4 .u32 values[4] = {1, 2, 3, 4};"""
    body = """mov.u32 %r1, %tid.x; mul.wide.u32 %d5, %r1, 4; mov.u64 %d2, table; add.u64 %d2, %d2, %d5; ld.const.u32 %r2, [%d2];
    ld.global.u64 %d3, [pointer+8]; ld.global.u32 %r3, [%d3+4]; add.u32 %r2, %r2, %r3;
    mov.u64 %d6, k_param_1; ld.param.u32 %r4, [%d6]; add.u32 %r2, %r2, %r4; add.u64 %d4, %d0, %d5; st.global.u32 [%d4], %r2;"""
    emulation = run_text(body, {"out": zeros(4)}, 1000, block=4, before=before)
    assert emulation.faults == ()
    assert emulation.arrays["out"].tolist() == [1014, 1024, 1034, 1044]
    assert emulation.arrays["values"].tolist() == [1, 2, 3, 4]


def test_generic_reads_of_constants_stand_in_traces_each_time() -> None:
    before = ".const .align 4 .u32 table[4] = {10, 20, 30, 40};"
    body = """mov.u64 %d5, table; mov.u32 %r9, 0; AGAIN: ld.u32 %r1, [%d5+4]; add.u32 %r9, %r9, 1; setp.lt.u32 %p1, %r9, 3; @%p1 bra AGAIN;
    st.global.u32 [%d0], %r1;"""
    emulation = run_text(body, {"out": zeros(1)}, before=before, trace=TraceSettings())
    assert emulation.trace is not None
    assert emulation.trace.accesses.space.tolist() == [Space.GLOBAL] * 4
    assert emulation.arrays["out"].tolist() == [20]


@pytest.mark.parametrize(
    ("access", "kind", "words_of"),
    [
        ("ld.global.u32 %r1, [%d0+40];", FaultKind.OUT_OF_BOUNDS, "element 10 of in, which has 10"),
        ("ld.global.u32 %r1, [%d0+-4];", FaultKind.OUT_OF_BOUNDS, "4 bytes before in"),
        (
            "ld.global.u32 %r1, [%d0+-2048];",
            FaultKind.OUT_OF_BOUNDS,
            "2,048 bytes (512 elements) before in, which has 40",
        ),
        ("ld.global.u32 %r1, [%d0+-3000000];", FaultKind.OUT_OF_BOUNDS, "3,000,000 bytes (750,000 elements) before in"),
        ("ld.global.u32 %r1, [%d1+-16];", FaultKind.OUT_OF_BOUNDS, "16 bytes (4 elements) before out"),
        ("ld.global.u64 %d5, [%d0+4];", FaultKind.MISALIGNED, "not a multiple of 8"),
        ("ld.global.v2.u32 {%r1, %r2}, [%d0+36];", FaultKind.OUT_OF_BOUNDS, "element 9 of in"),
        ("st.global.u32 [%d1+400], %r1;", FaultKind.OUT_OF_BOUNDS, "element 100 of out"),
        ("mov.u64 %d5, k_param_0; st.global.u32 [%d5+-4], %r1;", FaultKind.OUT_OF_BOUNDS, "of out, which has 4"),
        ("st.global.u32 [%d1+1048576], %r1;", FaultKind.OUT_OF_BOUNDS, "element 262144 of out, which has 4"),
        ("ld.global.u32 %r1, [%d0+1048576];", FaultKind.OUT_OF_BOUNDS, "element 262144 of in, which has 10"),
        ("ld.global.u32 %r1, [%d1+-1048];", FaultKind.OUT_OF_BOUNDS, "(262 elements) before out, which has 16 bytes"),
        ("ld.global.u32 %r1, [values+-4096];", FaultKind.OUT_OF_BOUNDS, "4,096 bytes (1,024 elements) before values"),
        (
            "selp.b64 %d5, %d0, %d1, %p1; ld.global.u32 %r1, [%d5+100];",
            FaultKind.OUT_OF_BOUNDS,
            "element 25 of in, which has 10 (the nearest array; which one its pointer leads to is not known)",
        ),
        ("mov.u64 %d5, table; st.global.u32 [%d5], %r1;", FaultKind.WRITE_TO_CONSTANT, "table"),
        ("ld.shared.u32 %r1, [4096];", FaultKind.OUT_OF_BOUNDS, "shared memory has 0 bytes"),
        ("atom.global.add.u32 %r1, [%d0+4000], 1;", FaultKind.OUT_OF_BOUNDS, "atomic access"),
        ("mov.u64 %d5, -4; ld.global.u32 %r1, [%d5];", FaultKind.OUT_OF_BOUNDS, "no array is near"),
    ],
)
def test_wrong_accesses_are_findings_and_read_zero(access: str, kind: FaultKind, words_of: str) -> None:
    before = ".const .align 4 .u32 table[4] = {10, 20, 30, 40}; .global .align 4 .u32 values[4];"
    body = f"mov.u32 %r1, 7; mov.u32 %r5, %tid.x; setp.lt.u32 %p1, %r5, 3; @!%p1 bra DONE; {access} st.global.u32 [%d1], %r1; DONE:"
    given = np.arange(10, dtype=np.uint32)
    emulation = run_text(body, {"in": given, "out": zeros(4)}, before=before)
    (fault,) = emulation.faults
    assert fault.kind is kind
    assert words_of in fault.message
    assert (fault.count, fault.block, fault.thread) == (3, 0, (0, 0, 0))
    reads = access.startswith(("ld.global.u32", "ld.global.v2", "ld.shared", "atom", "mov.u64 %d5, -4", "selp"))
    assert emulation.arrays["out"][0] == (0 if reads else 7)
    assert emulation.arrays["in"].tolist() == given.tolist()


def test_only_the_wrong_lanes_of_an_access_go_without() -> None:
    body = f"{GLOBAL_THREAD} ld.global.u32 %r1, [%d31+20]; add.u32 %r1, %r1, 1; st.global.u32 [%d32], %r1;"
    emulation = run_text(body, {"in": np.arange(40, dtype=np.uint32), "out": zeros(64)}, block=64)
    (fault,) = emulation.faults
    assert fault.count == 64 - 35
    assert fault.thread == (35, 0, 0)
    assert emulation.arrays["out"].tolist() == [k + 6 if k < 35 else 1 for k in range(64)]


def test_inputs_of_the_caller_are_not_written_to() -> None:
    given = np.arange(32, dtype=np.uint32)
    run_text(f"{GLOBAL_THREAD} st.global.u32 [%d31], 5;", {"in": given, "out": zeros(1)})
    assert given.tolist() == list(range(32))


def test_copies_to_shared_memory_fill_up_with_zeros() -> None:
    body = """.shared .align 16 .b8 tile[64]; mov.u32 %r1, %tid.x; mul.wide.u32 %d5, %r1, 16; add.u64 %d6, %d0, %d5; cvt.u32.u64 %r2, %d5;
    mov.u32 %r3, tile; add.u32 %r3, %r3, %r2; mul.lo.u32 %r4, %r1, 6;
    cp.async.cg.shared.global [%r3], [%d6], 16, %r4; cp.async.commit_group; cp.async.wait_group 0; bar.sync 0;
    ld.shared.v4.u32 {%r5, %r6, %r7, %r8}, [%r3]; add.u64 %d7, %d1, %d5; st.global.v4.u32 [%d7], {%r5, %r6, %r7, %r8};"""
    given = np.full(16, 0x11223344, np.uint32)
    emulation = run_text(body, {"in": given, "out": zeros(16)}, block=4)
    assert emulation.faults == ()
    whole, half = 0x11223344, 0x3344
    assert emulation.arrays["out"].tolist() == [
        *(0, 0, 0, 0), *(whole, half, 0, 0), *(whole, whole, whole, 0), *(whole, whole, whole, whole)
    ]  # fmt: skip


def hold_at(addresses: list[int], where: int) -> LaunchDescription:
    """An array that holds addresses, and one of eight words that lies somewhere."""
    holder = ArrayArgument(
        name="rows", type=ScalarType.U64, count=len(addresses), generator=Generator.VALUES, values=tuple(addresses)
    )
    row = ArrayArgument(
        name="row", type=ScalarType.U32, count=8, generator=Generator.SEQUENCE, low=10, base_address=where
    )
    return LaunchDescription(kernel="k", block=(1, 1, 1), grid=(1, 1, 1), arguments=(holder,), memory=(row,))


def test_arrays_lie_where_others_hold_their_addresses() -> None:
    where = ARENA_BASE + (3 << 30)
    module = build_module("ld.global.u64 %d1, [%d0]; ld.global.u32 %r1, [%d1+8]; st.global.u32 [%d1], %r1;", ("d",))
    emulation = emulate(module, hold_at([where], where))
    assert emulation.faults == ()
    assert emulation.arrays["row"].tolist() == [12, 11, 12, 13, 14, 15, 16, 17]
    assert emulation.peak_bytes < 64 << 20


@pytest.mark.parametrize("where", [64, ARENA_BASE - 8, ARENA_BASE + (1 << 50)])
def test_arrays_that_cannot_lie_where_they_should_are_refused(where: int) -> None:
    module = build_module("ld.global.u64 %d1, [%d0];", ("d",))
    with pytest.raises(InputError, match="row cannot lie at 0x"):
        emulate(module, hold_at([1], where))


def test_arrays_too_far_apart_for_this_computer_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(size_bytes: int) -> None:
        raise OSError(errno.ENOMEM, "Cannot allocate memory")

    monkeypatch.setattr(arena, "make_zeros", refuse)
    module = build_module("ld.global.u64 %d1, [%d0];", ("d",))
    with pytest.raises(InputError, match=r"no room for arrays that lie 3 GiB apart: Cannot allocate memory"):
        emulate(module, hold_at([1], ARENA_BASE + (3 << 30)))


def test_arrays_at_the_same_place_are_refused() -> None:
    module = build_module("ld.global.u64 %d1, [%d0];", ("d",))
    launch = hold_at([1], ARENA_BASE)
    second = replace(launch.memory[0], name="other")
    with pytest.raises(InputError, match="other at 0x700000000 overlaps row"):
        emulate(module, replace(launch, memory=(*launch.memory, second)))


_HEAP = ".extern .func (.param .b64 r) malloc (.param .b64 n); .extern .func free (.param .b64 p);"


def _allocate(register: str, size: int = 24) -> str:
    return f"{{ .param .b64 n; .param .b64 r; st.param.b64 [n], {size}; call (r), malloc, (n); ld.param.b64 {register}, [r]; }}"


def _free(register: str) -> str:
    return f"{{ .param .b64 p; st.param.b64 [p], {register}; call free, (p); }}"


@pytest.mark.parametrize(
    ("access", "words_of"),
    [
        ("ld.u32 %r1, [%d5+20];", "load of 4 bytes"),
        ("st.global.u32 [%d5+20], %r59;", "store of 4 bytes"),
        ("atom.global.add.u32 %r1, [%d5+20], 1;", "atomic access of 4 bytes"),
    ],
)
def test_device_memory_is_not_accessed_after_device_code_freed_it(access: str, words_of: str) -> None:
    body = f"""{GLOBAL_THREAD} {_allocate("%d5")} st.u32 [%d5+20], %r59; {_allocate("%d6")} st.u32 [%d6+20], 7;
    {_free("%d5")} mov.u32 %r1, 5; {access} ld.u32 %r2, [%d6+20]; st.global.u32 [%d32], %r1; st.global.u32 [%d32+128], %r2;"""
    emulation = run_text(body, {"in": zeros(1), "out": zeros(64)}, before=_HEAP)
    (fault,) = emulation.faults
    assert (fault.kind, fault.count, fault.thread) == (FaultKind.OUT_OF_BOUNDS, 32, (0, 0, 0))
    assert fault.message.startswith(words_of)
    assert "in memory that was freed, byte 20 (24 bytes at 0x" in fault.message
    out = emulation.arrays["out"].tolist()
    assert out[:32] == [5 if access.startswith("st") else 0] * 32, "what was freed reads zero"
    assert out[32:] == [7] * 32, "what was not is still there"


def test_one_access_meets_memory_before_and_after_it_was_freed() -> None:
    body = f"""{GLOBAL_THREAD} {_allocate("%d5")} mov.u32 %r9, 0;
    AGAIN: st.u32 [%d5], 3; ld.u32 %r1, [%d5]; add.u32 %r9, %r9, 1; setp.lt.u32 %p1, %r9, 3; @%p1 bra AGAIN;
    setp.eq.u32 %p2, %r9, 3; @!%p2 bra DONE; {_free("%d5")} bra AGAIN; DONE: st.global.u32 [%d32], %r1;"""
    emulation = run_text(body, {"in": zeros(1), "out": zeros(32)}, before=_HEAP)
    load, store = sorted(emulation.faults, key=lambda fault: fault.message)
    assert load.message.startswith("load") and store.message.startswith("store")
    assert load.count == store.count == 32
    assert emulation.arrays["out"].tolist() == [0] * 32


def test_memory_that_is_handed_out_again_is_no_freed_memory() -> None:
    body = f"""{GLOBAL_THREAD} {_allocate("%d5", 64)} {_free("%d5")} {_allocate("%d6", 64)} st.u32 [%d6+60], %r59; ld.u32 %r1, [%d6+60];
    st.global.u32 [%d32], %r1;"""
    emulation = run_text(body, {"in": zeros(1), "out": zeros(256)}, before=_HEAP, block=64, grid=4)
    assert emulation.faults == ()
    assert emulation.arrays["out"].tolist() == list(range(256))


def test_what_one_thread_frees_another_one_does_not_use() -> None:
    body = f""".shared .align 8 .b8 slot[8]; {GLOBAL_THREAD} setp.ne.u32 %p1, %r52, 0; @%p1 bra MEET; {_allocate("%d5")} st.shared.u64 [slot], %d5;
    {_free("%d5")} MEET: bar.sync 0; ld.shared.u64 %d6, [slot]; ld.u32 %r1, [%d6+8]; st.global.u32 [%d32], %r1;"""
    emulation = run_text(body, {"in": zeros(1), "out": zeros(64)}, before=_HEAP, block=64)
    (fault,) = emulation.faults
    assert "in memory that was freed, byte 8 (24 bytes" in fault.message
    assert fault.count == 64
