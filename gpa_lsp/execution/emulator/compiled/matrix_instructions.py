"""Lowering of matrix instructions: ``mma``, ``wmma``, ``wgmma``, ``ldmatrix`` and ``stmatrix``."""

from typing import Any

import numpy as np

from gpa_lsp.code.ptx.model import Immediate, Operand, Space
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.execution.emulator.compiled.lane_operations import LaneFunction
from gpa_lsp.execution.emulator.compiled.lowering import RANKS, Lowering, NotLowered, Report
from gpa_lsp.execution.emulator.compiled.model import LANES, NOTE
from gpa_lsp.execution.emulator.model import FaultKind
from gpa_lsp.execution.emulator.semantics.matrix_layouts import BITS, MatrixPiece, MatrixRequest, matrix_addresses
from gpa_lsp.execution.emulator.semantics.matrix_products import (
    UNITS_AT_ONCE,
    Product,
    describe_group_product,
    describe_product,
    is_group_product,
    read_group_product,
)
from gpa_lsp.execution.emulator.semantics.model import flatten


def lower_matrix_move(lowering: Lowering) -> None:
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
    fields = lowering.describe_access(instruction.sources[0], ScalarType.U64, 1)
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
                lowering.store(moved, [part])
            elif held < 0 and not piece.shift_bits:
                lowering.load(moved, [whole])
                held = whole
            else:
                lowering.load(moved, [part])
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


def lower_product(lowering: Lowering) -> None:
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


def write_product(product: Product, adds: str = "u32(1)") -> LaneFunction:
    """The function of a product.

    Args:
        adds: expression, whether it is added to C.
    """
    what, how = "multiply_matrices", ""
    if product.formats:
        what, how = "multiply_floats", ", ".join(("", f"u{8 * product.register_bytes}", *product.formats))
    return LaneFunction(0, f"{what}(a, view(b, s32), frame, machine.constants, written, {adds}{how})", "", True)


def _describe_unusable(descriptor: int) -> str:
    has_offset = descriptor >> 49 & 7 and descriptor >> 62
    why = "a descriptor has a base offset" if has_offset else "lanes of a warp group give different descriptors"
    return f"wgmma.mma_async is not emulated ({why})"


def lower_group_product(lowering: Lowering) -> None:
    """``wgmma.mma_async``, which each warp does at once for its 16 rows; what begins, commits and waits has nothing left to do.

    It may run on while its warps do, so this is one of the orders it may be done in. Shared memory is read by the tensor core, and not by lanes:
    these reads are checked as if the lanes took turns, but they are no accesses of a trace.
    """
    instruction = lowering.instruction
    if instruction.suffixes[:1] in (("fence",), ("commit_group",), ("wait_group",)):
        return
    product = read_group_product(instruction) if is_group_product(instruction) else None
    if product is None:
        raise NotLowered
    sums = [lowering.place_exactly(one, 4) for one in flatten(instruction.destinations)]
    if len(sums) != product.result_registers:
        raise NotLowered("vector of this length")
    left, right, keeps = instruction.sources[:3]
    ranks, adds = lowering.read(RANKS, ScalarType.U32), lowering.read(keeps, ScalarType.PRED)
    guard = _check_descriptors(lowering, [right] if product.left_is_vector else [left, right], ranks)
    if product.left_is_vector:
        a = [lowering.place_exactly(one, 4) for one in flatten((left,))]
    else:
        a = [lowering.take_scratch() for _ in range(2)]
        units = f"lane_numbers() + u64((b(u32) & 3) << 5), {int(product.left_is_turned)}"
        _load_units(lowering, left, units, a, guard=guard, b=ranks)
        a = _split_words(a)
    if product.is_negated:
        signs = sum(1 << bit - 1 for bit in range(BITS[product.left], 33, BITS[product.left]))
        a = [lowering.compute(32, f"a(u32) ^ u32({signs})", a=place) for place in a]
    words = [lowering.take_scratch() for _ in range(4)]
    for part in product.parts:
        for number, first in enumerate(range(part.start, part.stop, UNITS_AT_ONCE // 2)):
            last = min(2 * (part.stop - first), UNITS_AT_ONCE) - 1
            units = f"u64(literal) + (lane_numbers() & {last}), {int(product.right_is_turned)}"
            _load_units(lowering, right, units, words[2 * number : 2 * number + 2], guard=guard, literal=2 * first)
        described = describe_group_product(product, len(part))
        first, last = (edge * len(sums) // product.columns for edge in (part.start, part.stop))
        d = sums[first:last]
        places = lowering.frames.table([*d, *a, *_split_words(words)[: described.registers[1]], *d])
        function = write_product(described, adds="pack(c) & mask")
        table = lowering.frames.table(described.numbers)
        lowering.emit(function, is_guarded=False, a=table, b=places, c=adds, result=-1, **guard)


def _check_descriptors(lowering: Lowering, descriptors: list[Operand], ranks: int) -> dict[str, int]:
    """Report descriptors that cannot be used; the guard of the lanes that have others, and of the instruction."""
    fine = -1
    for one in descriptors:
        place = lowering.read(one, ScalarType.U64)
        usable = f"u8(are_shared(machine, a, b(u32), {int(place >= 0)}) & have_no_offset(a(u64)))"
        found = lowering.compute(8, usable, exchanges=True, a=place, b=ranks)
        lowering.check(found, Report(FaultKind.UNSUPPORTED, _describe_unusable), of=place)
        fine = found if fine < 0 else lowering.compute(8, "a(u8) & b(u8)", a=fine, b=found)
    return lowering.narrow(fine)


def _load_units(
    lowering: Lowering, descriptor: Operand, units: str, held: list[int], *, guard: dict[str, int], **more: int
) -> None:
    """Load units of a matrix, one for each lane, to the places of two words of 64 bits; more fields are of the operation that finds them.

    Args:
        units: expression of which ones, and whether the matrix is turned.
    """
    function = LaneFunction(64, f"find_unit(a(u64), {units})", "", "literal" in more)
    place = lowering.read(descriptor, ScalarType.U64)
    lowering.emit(function, is_guarded=False, a=place, result=held[1], result_bytes=8, **more)
    fields = {
        "a": held[1],
        "address_bytes": 8,
        "space": int(Space.SHARED),
        "elements": 2,
        "element_bytes": 8,
        "is_hidden": 1,
    }
    lowering.load(fields, held, is_guarded=False, **guard)


def _split_words(places: list[int]) -> list[int]:
    """Halves of places that hold a word of 64 bits for each lane."""
    return [place + half for place in places for half in (0, 4 * LANES)]
