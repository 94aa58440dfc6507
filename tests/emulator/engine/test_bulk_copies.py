"""Bulk copies, and barrier objects that count the bytes of transactions: what is wrong with them, and what traces have of them."""

import numpy as np
import pytest

from gpa_lsp.code.ptx.model import Space
from gpa_lsp.execution.emulator.model import FaultKind, TraceSettings
from tests.emulator.engine.running import run_text, zeros

_BEGIN = """.shared .align 16 .b8 held[2064]; mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 0; mov.u32 %r4, held; add.u32 %r3, %r4, 2048;
@%p1 mbarrier.init.shared.b64 [%r3], 1; bar.sync 0;
"""
_TELLS = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
_ARRIVE = "mbarrier.arrive.expect_tx.shared::cta.b64 %d5, [%r3], {};\n"
_DONE = "mbarrier.test_wait.parity.shared.b64 %p2, [%r3], 0; selp.u32 %r9, 1, 0, %p2; st.global.u32 [%d0], %r9;\n"


@pytest.mark.parametrize(
    ("steps", "is_done"),
    [
        (_ARRIVE.format(32), 0),
        (_ARRIVE.format(32) + f"{_TELLS} [%r4], [%d1], 16, [%r3];", 0),
        (_ARRIVE.format(32) + f"{_TELLS} [%r4], [%d1], 32, [%r3];", 1),
        (f"{_TELLS} [%r4], [%d1], 32, [%r3];\n" + _ARRIVE.format(32), 1),
        (f"mbarrier.expect_tx.relaxed.cta.shared.b64 [%r3], 8; {_ARRIVE.format(8)}mbarrier.complete_tx.relaxed.cta.shared.b64 [%r3], 16;", 1),
        (_ARRIVE.format(8) + "st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.u32 [%r4], {%r1, %r1}, [%r3];", 1),
        (f"{_TELLS} [%r4], [%d1], 32, [%r3];", 0),
    ],
)  # fmt: skip
def test_a_phase_ends_when_all_arrived_and_all_bytes_came(steps: str, is_done: int) -> None:
    body = f"{_BEGIN}@!%p1 bra END;\n{steps}\n{_DONE}END:"
    emulation = run_text(body, {"out": zeros(4), "in": np.arange(8, dtype=np.uint32)})
    assert emulation.faults == ()
    assert emulation.arrays["out"][0] == is_done


def test_pending_arrivals_are_counted() -> None:
    body = f"{_BEGIN}@!%p1 bra END; mbarrier.init.shared.b64 [%r3], 5; mbarrier.arrive.shared.b64 %d5, [%r3], 3;\n"
    emulation = run_text(
        body
        + "mbarrier.arrive.shared.b64 %d5, [%r3]; mbarrier.pending_count.b64 %r9, %d5; st.global.u32 [%d0], %r9; END:",
        {"out": zeros(1)},
    )
    assert emulation.arrays["out"].tolist() == [2]


@pytest.mark.parametrize(
    ("copy", "kind", "message"),
    [
        (f"{_TELLS} [%r4], [%d1 + 16], 128, [%r3];", FaultKind.OUT_OF_BOUNDS, "load of 16 bytes at"),
        (f"{_TELLS} [%r4 + 2048], [%d1], 32, [%r3];", FaultKind.OUT_OF_BOUNDS, "store of 16 bytes at byte 2,064: the block's shared memory has"),
        (f"{_TELLS} [%r4 + 8], [%d1], 32, [%r3];", FaultKind.MISALIGNED, "store of 16 bytes at byte 8: not a multiple of 16"),
        (f"{_TELLS} [%r4], [%d1], 24, [%r3];", FaultKind.MISALIGNED, "the bytes of a bulk copy are no multiple of 16"),
        ("cp.async.bulk.global.shared::cta.bulk_group [%d1 + 112], [%r4], 32;", FaultKind.OUT_OF_BOUNDS, "store of 16 bytes at"),
    ],
)  # fmt: skip
def test_faults_of_bulk_copies_are_named(copy: str, kind: FaultKind, message: str) -> None:
    emulation = run_text(f"{_BEGIN}@!%p1 bra END; {copy} END:", {"out": zeros(4), "in": zeros(32)})
    (fault,) = emulation.faults
    assert (fault.kind, fault.count, fault.message[: len(message)]) == (kind, 1, message)


def test_traces_have_requests_of_512_bytes() -> None:
    body = f"""{_BEGIN}@!%p1 bra END; {_ARRIVE.format(1040)}{_TELLS} [%r4], [%d1], 1040, [%r3];
    cp.async.bulk.global.shared::cta.bulk_group [%d0], [%r4], 512; cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; END:"""
    values = np.arange(260, dtype=np.uint32)
    emulation = run_text(body, {"out": zeros(128), "in": values}, trace=TraceSettings())
    assert emulation.arrays["out"].tolist() == values[:128].tolist()
    assert emulation.trace is not None
    accesses = emulation.trace.accesses
    rows = np.flatnonzero(accesses.space == Space.GLOBAL)
    assert [int(accesses.lane_mask[row]).bit_count() * int(accesses.bytes[row]) for row in rows] == [512, 512, 16, 512]


def test_bytes_are_added_element_by_element() -> None:
    body = f"""{_BEGIN}mul.lo.u32 %r5, %r1, 4; add.u32 %r6, %r4, %r5; st.shared.u32 [%r6], %r1; bar.sync 0;
    @%p1 cp.reduce.async.bulk.global.shared::cta.bulk_group.max.s32 [%d0], [%r4], 128;"""
    given = np.array([5, -7] * 16, np.int32)
    emulation = run_text(body, {"out": given})
    assert emulation.arrays["out"].tolist() == np.maximum(given, np.arange(32)).tolist()


def test_copies_by_tensor_maps_are_refused_and_nobody_waits_for_their_bytes() -> None:
    tensor = "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r4], [%d1, {%r1, %r1}], [%r3];"
    body = f"{_BEGIN}@%p1 {_ARRIVE.format(128)}@%p1 {tensor}\nWAIT: mbarrier.try_wait.parity.shared.b64 %p2, [%r3], 0; @!%p2 bra WAIT;"
    emulation = run_text(body, {"out": zeros(4), "in": zeros(32)})
    (fault,) = emulation.faults
    assert (fault.kind, fault.message.endswith("is not emulated (tensor maps)")) == (FaultKind.UNSUPPORTED, True)
