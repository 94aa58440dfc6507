"""Lowering of instructions, :func:`lower_instruction`, and of arguments and results of calls."""

from collections.abc import Callable
from typing import Any

import numpy as np

from gpa_lsp.code.ptx.model import Address, Immediate, Operand, PtxInstruction, Register, Space, Symbol, TextureAddress
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.code.ptx.static_instructions import AccessKind
from gpa_lsp.execution.emulator.compiled.lane_operations import LaneFunction, list_steps
from gpa_lsp.execution.emulator.compiled.lowering import FrameLayout, Lowering, NotLowered, Operation
from gpa_lsp.execution.emulator.compiled.model import ATOMIC, FUNCTIONS, LOAD, NOT_ZERO, NOTE, STORE
from gpa_lsp.execution.emulator.engine.fragments import BoundFunction, CallEdge
from gpa_lsp.execution.emulator.engine.functions import find_space, is_by_steps
from gpa_lsp.execution.emulator.engine.layout import Piece
from gpa_lsp.execution.emulator.engine.texture_steps import find_handle, find_surface_shape
from gpa_lsp.execution.emulator.semantics.changes import find_change
from gpa_lsp.execution.emulator.semantics.find import find_meaning
from gpa_lsp.execution.emulator.semantics.matrix_layouts import MatrixPiece, MatrixRequest, matrix_addresses
from gpa_lsp.execution.emulator.semantics.matrix_products import Product, describe_product
from gpa_lsp.execution.emulator.semantics.model import (
    LOCAL_WINDOW,
    LONGEST_VECTOR,
    SHARED_WINDOW,
    WINDOW_BYTES,
    flatten,
)
from gpa_lsp.execution.emulator.semantics.words import ADD_FLOAT

Lower = Callable[[Lowering], None]


def lower_instruction(lowering: Lowering, instruction: PtxInstruction) -> list[Operation] | None:
    """The operations of an instruction that ends no segment; None where its steps do it, or there is nothing to do.

    Raises:
        NotLowered: it is not emulated.
    """
    if is_by_steps(instruction):
        return None
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
    return lowering.finish() or None


_ADDRESS_BYTES = (4, 8)
_CHANGES = {
    "add": 0, "and": 1, "or": 2, "xor": 3, "exch": 4, "cas": 5, "inc": 6, "dec": 7, "min": 8, "max": 9, "init": 13, "arrive": 14, "arrive_drop": 15,
}  # fmt: skip
_SIGNED = 2  # How far the signed forms of min and max lie behind the others
_MOST_OFFSET = 1 << 62


_STRONG = frozenset({"volatile", "relaxed", "acquire", "release", "mmio"})


def _describe(lowering: Lowering, operand: Operand, kind: ScalarType, elements: int) -> dict[str, Any]:
    """Fields that loads, stores and atomic operations share: address, space and size."""
    if not isinstance(operand, Address):
        raise NotLowered("address of this kind")
    if elements > LONGEST_VECTOR:
        raise NotLowered("vector of this length")
    words = lowering.instruction.suffixes
    offset, width = 0, 8
    if isinstance(operand.base, Register):
        width = lowering.width(operand.base)
        if width not in _ADDRESS_BYTES:
            raise NotLowered("address in a register of this width")
        place, offset = lowering.place_exactly(operand.base, width), operand.offset_bytes
        if not -_MOST_OFFSET <= offset < _MOST_OFFSET:
            raise NotLowered
    elif isinstance(operand.base, Symbol):
        symbol = Symbol(operand.base.name, operand.base.offset_bytes + operand.offset_bytes)
        place = lowering.read(symbol, ScalarType.U64)
    else:
        place = lowering.read(Immediate(operand.offset_bytes % (1 << 64)), ScalarType.U64)
    return {
        "a": place,
        "literal": offset,
        "address_bytes": width,
        "space": int(find_space(words)),
        "elements": elements,
        "element_bytes": kind.natural_dtype.itemsize,
        "is_strong": not _STRONG.isdisjoint(words),
    }


def _pad(places: list[int]) -> list[int]:
    return places + [-1] * (2 * LONGEST_VECTOR - len(places))


def _load(lowering: Lowering, fields: dict[str, Any], places: list[int], **more: Any) -> None:
    """Load elements to places as wide as they are."""
    lowering.emit(LOAD, **{"register_bytes": fields["element_bytes"], **fields, "places": _pad(places), **more})


def _store(lowering: Lowering, fields: dict[str, Any], places: list[int], **more: Any) -> None:
    fields = {"register_bytes": fields["element_bytes"], **fields, "kind": int(AccessKind.STORE)}
    lowering.emit(STORE, **{**fields, "places": _pad(places), **more})


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
    fields = _describe(lowering, operand, kind, len(results))
    _load(lowering, fields, places, is_signed=kind.is_signed, register_bytes=width)


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
    if "async" in instruction.suffixes:
        raise NotLowered("stores to other blocks of a cluster")
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
    fields = _describe(lowering, instruction.sources[0], kind, len(values))
    _store(lowering, fields, places, is_float=kind.storage_dtype.kind == "f", register_bytes=width)


def _lower_change(lowering: Lowering) -> None:
    """``atom``, ``red``, and what arrives at barriers."""
    change = find_change(lowering.instruction)
    if change is None:
        raise NotLowered
    parts = [len(flatten((operand,))) for operand in change.operands]
    if len({*parts}) > 1 or (parts[0] > 1 and len(parts) > 1):
        raise NotLowered("operands of this number")
    kind, results = change.type, flatten(lowering.instruction.destinations)
    if change.meaning is not None:
        (step,) = list_steps(change.meaning)
        combination = FUNCTIONS + lowering.number(step.function)
    elif kind.is_float:
        combination = ADD_FLOAT
    else:
        combination = _CHANGES[change.name] + (_SIGNED if kind.is_signed else 0)
    values, *others = ([lowering.read(one, kind) for one in flatten((operand,))] for operand in change.operands)
    found = [-1 if one is None else lowering.place_exactly(one, kind.bytes) for one in results]
    if len(found) not in (0, len(values)):
        raise NotLowered("operands of this number")
    places = values + [-1] * (LONGEST_VECTOR - len(values)) + found
    fields = _describe(lowering, lowering.instruction.sources[0], kind, len(values)) | {"is_strong": 1}
    lowering.emit(
        ATOMIC,
        **fields,
        kind=int(AccessKind.ATOMIC if max(found, default=-1) >= 0 else AccessKind.REDUCTION),
        combination=combination,
        c=others[0][0] if others else 0,
        register_bytes=kind.bytes,
        places=_pad(places),
    )


def _lower_wait(lowering: Lowering) -> None:
    """``mbarrier.test_wait`` and ``.try_wait``: whether the phase of a token, or of a parity, has ended."""
    instruction = lowering.instruction
    word = lowering.take_scratch()
    fields = _describe(lowering, instruction.sources[0], ScalarType.U64, 1)
    _load(lowering, fields | {"is_strong": 1, "is_hidden": 1}, [word])
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
    if names[:1] != ("async",) or "bulk" in names:
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
    fields = _describe(lowering, source, ScalarType.U32, words)
    _load(lowering, fields | {"space": int(Space.GLOBAL), "is_strong": 0}, held, **reading)
    if kept is not None:
        for number, place in enumerate(held):
            left = f"(b(u32) - {4 * number})"
            whole, part = f"b(u32) >= {4 * number + 4}", f"b(u32) > {4 * number}"
            value = f"a(u32) if {whole} else a(u32) & ((u32(1) << 8 * {left}) - 1) if {part} else u32(0)"
            lowering.emit(LaneFunction(32, value), is_guarded=False, a=place, b=kept, result=place, result_bytes=4)
    fields = _describe(lowering, target, ScalarType.U32, words)
    _store(lowering, fields | {"space": int(Space.SHARED), "is_strong": 0, "is_hidden": 1}, held)


def _find_kept(lowering: Lowering, limit: Operand, size: int) -> int:
    """The place of how many bytes of the source are copied: a number, or a predicate that says to copy none."""
    if isinstance(limit, Register) and lowering.frames.dtype(limit.slot).kind == "b":
        return lowering.compute(32, f"u32(0) if a(u8) != 0 else u32({size})", a=lowering.read(limit, ScalarType.PRED))
    return lowering.compute(32, f"a(u32) if a(u32) < {size} else u32({size})", a=lowering.read(limit, ScalarType.U32))


_WINDOWS = {"shared": SHARED_WINDOW, "local": LOCAL_WINDOW}


def _lower_space_test(lowering: Lowering) -> None:
    """``isspacep``: which window an address lies in. Everything in no other counts as global, as on the hardware."""
    instruction = lowering.instruction
    space = next((word for word in instruction.suffixes if word.partition("::")[0].isalpha()), "").partition("::")[0]
    address = lowering.read(instruction.sources[0], ScalarType.U64)
    fixed = "lanes_of(are_fixed(machine, a(u64), mask))"
    holds = f"u8({fixed})"
    if space in _WINDOWS:
        holds = f"u8(a(u64) - {_WINDOWS[space]} < {WINDOW_BYTES})"
    elif space == "global":
        extent = LOCAL_WINDOW - SHARED_WINDOW + WINDOW_BYTES
        holds = f"u8(a(u64) - {SHARED_WINDOW} >= {extent}) & u8(lanes_of(~are_fixed(machine, a(u64), mask)))"
    found = lowering.compute(8, holds, exchanges=space not in _WINDOWS, a=address)
    lowering.give(found, flatten(instruction.destinations)[0], ScalarType.PRED)


def _lower_matrix_move(lowering: Lowering) -> None:
    """``ldmatrix``, ``stmatrix``, ``wmma.load`` and ``wmma.store``: an access for each piece of the registers.

    In traces stand the accesses that the hardware makes, those of ``ldmatrix`` and ``stmatrix`` as rows of the lanes that give their addresses.
    """
    instruction = lowering.instruction
    layout = matrix_addresses(instruction)
    if layout is None:
        raise NotLowered
    is_store = instruction.opcode == "stmatrix" or "store" in instruction.suffixes
    others = list(instruction.sources[1:])
    vector = flatten((others.pop(0),)) if is_store else flatten(instruction.destinations)
    if len(vector) != len(layout.register_types):
        raise NotLowered("vector of this length")
    fields = _describe(lowering, instruction.sources[0], ScalarType.U64, 1)
    offset = fields["literal"] % (1 << 64)
    base = lowering.compute(64, f"u64(a(u{8 * fields['address_bytes']})) + u64({offset})", a=fields["a"])
    fields |= {"a": base, "literal": 0, "address_bytes": 8, "is_strong": 0}
    stride = lowering.read(others[0] if others else Immediate(layout.default_stride_elements), ScalarType.U32)
    stride = lowering.compute(64, "u64(a(u32))", a=stride)
    if lowering.machine.tracer is not None:
        is_shared = fields["space"] == Space.SHARED
        requests = layout.shared_requests if is_shared and layout.shared_requests else layout.requests
        if layout.row_bytes:
            nothing = np.zeros(32, np.int64)
            rows = MatrixRequest(
                lanes=layout.address_lanes, size_bytes=layout.row_bytes, offset_bytes=nothing, stride_bits=nothing
            )
            requests = (rows,)
        for request in requests:
            lanes = {"combination": -1 if request.lanes == 32 else (1 << request.lanes) - 1, "counts": 0}
            asked = fields | {"elements": 1, "element_bytes": request.size_bytes, "b": stride}
            lowering.emit(NOTE, **{**asked, **lanes, "c": lowering.frames.numbers(_pack(request))})
    address, part, whole = (lowering.take_scratch() for _ in range(3))
    for number, operand in enumerate(vector):
        kind = layout.register_types[number]
        bits, held = 8 * kind.bytes, -1
        source = lowering.read(operand, kind) if is_store else -1
        for piece in (one for one in layout.pieces if one.register == number):
            _find_piece(lowering, piece, base, stride, address)
            moved = fields | {
                "a": address,
                "element_bytes": piece.size_bytes,
                "is_hidden": 1,
                "register_bytes": kind.bytes,
            }
            if is_store:
                value = LaneFunction(bits, f"a(u{bits}) >> {piece.shift_bits}")
                lowering.emit(value, is_guarded=False, a=source, result=part, result_bytes=kind.bytes)
                _store(lowering, moved, [part])
            elif held < 0 and not piece.shift_bits:
                _load(lowering, moved, [whole])
                held = whole
            else:
                _load(lowering, moved, [part])
                value = LaneFunction(bits, f"a(u{bits}) | b(u{bits}) << {piece.shift_bits}")
                lowering.emit(value, is_guarded=False, a=held, b=part, result=whole, result_bytes=kind.bytes)
        if not is_store:
            lowering.give(held, operand, kind)


def _pack(piece: MatrixPiece | MatrixRequest) -> Any:
    """Offsets in bytes, and strides in bits above them: uint64[32]."""
    return piece.offset_bytes.astype(np.uint64) | piece.stride_bits.astype(np.uint64) << np.uint64(32)


def _find_piece(lowering: Lowering, piece: MatrixPiece, base: int, stride: int, address: int) -> None:
    """Emit the address of a piece of each lane's registers."""
    own = bool((piece.address_lane == np.arange(32)).all())
    if own:
        packed = lowering.frames.numbers(_pack(piece))
        value = LaneFunction(64, "a(u64) + (c(u64) & 0xFFFFFFFF) + (b(u64) * (c(u64) >> 32) >> 3)")
        lowering.emit(value, is_guarded=False, a=base, b=stride, c=packed, result=address, result_bytes=8)
        return
    packed = lowering.frames.numbers(_pack(piece) | piece.address_lane.astype(np.uint64) << np.uint64(32))
    value = LaneFunction(64, "pick(a(u64), u32(b(u64) >> 32)) + (b(u64) & 0xFFFFFFFF)", "", True)
    lowering.emit(value, is_guarded=False, a=base, b=packed, result=address, result_bytes=8)


def _lower_surface(lowering: Lowering) -> None:
    """``suld.b`` and ``sust.b``: an access where the coordinates lie within; else zeros are read, and nothing is written."""
    instruction = lowering.instruction
    operand, kind = instruction.sources[0], instruction.types[-1]
    if not isinstance(operand, TextureAddress):
        raise NotLowered
    is_store = instruction.opcode == "sust"
    vector = flatten(instruction.sources[1:2]) if is_store else flatten(instruction.destinations)
    address = _find_texels(lowering, operand, len(vector) * kind.bytes)
    least = "1" if "trap" in instruction.suffixes else "0"
    fine = lowering.compute(8, f"u8(a(u64) > {least})", a=address)
    lowering.emit(NOT_ZERO, a=fine, element_bytes=1)
    inside = lowering.compute(8, "u8(a(u64) > 1)", a=address)
    guard = lowering.narrow(inside)
    fields = {
        "a": address, "address_bytes": 8, "space": int(Space.GLOBAL), "elements": len(vector), "element_bytes": kind.bytes,
        "shown_as": int(Space.TEXTURE),
    }  # fmt: skip
    if is_store:
        _store(lowering, fields, [lowering.read(one, kind) for one in vector], is_guarded=False, **guard)
        return
    held = [lowering.take_scratch() for _ in vector]
    _load(lowering, fields, held, is_guarded=False, **guard)
    bits = 8 * kind.bytes
    for place, result in zip(held, vector, strict=True):
        value = LaneFunction(bits, f"a(u{bits}) if b(u8) != 0 else u{bits}(0)")
        lowering.emit(value, is_guarded=False, a=place, b=inside, result=place, result_bytes=kind.bytes)
        lowering.give(place, result, kind)


def _find_texels(lowering: Lowering, operand: TextureAddress, size: int) -> int:
    """The place of the address that coordinates lead to; 1 where they lead outside, 0 where the handle is that of no surface."""
    words = lowering.instruction.suffixes
    handle = lowering.read(operand.handle, ScalarType.U64)
    address = lowering.compute(64, "surface_bases(machine, a(u64), mask)", exchanges=True, a=handle)
    coordinates = flatten(operand.coordinates)
    dimensions, is_layered = find_surface_shape(words)
    axes = [(0, "u32", 2)] if is_layered else []
    axes += [(number + is_layered, "s32", number) for number in range(dimensions)]
    clamps = int("clamp" in words)
    for number, kind, axis in axes:
        place = lowering.read(coordinates[number], ScalarType(kind))
        value = f"step_along(machine, a(u64), s64(b({kind})), c(u64), {axis}, {size}, {clamps}, mask)"
        function = LaneFunction(64, value, "", True)
        lowering.emit(function, is_guarded=False, a=handle, b=place, c=address, result=address, result_bytes=8)
    return address


def _lower_query(lowering: Lowering) -> None:
    """``txq`` and ``suq``: an extent of a texture."""
    instruction = lowering.instruction
    axis = next(place for place, word in enumerate(("width", "height", "depth")) if word in instruction.suffixes)
    handle = lowering.read(find_handle(instruction), ScalarType.U64)
    found = lowering.compute(64, f"surface_extents(machine, a(u64), {axis}, mask)", exchanges=True, a=handle)
    known = lowering.compute(8, "u8(a(u64) >> 63 == 0)", a=found)
    lowering.emit(NOT_ZERO, a=known, element_bytes=1)
    low = lowering.compute(32, "u32(a(u64)) if b(u8) != 0 else u32(0)", a=found, b=known)
    lowering.give(low, instruction.destinations[0], ScalarType.U32)


def _lower_barrier(lowering: Lowering) -> None:
    """``mbarrier`` objects: words of memory, with expected arrivals, pending ones, and the phase in the highest bit."""
    match lowering.instruction.suffixes[:1]:
        case ("test_wait",) | ("try_wait",):
            _lower_wait(lowering)
        case ("inval",) | ("expect_tx",):
            pass  # transactions are not counted: what would complete them is not emulated
        case _:
            raise NotLowered


def _lower_nothing(_: Lowering) -> None:
    """Hints, fences and sleeping: memory is in order already."""


def _lower_product(lowering: Lowering) -> None:
    """``mma`` and ``wmma.mma``."""
    instruction = lowering.instruction
    product = describe_product(instruction)
    if product is None:
        raise NotLowered
    a, b, c, d = product.registers
    operands = (*instruction.destinations, *instruction.sources)
    if [len(flatten((one,))) for one in operands] != [d, a, b, c]:
        raise NotLowered("registers of this number")
    places = [lowering.place_exactly(element, product.register_bytes) for element in flatten(operands)]
    frames = lowering.frames
    lowering.emit(write_product(product), a=frames.table(product.numbers), b=frames.table(places), result=-1)


def write_product(product: Product) -> LaneFunction:
    """The function of a product."""
    what, how = "multiply_matrices", ""
    if product.formats:
        what, how = "multiply_floats", ", ".join(("", f"u{8 * product.register_bytes}", *product.formats))
    return LaneFunction(0, f"{what}(a, view(b, s32), frame, machine.constants, written{how})", "", True)


_LOWER: dict[str, Lower] = {
    "ld": _lower_load, "ldu": _lower_load, "st": _lower_store, "cp": _lower_copy, "mbarrier": _lower_barrier, "isspacep": _lower_space_test,
    "suld": _lower_surface, "sust": _lower_surface, "txq": _lower_query, "suq": _lower_query, "ldmatrix": _lower_matrix_move,
    "stmatrix": _lower_matrix_move, "mma": _lower_product, "wmma": _lower_product,
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
        return _lower_matrix_move
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
        if slot not in written and slot not in callee.constants:
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
