"""``ldmatrix``, ``stmatrix``, ``wmma.load`` and ``wmma.store``: matrices between memory and the registers of a warp."""

from typing import Any

import numpy as np

from gpa_lsp.emulator.engine.accesses import Access
from gpa_lsp.emulator.engine.binder import Binder, UnsupportedInstruction, flatten, read_as
from gpa_lsp.emulator.engine.fragments import Fragment
from gpa_lsp.emulator.engine.lane_steps import guarded_mask
from gpa_lsp.emulator.engine.memory_steps import Resolver, bind_address, find_space, make_resolver, store_lanes
from gpa_lsp.emulator.engine.values import U64, Value
from gpa_lsp.emulator.operations.matrix_addresses import MatrixAccess, MatrixPiece, matrix_addresses
from gpa_lsp.emulator.ptx.model import Immediate, PtxInstruction, Space
from gpa_lsp.emulator.ptx.scalar_types import ScalarType
from gpa_lsp.emulator.trace import AccessKind


def is_matrix_move(instruction: PtxInstruction) -> bool:
    """Whether an instruction moves a matrix."""
    if instruction.opcode == "wmma":
        return instruction.suffixes[:1] in (("load",), ("store",))
    return instruction.opcode in ("ldmatrix", "stmatrix")


def bind_matrix_move(binder: Binder) -> None:
    """Move each piece of each lane's registers.

    Raises:
        UnsupportedInstruction: a shape or type that is not known.
    """
    instruction = binder.instruction
    moved = matrix_addresses(instruction)
    if moved is None:
        raise UnsupportedInstruction
    is_store = instruction.opcode == "stmatrix" or "store" in instruction.suffixes
    address = instruction.sources[0]
    others = list(instruction.sources[1:])
    vector = flatten((others.pop(0),)) if is_store else flatten(instruction.destinations)
    stride = binder.read(others[0] if others else Immediate(moved.default_stride_elements), ScalarType.U32)
    find, offset = bind_address(binder, address)
    kind = AccessKind.STORE if is_store else AccessKind.LOAD
    pieces: list[tuple[MatrixPiece, Access, Resolver]] = []
    for piece in moved.pieces:
        access = Access(
            instruction=binder.static,
            kind=kind,
            space=find_space(instruction.suffixes),
            dtype=np.dtype(f"u{piece.size_bytes}"),
            offset_bytes=0,
        )
        pieces.append((piece, access, make_resolver(binder, access)))
    if len(vector) != len(moved.register_types):
        raise UnsupportedInstruction("vector of this length")
    if is_store:
        slots = [binder.read(one, kind) for one, kind in zip(vector, moved.register_types, strict=True)]
    else:
        slots = [binder.write(one, kind) for one, kind in zip(vector, moved.register_types, strict=True)]
    guard = binder.guard

    def step(fragment: Fragment) -> None:
        mask = guarded_mask(fragment, guard)
        base = np.broadcast_to(
            find(fragment).astype(np.uint64) + np.uint64(offset % (1 << 64)), (fragment.warps.lanes,)
        )
        steps = read_as(fragment, stride, np.dtype(np.uint32)).astype(np.int64)
        _trace_rows(binder, fragment, moved, pieces, base, mask)
        if is_store:
            _store_pieces(binder, fragment, pieces, slots, moved, base, steps, mask)
        else:
            _load_pieces(binder, fragment, pieces, slots, moved, base, steps, mask)

    binder.steps.append(step)
    binder.finish()


def _find_addresses(fragment: Fragment, piece: MatrixPiece, base: Value, steps: Value) -> Value:
    """uint64[n], where each lane's piece stands."""
    rows = base.reshape(-1, 32)[:, piece.address_lane].view(np.int64) + piece.offset_bytes
    strides = np.broadcast_to(steps, (fragment.warps.lanes,)).reshape(-1, 32)
    return np.ascontiguousarray((rows + strides * piece.stride_bits // 8).reshape(-1)).view(U64)


def _load_pieces(
    binder: Binder,
    fragment: Fragment,
    pieces: list[tuple[MatrixPiece, Access, Resolver]],
    slots: list[int],
    moved: MatrixAccess,
    base: Value,
    steps: Value,
    mask: Value,
) -> None:
    lanes = fragment.warps.lanes
    out = [np.zeros(lanes, kind.storage_dtype if kind.natural_dtype.kind == "u" else np.dtype(f"u{kind.bytes}"))
           for kind in moved.register_types]  # fmt: skip
    for piece, access, resolve in pieces:
        addresses = _find_addresses(fragment, piece, base, steps)
        for space, (views, index, allowed, bad) in resolve(fragment, addresses, mask):
            _observe(binder, fragment, access, space, addresses, index, allowed, bad, moved)
            value = views[0][index] if type(index) is int else views[0].take(index, mode="wrap")
            if allowed is not None:
                value = np.where(allowed, value, access.dtype.type(0))
            dtype = out[piece.register].dtype
            out[piece.register] |= np.asarray(value).astype(dtype) << dtype.type(piece.shift_bits)
    for slot, value, kind in zip(slots, out, moved.register_types, strict=True):
        fragment.registers[slot] = value.view(kind.natural_dtype)


def _store_pieces(
    binder: Binder,
    fragment: Fragment,
    pieces: list[tuple[MatrixPiece, Access, Resolver]],
    slots: list[int],
    moved: MatrixAccess,
    base: Value,
    steps: Value,
    mask: Value,
) -> None:
    for piece, access, resolve in pieces:
        addresses = _find_addresses(fragment, piece, base, steps)
        kind = moved.register_types[piece.register]
        bits = read_as(fragment, slots[piece.register], np.dtype(f"u{kind.bytes}"))
        value = (bits >> bits.dtype.type(piece.shift_bits)).astype(access.dtype)
        for space, (views, index, allowed, bad) in resolve(fragment, addresses, mask):
            _observe(binder, fragment, access, space, addresses, index, allowed, bad, moved)
            store_lanes(views[0], index, value, allowed)


def _observe(
    binder: Binder,
    fragment: Fragment,
    access: Access,
    space: Any,
    addresses: Value,
    index: Any,
    allowed: Value,
    bad: Value,
    moved: MatrixAccess,
) -> None:
    """Check and record a piece; rows are recorded as a whole elsewhere."""
    checks = fragment.batch.checks
    if checks is not None and space is Space.SHARED:
        check = checks.check_store if access.kind is AccessKind.STORE else checks.check_load
        check(access, fragment, index, allowed)
    tracer = binder.machine.tracer
    if tracer is not None and not moved.row_bytes:
        tracer.record(access, fragment, space, addresses, allowed if bad is None else allowed | bad)


def _trace_rows(
    binder: Binder,
    fragment: Fragment,
    moved: MatrixAccess,
    pieces: list[tuple[MatrixPiece, Access, Resolver]],
    base: Value,
    mask: Value,
) -> None:
    """Record the rows of ``ldmatrix`` and ``stmatrix``, at the lanes that give their addresses."""
    tracer = binder.machine.tracer
    if tracer is None or not moved.row_bytes:
        return
    access = pieces[0][1]
    giving = mask & np.broadcast_to(fragment.warps.column("laneid") < moved.address_lanes, mask.shape)
    if giving.any():
        space = Space.SHARED if access.space is Space.GENERIC else access.space
        tracer.record_addresses(access.instruction, fragment.warps, space, moved.row_bytes, base, giving)
