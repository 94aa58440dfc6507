"""``ldmatrix``, ``stmatrix``, ``wmma.load`` and ``wmma.store``: matrices between memory and the registers of a warp."""

from typing import Any

import numpy as np
from msgspec import Struct

from gpa_lsp.code.ptx.model import Immediate, PtxInstruction, Space
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.code.ptx.static_instructions import AccessKind
from gpa_lsp.execution.emulator.engine.accesses import Access, Place
from gpa_lsp.execution.emulator.engine.binder import Binder, UnsupportedInstruction, flatten, read_as
from gpa_lsp.execution.emulator.engine.fragments import Fragment
from gpa_lsp.execution.emulator.engine.lane_steps import guarded_mask
from gpa_lsp.execution.emulator.engine.memory_steps import store_lanes
from gpa_lsp.execution.emulator.engine.resolving import Finder, Resolver, bind_address, find_space, make_resolver
from gpa_lsp.execution.emulator.engine.tracing import WINDOWS, Tracer
from gpa_lsp.execution.emulator.engine.values import U32, U64, Value
from gpa_lsp.execution.emulator.operations.matrix_addresses import (
    MatrixAccess,
    MatrixPiece,
    MatrixRequest,
    matrix_addresses,
)
from gpa_lsp.foundation.records import ColumnRecord


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
    layout = matrix_addresses(instruction)
    if layout is None:
        raise UnsupportedInstruction
    is_store = instruction.opcode == "stmatrix" or "store" in instruction.suffixes
    others = list(instruction.sources[1:])
    vector = flatten((others.pop(0),)) if is_store else flatten(instruction.destinations)
    if len(vector) != len(layout.register_types):
        raise UnsupportedInstruction("vector of this length")
    stride = binder.read(others[0] if others else Immediate(layout.default_stride_elements), ScalarType.U32)
    find, offset = bind_address(binder, instruction.sources[0])
    bind = binder.read if is_store else binder.write
    names_shared = find_space(instruction.suffixes) is Space.SHARED
    move = _MatrixMove(
        layout=layout,
        pieces=_bind_pieces(binder, layout, AccessKind.STORE if is_store else AccessKind.LOAD),
        slots=[bind(one, kind) for one, kind in zip(vector, layout.register_types, strict=True)],
        stride=stride,
        find=find,
        offset=np.uint64(offset % (1 << 64)),
        guard=binder.guard,
        tracer=binder.machine.tracer,
        requests=layout.shared_requests if names_shared and layout.shared_requests else layout.requests,
    )
    binder.steps.append(move.store if is_store else move.load)
    binder.finish()


class _Piece(Struct, frozen=True):
    """A piece of a lane's registers with the access that moves it."""

    where: MatrixPiece
    access: Access
    resolve: Resolver


def _bind_pieces(binder: Binder, layout: MatrixAccess, kind: AccessKind) -> list[_Piece]:
    space = find_space(binder.instruction.suffixes)
    pieces = []
    for piece in layout.pieces:
        dtype = np.dtype(f"u{piece.size_bytes}")
        access = Access(instruction=binder.static, kind=kind, space=space, dtype=dtype)
        pieces.append(_Piece(piece, access, make_resolver(binder, access)))
    return pieces


class _MatrixMove(ColumnRecord, frozen=True, kw_only=True):
    """One instruction."""

    layout: MatrixAccess  # what it moves
    pieces: list[_Piece]  # of all registers
    slots: list[int]  # of the registers
    stride: int  # slot of the stride in elements
    find: Finder  # gives the addresses
    offset: np.uint64  # added to them
    guard: int | None  # slot of its guard; None without one
    tracer: Tracer | None  # None when nothing is recorded
    # what is recorded: the accesses the hardware makes. Those of ``ldmatrix`` and ``stmatrix`` are its rows.
    requests: tuple[MatrixRequest, ...]

    def load(self, fragment: Fragment) -> None:
        """Read all registers."""
        lanes, types = fragment.warps.lanes, self.layout.register_types
        mask, base = self._begin(fragment)
        out = [np.zeros(lanes, np.dtype(f"u{kind.bytes}")) for kind in types]
        for piece in self.pieces:
            where, dtype = piece.where, out[piece.where.register].dtype
            addresses = self._find_addresses(fragment, where, base)
            for space, place in piece.resolve(fragment, addresses, mask):
                self._observe(fragment, piece, space, place, base)
                views, index, allowed, _ = place
                value = views[0][index] if type(index) is int else views[0].take(index, mode="wrap")
                if allowed is not None:
                    value = np.where(allowed, value, piece.access.dtype.type(0))
                out[where.register] |= np.asarray(value).astype(dtype) << dtype.type(where.shift_bits)
        for slot, bits, kind in zip(self.slots, out, types, strict=True):
            fragment.registers[slot] = bits.view(kind.natural_dtype)

    def store(self, fragment: Fragment) -> None:
        """Write all registers."""
        mask, base = self._begin(fragment)
        for piece in self.pieces:
            where = piece.where
            dtype = np.dtype(f"u{self.layout.register_types[where.register].bytes}")
            bits = read_as(fragment, self.slots[where.register], dtype)
            value = (bits >> dtype.type(where.shift_bits)).astype(piece.access.dtype)
            addresses = self._find_addresses(fragment, where, base)
            for space, place in piece.resolve(fragment, addresses, mask):
                self._observe(fragment, piece, space, place, base)
                store_lanes(place[0][0], place[1], value, place[2])

    def _begin(self, fragment: Fragment) -> tuple[Value, Value]:
        """Lanes that take part, and the address each gives: bool[n], uint64[n]. Rows are recorded at the lanes that give them."""
        mask = guarded_mask(fragment, self.guard)
        base = np.broadcast_to(self.find(fragment).astype(np.uint64) + self.offset, (fragment.warps.lanes,))
        if self.tracer is not None and self.layout.row_bytes:
            giving = mask & (fragment.warps.column("laneid") < self.layout.address_lanes)
            access = self.pieces[0].access
            space = Space.SHARED if access.space is Space.GENERIC else access.space
            self.tracer.record_addresses(
                access.instruction,
                fragment,
                space,
                size_bytes=self.layout.row_bytes,
                addresses=base,
                mask=giving,
            )
        return mask, base

    def _find_addresses(self, fragment: Fragment, piece: MatrixPiece | MatrixRequest, base: Value) -> Value:
        """uint64[n], where each lane's piece stands."""
        given = base.reshape(-1, 32)
        if isinstance(piece, MatrixPiece):
            given = given[:, piece.address_lane]
        rows = given.view(np.int64) + piece.offset_bytes
        strides = read_as(fragment, self.stride, U32).astype(np.int64)
        steps = np.broadcast_to(strides, (fragment.warps.lanes,)).reshape(-1, 32)
        return np.ascontiguousarray((rows + steps * piece.stride_bits // 8).reshape(-1)).view(U64)

    def _observe(self, fragment: Fragment, piece: _Piece, space: Any, place: Place, base: Value) -> None:
        """Check a piece; with the first one of ``wmma``, whose lanes all give one address, record what the hardware accesses."""
        access, (_, index, allowed, bad) = piece.access, place
        checks = fragment.batch.checks
        if checks is not None and space is Space.SHARED:
            check = checks.check_store if access.kind is AccessKind.STORE else checks.check_load
            check(access, fragment, index, allowed)
        if self.tracer is None or piece is not self.pieces[0] or not self.requests:
            return
        lanes = (
            np.ones(fragment.warps.lanes, np.bool_) if allowed is None else allowed if bad is None else allowed | bad
        )
        wanted = np.repeat(lanes.reshape(-1, 32).any(axis=1), 32)
        for request in self.requests:
            part = wanted & (np.arange(fragment.warps.lanes) % 32 < request.lanes)
            addresses = self._find_addresses(fragment, request, base)
            if access.space is Space.GENERIC and space in WINDOWS:
                addresses = addresses - np.uint64(WINDOWS[space])
            self.tracer.record_addresses(
                access.instruction, fragment, space, size_bytes=request.size_bytes, addresses=addresses, mask=part
            )
