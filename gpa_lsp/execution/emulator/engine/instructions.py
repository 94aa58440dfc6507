"""Which binder an instruction has: :func:`bind_instruction`."""

from collections.abc import Callable
from typing import Any

import numpy as np
from msgspec import Struct

from gpa_lsp.code.ptx.model import Address, Immediate, PtxInstruction, Register, Space
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.code.ptx.static_instructions import AccessKind
from gpa_lsp.execution.emulator.engine.accesses import Access, Place
from gpa_lsp.execution.emulator.engine.binder import Binder, UnsupportedInstruction, flatten, read_as
from gpa_lsp.execution.emulator.engine.fragments import Fragment
from gpa_lsp.execution.emulator.engine.lane_steps import (
    bind_meaning,
    bind_product,
    guarded_mask,
    narrow_mask,
)
from gpa_lsp.execution.emulator.engine.memory_steps import (
    Finder,
    Resolver,
    bind_address,
    bind_change,
    bind_load,
    bind_mbarrier,
    bind_store,
    find_space,
    make_resolver,
    store_lanes,
)
from gpa_lsp.execution.emulator.engine.texture_steps import bind_texture
from gpa_lsp.execution.emulator.engine.tracing import WINDOWS, Tracer
from gpa_lsp.execution.emulator.engine.values import U32, U64, Value
from gpa_lsp.execution.emulator.engine.warp_group_steps import bind_warp_group, is_warp_group_product
from gpa_lsp.execution.emulator.semantics.find import find_meaning
from gpa_lsp.execution.emulator.semantics.matrix_layouts import (
    MatrixAccess,
    MatrixPiece,
    MatrixRequest,
    matrix_addresses,
)
from gpa_lsp.execution.emulator.semantics.model import LOCAL_WINDOW, SHARED_WINDOW, WINDOW_BYTES
from gpa_lsp.foundation.records import ColumnRecord


def _bind_nothing(binder: Binder) -> None:
    """Hints, fences and sleeping: memory is in order already."""
    binder.finish()


_KEPT = np.array([0, 0xFF, 0xFFFF, 0xFFFFFF, 0xFFFFFFFF], np.uint32)  # Bits of a word of which so many bytes are copied


def bind_copy(binder: Binder) -> None:
    """``cp.async`` of 4, 8 or 16 bytes per lane, and what commits and waits (nothing: the copy is done).

    An arrival without ``.noinc`` is expected in addition to the others, so that nothing changes.

    Raises:
        UnsupportedInstruction: bulk copies, tensor maps.
    """
    instruction = binder.instruction
    words = instruction.suffixes
    if words[:1] != ("async",) or "bulk" in words:
        raise UnsupportedInstruction
    if words[1:3] == ("mbarrier", "arrive") and "noinc" in words:
        bind_change(binder)
        return
    if not {"mbarrier", "commit_group", "wait_group", "wait_all"}.isdisjoint(words):
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
        values = [view.take(index, mode="wrap") for view in views]
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


_WINDOWS = {"shared": SHARED_WINDOW, "local": LOCAL_WINDOW}


def _find_window(suffixes: tuple[str, ...]) -> int:
    for suffix in suffixes:
        found = _WINDOWS.get(suffix.partition("::")[0])
        if found is not None:
            return found
    return 0


def bind_isspacep(binder: Binder) -> None:
    """``isspacep``: which window an address lies in.

    Raises:
        UnsupportedInstruction: an operand is of a kind it cannot have.
    """
    instruction = binder.instruction
    source = binder.read(instruction.sources[0], ScalarType.U64)
    result = binder.write(instruction.destinations[0], ScalarType.PRED)
    window = _find_window(instruction.suffixes)
    space = next((suffix for suffix in instruction.suffixes if suffix.isalpha()), "")
    holds = _make_space_test(space, window, binder)

    def step(fragment: Fragment) -> None:
        fragment.registers[result] = holds(read_as(fragment, source, U64))

    binder.steps.append(step)
    binder.finish()


def _make_space_test(space: str, window: int, binder: Binder) -> Callable[[Value], Value]:
    if window:
        return lambda address: (address - np.uint64(window)) < np.uint64(WINDOW_BYTES)
    arena = binder.machine.arena
    if space == "global":
        # Everything that is not in another window counts as global, as on the hardware.
        return lambda address: (
            ((address - np.uint64(SHARED_WINDOW)) >= np.uint64(LOCAL_WINDOW - SHARED_WINDOW + WINDOW_BYTES))
            & ~arena.is_within(address, fixed=True)
        )
    return lambda address: arena.is_within(address, fixed=True)


_BINDERS: dict[str, Callable[[Binder], None]] = {
    "ld": bind_load,
    "ldu": bind_load,
    "st": bind_store,
    "atom": bind_change,
    "red": bind_change,
    "mbarrier": bind_mbarrier,
    "cp": bind_copy,
    "isspacep": bind_isspacep,
    "mma": bind_product,
    "wmma": bind_product,
    "wgmma": bind_warp_group,
    "tex": bind_texture,
    "tld4": bind_texture,
    "txq": bind_texture,
    "suq": bind_texture,
    "suld": bind_texture,
    "sust": bind_texture,
}
_BINDERS |= dict.fromkeys(
    ("membar", "fence", "nanosleep", "prefetch", "prefetchu", "applypriority", "discard", "griddepcontrol", "pmevent",
     "brkpt", "setmaxnreg"),
    _bind_nothing,
)  # fmt: skip


def bind_instruction(binder: Binder) -> None:
    """Add the steps of the instruction a binder stands at, which ends no segment.

    Raises:
        UnsupportedInstruction: it is not emulated.
    """
    instruction = binder.instruction
    if ScalarType.B128 in instruction.types:
        raise UnsupportedInstruction("values of 128 bits")
    if is_matrix_move(instruction):
        bind_matrix_move(binder)
        return
    bind = _BINDERS.get(instruction.opcode)
    if bind is not None:
        bind(binder)
        return
    meaning = find_meaning(instruction)
    if meaning is None:
        raise UnsupportedInstruction
    bind_meaning(binder, meaning)


def find_gate(binder: Binder) -> int | None:
    """The slot of the member mask of an instruction whose lanes wait for each other; None when they do not."""
    instruction = binder.instruction
    if "sync" not in instruction.suffixes or (instruction.opcode == "wgmma" and not is_warp_group_product(instruction)):
        return None
    meaning = find_meaning(instruction)
    if meaning is not None and meaning.members is not None:
        return binder.read(flatten(instruction.sources)[meaning.members], ScalarType.U32)
    return binder.read(Immediate(0xFFFFFFFF), ScalarType.U32)


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
                value = views[0].take(index, mode="wrap")
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
