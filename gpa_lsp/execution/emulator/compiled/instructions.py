"""Lowering of instructions, :func:`lower_instruction`, of arguments and results of calls, and of what completes transactions of barrier objects."""

from collections.abc import Callable
from typing import Any

import numpy as np
from msgspec.structs import replace

from gpa_lsp.code.ptx.model import Address, Immediate, Operand, PtxInstruction, Register, Space, Symbol
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.code.ptx.static_instructions import AccessKind
from gpa_lsp.execution.emulator.compiled.lane_operations import LaneFunction, list_steps
from gpa_lsp.execution.emulator.compiled.lowering import (
    OWN_RANK,
    FrameLayout,
    Lowering,
    NotLowered,
    Operation,
    Report,
    pad,
)
from gpa_lsp.execution.emulator.compiled.matrix_instructions import (
    lower_group_product,
    lower_matrix_move,
    lower_product,
)
from gpa_lsp.execution.emulator.compiled.model import ATOMIC, BULK, FUNCTIONS
from gpa_lsp.execution.emulator.compiled.texture_instructions import lower_query, lower_read, lower_surface
from gpa_lsp.execution.emulator.compiled.transfers import COMPLETE, COUNT_MASK, PENDING_SHIFT
from gpa_lsp.execution.emulator.engine.fragments import BoundFunction, CallEdge
from gpa_lsp.execution.emulator.engine.functions import find_space
from gpa_lsp.execution.emulator.engine.layout import Piece
from gpa_lsp.execution.emulator.model import FaultKind
from gpa_lsp.execution.emulator.semantics.find import find_change, find_meaning
from gpa_lsp.execution.emulator.semantics.model import (
    LOCAL_WINDOW,
    LONGEST_VECTOR,
    RANK_SHIFT,
    RANKS_MASK,
    SHARED_WINDOW,
    WINDOW_BYTES,
    flatten,
)
from gpa_lsp.execution.emulator.semantics.words import ADD_FLOAT

Lower = Callable[[Lowering], None]


def lower_instruction(lowering: Lowering, instruction: PtxInstruction) -> list[Operation]:
    """The operations of an instruction that ends no segment.

    Raises:
        NotLowered: it is not emulated.
    """
    if ScalarType.B128 in instruction.types:
        raise NotLowered("values of 128 bits")
    lowering.begin(instruction)
    meaning, lower = find_meaning(instruction), _find_lower(instruction)
    if meaning is not None:
        lowering.apply(meaning)
    elif lower is not None:
        lower(lowering)
    else:
        raise NotLowered
    operations = lowering.finish()
    if not operations and instruction.guard is not None:  # it is counted at least
        lowering.emit(LaneFunction(8, "u8(0)"), result=-1)
        operations = lowering.finish()
    return operations


_CHANGES = {
    "add": 0, "and": 1, "or": 2, "xor": 3, "exch": 4, "cas": 5, "inc": 6, "dec": 7, "min": 8, "max": 9, "init": 13, "arrive": 14, "arrive_drop": 15,
    "expect_tx": 16, "complete_tx": 17,
}  # fmt: skip
_SIGNED = 2  # How far the signed forms of min and max lie behind the others


def _lower_load(lowering: Lowering) -> None:
    """``ld``. Parameters of functions, and what they return, are registers."""
    instruction = lowering.instruction
    kind, operand = instruction.types[-1], instruction.sources[0]
    results = flatten(instruction.destinations) or [None]
    parameter = _find_parameter(lowering, operand)
    if parameter is not None:
        size = kind.natural_dtype.itemsize
        for number, result in enumerate(results):
            lowering.give(lowering.find_piece(parameter, number * size, size), result, kind)
        return
    width = _find_width(lowering, results, kind)
    places = [-1 if one is None else lowering.place_exactly(one, width) for one in results]
    fields = lowering.describe_access(operand, kind, len(results))
    lowering.load(fields, places, is_signed=kind.is_signed, register_bytes=width)


def _find_width(lowering: Lowering, elements: list[Operand | None], kind: ScalarType) -> int:
    """Bytes of the registers of a vector, all the same, which are no fewer than those of an element."""
    widths = {lowering.width(one) for one in elements if isinstance(one, Register)} or {kind.natural_dtype.itemsize}
    if len(widths) > 1 or min(widths) < kind.bytes:
        raise NotLowered("registers of this width")
    return max(widths)


def _find_parameter(lowering: Lowering, operand: Operand) -> Symbol | None:
    """The parameter of a called function that an instruction accesses; None for memory and the kernel's own parameters."""
    if find_space(lowering.instruction.suffixes) is not Space.PARAM or not isinstance(operand, Address):
        return None
    base = operand.base
    if not isinstance(base, Symbol) or (lowering.is_kernel and lowering.machine.is_kernel_parameter(base.name)):
        return None
    return Symbol(base.name, base.offset_bytes + operand.offset_bytes)


def _lower_store(lowering: Lowering) -> None:
    """``st``. Arguments and results of functions are registers. Of lanes that store to one address, the highest wins."""
    instruction = lowering.instruction
    if "bulk" in instruction.suffixes:
        raise NotLowered
    kind = instruction.types[-1]
    values = flatten(instruction.sources[1:2])
    size = kind.natural_dtype.itemsize
    parameter = _find_parameter(lowering, instruction.sources[0])
    if parameter is not None:
        for number, value in enumerate(values):
            lowering.move(lowering.read(value, kind), lowering.find_piece(parameter, number * size, size), size)
        return
    width = _find_width(lowering, values, kind)
    places = [
        lowering.place_exactly(one, width) if isinstance(one, Register) else lowering.read(one, kind) for one in values
    ]
    fields = lowering.describe_access(instruction.sources[0], kind, len(values))
    lowering.store(fields, places, is_float=kind.storage_dtype.kind == "f", register_bytes=width)
    if BULK_BYTES in instruction.suffixes:
        _complete(lowering, len(values) * size)


def _complete(lowering: Lowering, size: int) -> None:
    """Tell the barrier object of ``st.async`` or ``red.async`` of so many bytes."""
    complete(
        lowering, find_address(lowering, lowering.instruction.sources[2]), lowering.frames.constant(np.uint64(size))
    )


def _lower_change(lowering: Lowering) -> None:
    """``atom``, ``red``, and what arrives at barriers."""
    change = find_change(lowering.instruction)
    if change is None:
        raise NotLowered
    parts = [len(flatten((operand,))) for operand in change.operands]
    if len({*parts}) > 1 or (parts[0] > 1 and len(parts) > 1):
        raise NotLowered("operands of this number")
    kind, results = change.type, flatten(lowering.instruction.destinations)
    if not _counts_bytes(lowering) and (change.expected is not None or change.name in ("expect_tx", "complete_tx")):
        if change.expected is None:
            return
        change = replace(change, expected=None)
    if change.meaning is not None:
        (step,) = list_steps(change.meaning)
        combination = FUNCTIONS + lowering.number(step.function)
    elif kind.is_float:
        combination = ADD_FLOAT
    else:
        combination = _CHANGES[change.name] + (_SIGNED if kind.is_signed else 0)
    if lowering.instruction.suffixes[:1] == ("reduce",):  # cp.reduce.async.bulk
        lower_bulk(lowering, {"combination": combination, "elements": 16 // kind.bytes, "element_bytes": kind.bytes})
        return
    values, *others = ([lowering.read(one, kind) for one in flatten((operand,))] for operand in change.operands)
    if change.expected is not None:
        more = lowering.read(change.expected, ScalarType.U32)
        values = [lowering.compute(64, f"a(u64) | u64(b(u32)) << {PENDING_SHIFT}", a=values[0], b=more)]
    found = [-1 if one is None else lowering.place_exactly(one, kind.bytes) for one in results]
    if len(found) not in (0, len(values)):
        raise NotLowered("operands of this number")
    places = values + [-1] * (LONGEST_VECTOR - len(values)) + found
    is_told = BULK_BYTES in lowering.instruction.suffixes
    fields = lowering.describe_access(lowering.instruction.sources[0], kind, len(values)) | {
        "is_strong": 1,
        "is_hidden": int(is_told),
    }
    lowering.emit(
        ATOMIC,
        **fields,
        kind=int(AccessKind.ATOMIC if max(found, default=-1) >= 0 else AccessKind.REDUCTION),
        combination=combination,
        c=others[0][0] if others else 0,
        register_bytes=kind.bytes,
        places=pad(places),
    )
    if is_told:
        _complete(lowering, kind.bytes)


def _counts_bytes(lowering: Lowering) -> bool:
    """Whether all that completes transactions is emulated."""
    functions = (lowering.machine.module.functions[name] for name in lowering.machine.first_statics)
    return not any(is_counted_elsewhere(one) for function in functions for one in function.instructions)


def _lower_wait(lowering: Lowering) -> None:
    """``mbarrier.test_wait`` and ``.try_wait``: whether the phase of a token, or of a parity, has ended."""
    instruction = lowering.instruction
    word = lowering.take_scratch()
    fields = lowering.describe_access(instruction.sources[0], ScalarType.U64, 1)
    lowering.load(fields | {"is_strong": 1, "is_hidden": 1}, [word])
    asked, phase = "b(u64)", "b(u64) >> 63"
    if "parity" in instruction.suffixes:
        asked, phase = "b(u32)", "u64(b(u32) & 1)"
    token = lowering.read(instruction.sources[1], ScalarType.U32 if "u32" in asked else ScalarType.U64)
    done = lowering.compute(8, f"u8(a(u64) >> 63 != {phase})", a=word, b=token)
    lowering.give(done, flatten(instruction.destinations)[0], ScalarType.PRED)


def _lower_copy(lowering: Lowering) -> None:
    """``cp.async`` of 4, 8 or 16 bytes per lane: a load, and a store of as many bytes of it as the instruction says, then zeros.

    In traces it is a load. What commits and waits does nothing: the copy is done; nor does an arrival without ``.noinc``, which is expected in
    addition to the others.
    """
    names = lowering.instruction.suffixes
    if "bulk" in names and not {"commit_group", "wait_group", "prefetch"}.isdisjoint(names):
        return
    if "tensor" in names:
        raise NotLowered("tensor maps")
    if "bulk" in names:
        lower_bulk(lowering, {})
        return
    if names[:1] != ("async",):
        raise NotLowered
    if not {"mbarrier", "commit_group", "wait_group", "wait_all"}.isdisjoint(names):
        return
    target, source, size, *more = lowering.instruction.sources
    if not isinstance(size, Immediate) or size.value not in (4, 8, 16):
        raise NotLowered("copy of this size")
    words = int(size.value) // 4
    limit = next((one for one in more if isinstance(one, Register | Immediate) and "cache_hint" not in names), None)
    held = [lowering.take_scratch() for _ in range(words)]
    reading: dict[str, Any] = {}
    kept = None
    if limit is not None:
        kept = _find_kept(lowering, limit, 4 * words)
        reads = lowering.compute(8, "u8(a(u32) != 0)", a=kept)
        reading = {"is_guarded": False, **lowering.narrow(reads)}
    fields = lowering.describe_access(source, ScalarType.U32, words)
    lowering.load(fields | {"space": int(Space.GLOBAL), "is_strong": 0}, held, **reading)
    if kept is not None:
        for number, place in enumerate(held):
            left = f"(b(u32) - {4 * number})"
            whole, part = f"b(u32) >= {4 * number + 4}", f"b(u32) > {4 * number}"
            value = f"a(u32) if {whole} else a(u32) & ((u32(1) << 8 * {left}) - 1) if {part} else u32(0)"
            lowering.emit(LaneFunction(32, value), is_guarded=False, a=place, b=kept, result=place, result_bytes=4)
    fields = lowering.describe_access(target, ScalarType.U32, words)
    lowering.store(fields | {"space": int(Space.SHARED), "is_strong": 0, "is_hidden": 1}, held)


def _find_kept(lowering: Lowering, limit: Operand, size: int) -> int:
    """The place of how many bytes of the source are copied: a number, or a predicate that says to copy none."""
    if isinstance(limit, Register) and lowering.frames.dtype(limit.slot).kind == "b":
        return lowering.compute(32, f"u32(0) if a(u8) != 0 else u32({size})", a=lowering.read(limit, ScalarType.PRED))
    return lowering.compute(32, f"a(u32) if a(u32) < {size} else u32({size})", a=lowering.read(limit, ScalarType.U32))


def _lower_cluster_address(lowering: Lowering) -> None:
    """``mapa``: the address in another block of the cluster; ``getctarank``: that block of an address."""
    instruction, kind = lowering.instruction, lowering.instruction.types[-1]
    bits, place = 8 * kind.bytes, lowering.read(instruction.sources[0], kind)
    if instruction.opcode == "mapa":
        rank = lowering.read(instruction.sources[1], ScalarType.U32)
        mapped = f"u{bits}(b(u32) + 1) << {RANK_SHIFT}"
        if lowering.machine.geometry.cluster_blocks == 1:
            mapped = f"(u{bits}(0) if b(u32) == 0 else {mapped})"
        value = f"a(u{bits}) & {~RANKS_MASK % (1 << bits)} | {mapped}"
    else:
        rank, found = lowering.read(OWN_RANK, ScalarType.U32), f"(u32(a(u{bits})) >> {RANK_SHIFT})"
        bits, kind, value = 32, ScalarType.U32, f"{found} - 1 if {found} != 0 else b(u32)"
    lowering.give(lowering.compute(bits, value, a=place, b=rank), flatten(instruction.destinations)[0], kind)


_WINDOWS = {"shared": SHARED_WINDOW, "local": LOCAL_WINDOW}


def _lower_space_test(lowering: Lowering) -> None:
    """``isspacep``: which window an address lies in. Everything in no other counts as global, as on the hardware."""
    instruction = lowering.instruction
    space = next((word for word in instruction.suffixes if word.partition("::")[0].isalpha()), "").partition("::")[0]
    address = lowering.read(instruction.sources[0], ScalarType.U64)
    fixed = "lanes_of(are_fixed(machine, a(u64), mask))"
    holds = f"u8({fixed})"
    own = {}
    if space == "shared" and "shared::cluster" not in instruction.suffixes:
        own = {"b": lowering.read(OWN_RANK, ScalarType.U32)}
        rank = f"(u32(a(u64)) >> {RANK_SHIFT})"
        holds = f"u8(a(u64) - {SHARED_WINDOW} < {WINDOW_BYTES}) & (u8({rank} == 0) | u8({rank} == b(u32) + 1))"
    elif space in _WINDOWS:
        holds = f"u8(a(u64) - {_WINDOWS[space]} < {WINDOW_BYTES})"
    elif space == "global":
        extent = LOCAL_WINDOW - SHARED_WINDOW + WINDOW_BYTES
        holds = f"u8(a(u64) - {SHARED_WINDOW} >= {extent}) & u8(lanes_of(~are_fixed(machine, a(u64), mask)))"
    found = lowering.compute(8, holds, exchanges=space not in _WINDOWS, a=address, **own)
    lowering.give(found, flatten(instruction.destinations)[0], ScalarType.PRED)


def _lower_barrier(lowering: Lowering) -> None:
    """``mbarrier`` objects: words of memory, with expected arrivals, pending ones, and the phase in the highest bit."""
    match lowering.instruction.suffixes[:1]:
        case ("test_wait",) | ("try_wait",):
            _lower_wait(lowering)
        case ("inval",):
            pass
        case ("pending_count",):
            pending = f"u32(a(u64) >> {PENDING_SHIFT} & {COUNT_MASK})"
            token = lowering.read(lowering.instruction.sources[0], ScalarType.U64)
            lowering.give(
                lowering.compute(32, pending, a=token), flatten(lowering.instruction.destinations)[0], ScalarType.U32
            )
        case _:
            raise NotLowered


def _lower_policy(lowering: Lowering) -> None:
    """``createpolicy``: what it gives is only handed to hints."""
    lowering.give(lowering.frames.constant(np.uint64(0)), flatten(lowering.instruction.destinations)[0], ScalarType.U64)


def _lower_nothing(_: Lowering) -> None:
    """Hints, fences and sleeping: memory is in order already."""


_LOWER: dict[str, Lower] = {
    "ld": _lower_load, "ldu": _lower_load, "st": _lower_store, "cp": _lower_copy, "mbarrier": _lower_barrier, "isspacep": _lower_space_test,
    "createpolicy": _lower_policy,
    "mapa": _lower_cluster_address, "getctarank": _lower_cluster_address,
    "tex": lower_read, "tld4": lower_read, "suld": lower_surface, "sust": lower_surface, "txq": lower_query, "suq": lower_query,
    "ldmatrix": lower_matrix_move, "stmatrix": lower_matrix_move, "mma": lower_product, "wmma": lower_product, "wgmma": lower_group_product,
}  # fmt: skip
_LOWER |= dict.fromkeys(
    ("membar", "fence", "nanosleep", "prefetch", "prefetchu", "applypriority", "discard", "griddepcontrol", "pmevent",
     "brkpt", "setmaxnreg"),
    _lower_nothing,
)  # fmt: skip


def _find_lower(instruction: PtxInstruction) -> Lower | None:
    """The lowering of an instruction that is not computed lane by lane; None for unknown ones."""
    if find_change(instruction) is not None:
        return _lower_change
    if instruction.opcode == "wmma" and instruction.suffixes[:1] in (("load",), ("store",)):
        return lower_matrix_move
    return _LOWER.get(instruction.opcode)


# Functions: what lanes take into them, and back


def lower_entry(lowering: Lowering, edge: CallEdge, callee: BoundFunction, frames: FrameLayout) -> list[Operation]:
    """Hand arguments over to a function, whose registers lie behind those of its caller; its other registers are zeros.

    Raises:
        NotLowered: an argument has no place.
    """
    behind, operations = lowering.frames.frame_bytes, []
    given = [{piece: lowering.frames.find(slot) for piece, slot in parts.items()} for parts in edge.arguments]
    written: set[int] = set()
    for parts, wanted in zip(given, callee.parameters, strict=False):
        for piece, slot in wanted.items():
            operations += _pass(lowering, edge, parts, piece, _behind(frames, slot, behind))
            written.add(slot)
    for slot in callee.segments[0].live_in:
        if slot not in written:
            size = callee.dtypes[slot].itemsize
            operations += _pass(lowering, edge, {}, (0, size), _behind(frames, slot, behind))
    return operations


def lower_landing(lowering: Lowering, edge: CallEdge, callee: BoundFunction, frames: FrameLayout) -> list[Operation]:
    """Take what a function returns.

    Raises:
        NotLowered: it has no place.
    """
    behind, operations = lowering.frames.frame_bytes, []
    given = [{piece: _behind(frames, slot, behind) for piece, slot in parts.items()} for parts in callee.returns]
    for parts, wanted in zip(given, edge.following.returned, strict=False):
        for piece, slot in wanted.items():
            operations += _pass(lowering, edge, parts, piece, lowering.frames.find(slot))
    return operations


def _behind(frames: FrameLayout, slot: int, behind: int) -> int | None:
    place = frames.find(slot)
    return None if place is None or place < 0 else behind + place


def _pass(
    lowering: Lowering, edge: CallEdge, parts: dict[Piece, int | None], piece: Piece, result: int | None
) -> list[Operation]:
    """Give a part of a parameter, of other parts."""
    lowering.begin_call(edge.static)
    known = {one: place for one, place in parts.items() if place is not None}
    if result is None or len(known) < len(parts):
        raise NotLowered
    lowering.move(lowering.assemble(known, piece), result, piece[1])
    return lowering.finish()


BULK_BYTES = "mbarrier::complete_tx::bytes"
_UNKNOWN = frozenset({"tensor", "cp_mask", "ignore_oob", "im2col"})
_NO_MULTIPLE = "the bytes of a bulk copy are no multiple of 16"


def is_counted_elsewhere(instruction: PtxInstruction) -> bool:
    """Whether an instruction completes transactions, and is not emulated: then none are counted, or others would wait forever."""
    return instruction.opcode in ("cp", "clusterlaunchcontrol") and not _UNKNOWN.union(("try_cancel",)).isdisjoint(
        instruction.suffixes
    )


def find_address(lowering: Lowering, operand: Operand) -> int:
    """The place of an address, as 64 bits."""
    fields = lowering.describe_access(operand, ScalarType.U64, 1)
    value = f"u64(a(u{8 * fields['address_bytes']})) + {fields['literal'] % (1 << 64)}"
    return lowering.compute(64, value, a=fields["a"])


def complete(lowering: Lowering, barrier: int, size: int, **guard: Any) -> None:
    """Complete so many bytes of the transactions that a barrier object in shared memory expects.

    Args:
        barrier: place of its address, as 64 bits.
        size: place of the number, as 64 bits.
        guard: in place of the instruction's.
    """
    lowering.emit(
        ATOMIC,
        **({"is_guarded": False} if guard else {}),
        a=barrier,
        address_bytes=8,
        space=int(Space.SHARED),
        elements=1,
        element_bytes=8,
        register_bytes=8,
        is_strong=1,
        is_hidden=1,
        kind=int(AccessKind.REDUCTION),
        combination=COMPLETE,
        places=pad([size]),
        **guard,
    )


def lower_bulk(lowering: Lowering, change: dict[str, int]) -> None:
    """Bulk copies; of ``multicast::cluster``, one to each block of the mask, where each block's barrier is told.

    Args:
        change: ``combination`` of a reduction, and ``elements`` of so many ``element_bytes`` in 16 bytes; empty for copies.

    Raises:
        NotLowered: it copies by a tensor map, or in a form that is not known.
    """
    instruction = lowering.instruction
    words, (target, source, size, *more) = instruction.suffixes, instruction.sources
    spaces = [find_space((word,)) for word in words if word.partition("::")[0] in ("global", "shared")]
    if len(spaces) != 2:
        raise NotLowered
    count = lowering.read(size, ScalarType.U32)
    lowering.check(lowering.compute(8, "u8((a(u32) & 15) == 0)", a=count), Report(FaultKind.MISALIGNED, _NO_MULTIPLE))
    bytes_ = lowering.compute(64, "u64(a(u32) & 0xFFFFFFF0)", a=count)
    fields: dict[str, Any] = {
        "a": find_address(lowering, source), "b": find_address(lowering, target), "c": bytes_, "space": int(spaces[1]),
        "other_space": int(spaces[0]), "elements": 2, "element_bytes": 8, "combination": -1, **change,
        "kind": int(AccessKind.STORE if spaces[0] is Space.GLOBAL else AccessKind.LOAD),
    }  # fmt: skip
    barrier = find_address(lowering, more[0]) if BULK_BYTES in words else None
    if "multicast::cluster" not in words:
        lowering.emit(BULK, **fields)
        if barrier is not None:
            complete(lowering, barrier, bytes_)
        return
    if barrier is None:
        raise NotLowered
    asked = lowering.narrow(lowering.frames.constant(np.uint8(1)))["guard"]
    blocks = lowering.compute(
        32, "u32(a(u16)) if b(u8) != 0 else u32(0)", a=lowering.read(more[1], ScalarType.U16), b=asked
    )
    chosen, others, to, told = (lowering.take_scratch() for _ in range(4))
    cluster = lowering.machine.geometry.cluster_blocks
    for rank in range(cluster):
        there = f"a(u64) & {~RANKS_MASK % (1 << 64)} | {(rank + 1 if cluster > 1 else 0) << RANK_SHIFT}"
        is_first = f"u8((a(u32) & {(1 << rank) - 1}) == 0)"
        for bits, value, place, of in (
            (8, f"u8(a(u32) >> {rank} & 1)", chosen, blocks),
            (8, f"u8(a(u32) >> {rank} & 1) & ({is_first} ^ 1)", others, blocks),
            (64, there, to, fields["b"]),
            (64, there, told, barrier),
        ):
            lowering.emit(LaneFunction(bits, value), is_guarded=False, a=of, result=place, result_bytes=bits // 8)
        # memory is read once, for the first of the blocks
        lowering.emit(BULK, is_guarded=False, guard=others, **{**fields, "b": to, "is_hidden": 1})
        lowering.emit(
            LaneFunction(8, "a(u8) ^ b(u8)"), is_guarded=False, a=chosen, b=others, result=others, result_bytes=1
        )
        lowering.emit(BULK, is_guarded=False, guard=others, **{**fields, "b": to})
        complete(lowering, told, bytes_, guard=chosen)
