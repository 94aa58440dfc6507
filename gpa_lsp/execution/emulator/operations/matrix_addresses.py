"""Which lane reads or writes which address in ``ldmatrix``, ``stmatrix``, ``wmma.load`` and ``wmma.store``: :func:`matrix_addresses`.

Source: PTX ISA 9.0, sections 9.7.14.4.3 to 9.7.14.4.5 (wmma), 9.7.14.5.15 and 9.7.14.5.16 (ldmatrix, stmatrix).
"""

import re

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gpa_lsp.code.ptx.model import PtxInstruction
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.execution.emulator.operations.matrix_layouts import plain_fragment
from gpa_lsp.execution.emulator.operations.matrix_numbers import BITS, register_type
from gpa_lsp.execution.emulator.operations.wmma_shapes import count_registers
from gpa_lsp.foundation.records import ColumnRecord

S = ScalarType
Indexes = npt.NDArray[np.int64]
_LANES = np.arange(32, dtype=np.int64)
_NONE = np.zeros(32, np.int64)
_SHAPE = re.compile(r"m(\d{1,3})n(\d{1,3})k(\d{1,3})", re.ASCII)


class MatrixPiece(ColumnRecord, frozen=True, kw_only=True):
    """A piece of each lane's registers, and where it stands in memory.

    The address of lane i is that which lane ``address_lane[i]`` gave, plus ``offset_bytes[i]``, plus the stride operand (in elements) times
    ``stride_bits[i]`` / 8.
    """

    register: int  # which register of the vector operand
    shift_bits: int  # where in the register the piece begins
    size_bytes: int  # of the piece: 1, 2, 4 or 8
    address_lane: Indexes  # int64[32]
    offset_bytes: Indexes  # int64[32]
    stride_bits: Indexes  # int64[32]; zeros for ``ldmatrix`` and ``stmatrix``


class MatrixRequest(ColumnRecord, frozen=True, kw_only=True):
    """One access of a warp as the hardware makes it: which bytes of memory each lane asks for, whoever holds them afterwards."""

    lanes: int  # that take part, from lane 0 on
    size_bytes: int  # per lane
    offset_bytes: Indexes  # int64[32], as of :class:`MatrixPiece`
    stride_bits: Indexes  # int64[32], as of :class:`MatrixPiece`


class MatrixAccess(Struct, frozen=True, kw_only=True):
    """What a matrix load or store moves."""

    pieces: tuple[MatrixPiece, ...]  # of all registers. A register no piece covers is zero.
    register_types: tuple[ScalarType, ...]  # of the vector operand
    address_lanes: int  # lanes whose address counts (``ldmatrix``: 8 per matrix; ``wmma``: all, and they must agree)
    row_bytes: int  # what is read at each of these addresses as one row; 0 for ``wmma``
    default_stride_elements: int = 0  # of ``wmma`` without a stride operand; 0 for the others
    requests: tuple[MatrixRequest, ...] = ()  # the accesses that ``wmma`` makes; empty for the others
    # those it makes where it names shared memory; empty where they are the same
    shared_requests: tuple[MatrixRequest, ...] = ()


def matrix_addresses(instruction: PtxInstruction) -> MatrixAccess | None:
    """Find what a matrix load or store moves; None for a form that is not supported."""
    if instruction.opcode in ("ldmatrix", "stmatrix"):
        return _find_rows(instruction)
    if instruction.opcode == "wmma" and instruction.suffixes[:1] in (("load",), ("store",)):
        return _find_wmma(instruction)
    return None


def _find_rows(instruction: PtxInstruction) -> MatrixAccess | None:
    """``ldmatrix.sync.aligned.m8n8.x1|x2|x4{.trans}.b16``: matrices of eight rows of eight 16-bit elements."""
    words = instruction.suffixes
    count = next((int(word[1:]) for word in words if word in ("x1", "x2", "x4")), None)
    if count is None or "m8n8" not in words or instruction.types != (S.B16,):
        return None
    pieces: list[MatrixPiece] = []
    for matrix in range(count):
        if "trans" in words:
            pieces += [_build_turned_piece(matrix, element) for element in range(2)]
            continue
        pieces.append(
            MatrixPiece(
                register=matrix,
                shift_bits=0,
                size_bytes=4,
                address_lane=8 * matrix + _LANES // 4,
                offset_bytes=4 * (_LANES % 4),
                stride_bits=_NONE,
            )
        )
    return MatrixAccess(pieces=tuple(pieces), register_types=(S.U32,) * count, address_lanes=8 * count, row_bytes=16)


def _build_turned_piece(matrix: int, element: int) -> MatrixPiece:
    """``.trans``: a lane's two elements stand in neighbouring rows."""
    return MatrixPiece(
        register=matrix,
        shift_bits=16 * element,
        size_bytes=2,
        address_lane=8 * matrix + 2 * (_LANES % 4) + element,
        offset_bytes=2 * (_LANES // 4),
        stride_bits=_NONE,
    )


def _find_wmma(instruction: PtxInstruction) -> MatrixAccess | None:
    """``wmma.load.a|b|c.sync.aligned.row|col.shape{.space}.type`` and ``wmma.store.d…``."""
    words = instruction.suffixes
    shape = next((match for word in words if (match := _SHAPE.fullmatch(word))), None)
    if shape is None or len(words) < 2 or words[1] not in ("a", "b", "c", "d") or len(instruction.types) != 1:
        return None
    name, kind = words[1], instruction.types[0]
    rows, columns, depth = (int(part) for part in shape.groups())
    registers = count_registers(name, (rows, columns, depth), kind)
    if registers is None:
        return None
    height, width = {"a": (rows, depth), "b": (depth, columns)}.get(name, (rows, columns))
    if BITS[kind] < 8:
        return _find_wmma_words(name, kind, (height, width))
    per_register = max(1, 32 // BITS[kind])
    fragment = plain_fragment(height, width, registers * per_register)
    size = BITS[kind] // 8
    by_rows = "row" in words
    along, across = (fragment.column, fragment.row) if by_rows else (fragment.row, fragment.column)
    pieces = tuple(
        MatrixPiece(
            register=element // per_register,
            shift_bits=BITS[kind] * (element % per_register),
            size_bytes=size,
            address_lane=_LANES,
            offset_bytes=along[:, element] * size,
            stride_bits=across[:, element] * BITS[kind],
        )
        for element in range(fragment.elements)
    )
    return MatrixAccess(
        pieces=pieces,
        register_types=(register_type(kind),) * registers,
        address_lanes=32,
        row_bytes=0,
        default_stride_elements=width if by_rows else height,
        requests=_list_requests(name, by_rows=by_rows, kind_bytes=size, extent=(height, width)),
        shared_requests=()
        if name in "cd"
        else _list_row_requests(name, by_rows=by_rows, kind_bytes=size, extent=(height, width)),
    )


_ROW_BYTES = 16  # Of a row of the tiles of eight rows that ``ldmatrix`` and its instruction LDSM read
_MOST_ROWS = 32


def _list_requests(name: str, *, by_rows: bool, kind_bytes: int, extent: tuple[int, int]) -> tuple[MatrixRequest, ...]:
    """What ``wmma`` asks memory for.

    Four lanes go along the dimension that products sum over (along the columns of a sum) and eight across it. Where memory goes the same way, a
    lane takes neighbouring elements at once; elements of 16 bits are taken so either way, and turned in registers.

    Approximation: the order of the requests; and GPUs before compute capability 7.5 lay fragments out differently.

    Source: code that ptxas 13.0 writes for sm_75, sm_80 and sm_90: number and width of LDG, LDS, STG and STS for every shape, type and layout;
    the lanes follow from the fragments of ``mma``.
    """
    is_sum = name in "cd"
    turned = is_sum and extent == (8, 32)  # sums of m8n32k16 are computed as those of m32n8k16, turned
    is_along = (by_rows != turned) if is_sum else by_rows == (name == "a")
    along, across = (extent[1], extent[0]) if by_rows else extent
    together = 2 if is_sum or kind_bytes == 2 else max(1, 4 // kind_bytes)
    if is_along or kind_bytes == 2:
        places = [
            (_LANES % 4 * together + start, _LANES // 4 + first)
            for first in range(0, across, 8)
            for start in range(0, along, 4 * together)
        ]
        return _make_requests(places, 32, kind_bytes * together, kind_bytes)
    places = [
        (_LANES // 4 + start, _LANES % 4 * together + element + first)
        for first in range(0, across, 4 * together)
        for start in range(0, along, 8)
        for element in range(together)
    ]
    return _make_requests(places, 32, kind_bytes, kind_bytes)


def _list_row_requests(
    name: str, *, by_rows: bool, kind_bytes: int, extent: tuple[int, int]
) -> tuple[MatrixRequest, ...]:
    """Of factors in shared memory: rows of 16 bytes at the lanes that give their addresses, up to four tiles of eight at once.

    Where a lane would not take 4 bytes at once, they are taken as in global memory.
    """
    if kind_bytes > 2 or (kind_bytes == 1 and by_rows != (name == "a")):
        return ()
    along, across = (extent[1], extent[0]) if by_rows else extent
    per_row = _ROW_BYTES // kind_bytes
    rows = [(start, row) for start in range(0, along, per_row) for row in range(across)]
    requests: list[MatrixRequest] = []
    for first in range(0, len(rows), _MOST_ROWS):
        part = rows[first : first + _MOST_ROWS]
        starts, numbers = (np.resize(np.array(values, np.int64), 32) for values in zip(*part, strict=True))
        requests += _make_requests([(starts, numbers)], len(part), _ROW_BYTES, kind_bytes)
    return tuple(requests)


def _make_requests(
    places: list[tuple[Indexes, Indexes]], lanes: int, size_bytes: int, kind_bytes: int
) -> tuple[MatrixRequest, ...]:
    """Of the element each lane begins at, along and across memory's rows."""
    return tuple(
        MatrixRequest(
            lanes=lanes, size_bytes=size_bytes, offset_bytes=along * kind_bytes, stride_bits=across * kind_bytes * 8
        )
        for along, across in places
    )


def _find_wmma_words(name: str, kind: ScalarType, size: tuple[int, int]) -> MatrixAccess:
    """Elements of less than a byte: A by rows, B by columns, 32 bits of one row (or column) in each lane.

    The fragment of B is that of a matrix turned (:attr:`~.matrix_layouts.Fragment.turned`), so that a lane's elements stand side by side.
    """
    depth = size[1] if name == "a" else size[0]
    words_per_row = depth * BITS[kind] // 32
    piece = MatrixPiece(
        register=0,
        shift_bits=0,
        size_bytes=4,
        address_lane=_LANES,
        offset_bytes=4 * (_LANES % words_per_row),
        stride_bits=_LANES // words_per_row * BITS[kind],
    )
    request = MatrixRequest(lanes=32, size_bytes=4, offset_bytes=piece.offset_bytes, stride_bits=piece.stride_bits)
    return MatrixAccess(
        pieces=(piece,),
        register_types=(S.U32,),
        address_lanes=32,
        row_bytes=0,
        default_stride_elements=depth,
        requests=(request,),
    )
