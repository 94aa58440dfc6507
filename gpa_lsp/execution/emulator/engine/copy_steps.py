"""``cp.async``: copies from global to shared memory, done at once."""

import numpy as np

from gpa_lsp.code.ptx.model import Address, Immediate, Register, Space
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.code.ptx.static_instructions import AccessKind
from gpa_lsp.execution.emulator.engine.accesses import Access
from gpa_lsp.execution.emulator.engine.atomic_steps import bind_copy_arrival
from gpa_lsp.execution.emulator.engine.binder import Binder, UnsupportedInstruction, read_as
from gpa_lsp.execution.emulator.engine.fragments import Fragment
from gpa_lsp.execution.emulator.engine.lane_steps import narrow_mask
from gpa_lsp.execution.emulator.engine.memory_steps import store_lanes
from gpa_lsp.execution.emulator.engine.resolving import bind_address, make_resolver
from gpa_lsp.execution.emulator.engine.values import U32, Value

_KEPT = np.array([0, 0xFF, 0xFFFF, 0xFFFFFF, 0xFFFFFFFF], np.uint32)  # Bits of a word of which so many bytes are copied


def bind_copy(binder: Binder) -> None:
    """``cp.async`` of 4, 8 or 16 bytes per lane, and what commits, arrives and waits (nothing: the copy is done).

    Raises:
        UnsupportedInstruction: bulk copies, tensor maps.
    """
    instruction = binder.instruction
    words = instruction.suffixes
    if words[:1] != ("async",) or "bulk" in words:
        raise UnsupportedInstruction
    if words[1:3] == ("mbarrier", "arrive"):
        bind_copy_arrival(binder)
        return
    if not {"commit_group", "wait_group", "wait_all"}.isdisjoint(words):
        binder.finish()
        return
    target, source, size = instruction.sources[:3]
    if not isinstance(size, Immediate) or size.value not in (4, 8, 16):
        raise UnsupportedInstruction("copy of this size")
    extra = [
        one for one in instruction.sources[3:4] if isinstance(one, Register | Immediate) and "cache_hint" not in words
    ]
    _bind_transfer(binder, target, source, int(size.value), extra[0] if extra else None)


def _bind_transfer(
    binder: Binder, target: object, source: object, size: int, limit: "Register | Immediate | None"
) -> None:
    if not isinstance(target, Address) or not isinstance(source, Address):
        raise UnsupportedInstruction("address of this kind")
    find_target, target_offset = bind_address(binder, target)
    find_source, source_offset = bind_address(binder, source)
    load = _make_access(binder, AccessKind.LOAD, Space.GLOBAL, size, source_offset)
    store = _make_access(binder, AccessKind.STORE, Space.SHARED, size, target_offset)
    resolve_load, resolve_store = make_resolver(binder, load), make_resolver(binder, store)
    kept = None
    if limit is not None:
        is_predicate = isinstance(limit, Register) and binder.layout.dtypes[limit.slot].kind == "b"
        kept = binder.read(limit, ScalarType.PRED if is_predicate else ScalarType.U32)
    guard, tracer = binder.guard, binder.machine.tracer

    def step(fragment: Fragment) -> None:
        mask = narrow_mask(fragment, guard)
        bytes_kept = None if kept is None else _read_limit(fragment, kept, size)
        wanted = mask
        if bytes_kept is not None:
            wanted = np.broadcast_to(bytes_kept > 0, (fragment.warps.lanes,)) & fragment.active()
            wanted = wanted if mask is None else wanted & mask
        address = find_source(fragment)
        ((_, (views, index, allowed, bad)),) = resolve_load(fragment, address, wanted)
        if tracer is not None:
            tracer.record(load, fragment, Space.GLOBAL, address, allowed if bad is None else allowed | bad)
        values = [view[index] if type(index) is int else view.take(index, mode="wrap") for view in views]
        if allowed is not None:
            values = [np.where(allowed, value, np.uint32(0)) for value in values]
        if bytes_kept is not None:
            values = [value & _KEPT[np.clip(bytes_kept - 4 * k, 0, 4)] for k, value in enumerate(values)]
        ((_, (views, index, allowed, _)),) = resolve_store(fragment, find_target(fragment), mask)
        if fragment.batch.checks is not None:
            fragment.batch.checks.check_store(store, fragment, index, allowed)
        for view, value in zip(views, values, strict=True):
            store_lanes(view, index, value, allowed)

    binder.steps.append(step)
    binder.finish()


def _make_access(binder: Binder, kind: AccessKind, space: Space, size: int, offset: int) -> Access:
    return Access(instruction=binder.static, kind=kind, space=space, dtype=U32, elements=size // 4, offset_bytes=offset)


def _read_limit(fragment: Fragment, slot: int, size: int) -> Value:
    """Bytes of the source that are copied: given as a number, or as a predicate that says to copy none."""
    value = fragment.registers[slot]
    if value.dtype.kind == "b":
        return np.where(value, 0, size)
    return np.minimum(read_as(fragment, slot, U32).astype(np.int64), size)
