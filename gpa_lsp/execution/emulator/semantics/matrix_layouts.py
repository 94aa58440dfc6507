"""Matrices of ``mma``, ``wgmma``, ``wmma`` and ``ldmatrix``: the elements of each lane (:class:`Fragment`), the products
(:func:`find_product`), and the addresses that lanes access (:func:`matrix_addresses`).

Source: PTX ISA 9.0, sections 9.7.14.5 (matrix fragments for mma.m8n8k4 … m16n8k256) and 9.7.15.5.1.1 (wgmma: each of the four warps holds 16 rows
of A and D, laid out like those of ``mma``). The layout of ``wmma`` fragments is unspecified there; the one
here is our own: elements in row-major order, consecutive ones in one lane.
"""

import re
from functools import cache, cached_property

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gpa_lsp.code.ptx.model import PtxInstruction, Vector
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.foundation.records import ColumnRecord

S = ScalarType
Indexes = npt.NDArray[np.int64]
# Width of an element
BITS = {
    S.F16: 16,
    S.BF16: 16,
    S.TF32: 32,
    S.F32: 32,
    S.F64: 64,
    S.S32: 32,
    S.U8: 8,
    S.S8: 8,
    S.U4: 4,
    S.S4: 4,
    S.B1: 1,
    S.E4M3: 8,
    S.E5M2: 8,
}
_LANES = np.arange(32)
_GROUP, _WITHIN = _LANES // 4, _LANES % 4


def register_type(kind: ScalarType) -> ScalarType:
    """Type of the registers that elements of a type arrive in."""
    return kind if kind in (S.F32, S.F64) else S.U32


class Fragment(ColumnRecord, frozen=True, kw_only=True, dict=True):
    """A matrix spread over a warp."""

    rows: int  # of the matrix
    columns: int  # of the matrix
    row: Indexes  # int64[32, e], of each element each lane holds, in register order
    column: Indexes  # int64[32, e]

    @cached_property
    def holders(self) -> Indexes:
        """int64[rows · columns]: for each element, row by row, a place in [32, e] that holds it."""
        found = np.empty(self.rows * self.columns, np.int64)
        found[self.places] = np.arange(self.places.size)
        return found

    @cached_property
    def places(self) -> Indexes:
        """int64[32 · e]: for each place in [32, e], its element, counted row by row."""
        return (self.row * self.columns + self.column).reshape(-1)

    @property
    def elements(self) -> int:
        """Elements per lane."""
        return int(self.row.shape[1])

    @property
    def turned(self) -> "Fragment":
        """The transpose, in the same lanes."""
        return Fragment(rows=self.columns, columns=self.rows, row=self.column, column=self.row)


@cache
def left_fragment(rows: int, depth: int, per_register: int) -> Fragment:
    """A of ``mma``, and of a warp of ``wgmma``: registers of ``per_register`` elements go through the rows g and g + 8, then on along the depth."""
    halves = rows // 8
    registers = halves * depth // (4 * per_register)
    row, column = [], []
    for register in range(registers):
        for element in range(per_register):
            row.append(_GROUP + 8 * (register % halves))
            column.append(_WITHIN * per_register + element + 4 * per_register * (register // halves))
    return Fragment(rows=rows, columns=depth, row=np.stack(row, 1), column=np.stack(column, 1))


@cache
def right_fragment(depth: int, columns: int, per_register: int) -> Fragment:
    """B of ``mma``: columns by groups, registers along the depth."""
    row = [
        _WITHIN * per_register + element + 4 * per_register * register
        for register in range(depth // (4 * per_register))
        for element in range(per_register)
    ]
    stacked = np.stack(row, 1)
    return Fragment(rows=depth, columns=columns, row=stacked, column=np.broadcast_to(_GROUP[:, None], stacked.shape))


@cache
def sum_fragment(rows: int, columns: int) -> Fragment:
    """C and D of ``mma``, and of a warp of ``wgmma``: by eight columns, two neighbours of a row, and of the row eight below."""
    places = [
        (8 * eight, 8 * half, one) for eight in range(columns // 8) for half in range(rows // 8) for one in (0, 1)
    ]
    row = [_GROUP + half for _, half, _ in places]
    column = [_WITHIN * 2 + first + one for first, _, one in places]
    return Fragment(rows=rows, columns=columns, row=np.stack(row, 1), column=np.stack(column, 1))


@cache
def plain_fragment(rows: int, columns: int, elements: int) -> Fragment:
    """A matrix of ``wmma``: row-major, consecutive elements in one lane; a lane with more registers than its share repeats them."""
    share = rows * columns // 32
    index = _LANES[:, None] * share + np.arange(elements)[None, :] % share
    return Fragment(rows=rows, columns=columns, row=index // columns, column=index % columns)


# Registers of the fragments of ``wmma``.
#
# Source: PTX ISA 9.0, section 9.7.14.4.1 (matrix fragments for WMMA).

Shape = tuple[int, int, int]

_COMMON: frozenset[Shape] = frozenset({(16, 16, 16), (32, 8, 16), (8, 32, 16)})
_SHAPES: dict[ScalarType, frozenset[Shape]] = {
    S.F16: _COMMON,
    S.BF16: _COMMON,
    S.U8: _COMMON,
    S.S8: _COMMON,
    S.TF32: frozenset({(16, 16, 8)}),
    S.F64: frozenset({(8, 8, 4)}),
    S.U4: frozenset({(8, 8, 32)}),
    S.S4: frozenset({(8, 8, 32)}),
    S.B1: frozenset({(8, 8, 128)}),
}


def count_registers(name: str, shape: Shape, kind: ScalarType) -> int | None:
    """Registers of a fragment, per lane.

    Args:
        name: ``a``, ``b``, ``c`` or ``d``.

    Returns:
        Their number; None for a shape that does not exist. Of factors in f16 it is always 8, although most of them need fewer.
    """
    rows, columns, depth = shape
    if name in "cd":
        if shape not in frozenset().union(*_SHAPES.values()) or kind not in (S.F16, S.F32, S.F64, S.S32):
            return None
        return rows * columns // 32 // (2 if kind is S.F16 else 1)
    if kind not in _SHAPES or shape not in _SHAPES[kind]:
        return None
    if kind is S.F16:
        return 8
    elements = (rows if name == "a" else columns) * depth // 32
    return elements * BITS[kind] // max(32, BITS[kind])


_SHAPE = re.compile(r"m(\d{1,3})n(\d{1,3})k(\d{1,3})", re.ASCII)
_ACCUMULATORS = frozenset({S.F16, S.F32, S.F64, S.S32})
_FLOATS = frozenset({S.F16, S.BF16, S.TF32, S.F64, S.E4M3, S.E5M2})

Types = tuple[ScalarType, ScalarType, ScalarType, ScalarType]
Fragments = tuple[Fragment, Fragment, Fragment]


class MatrixProduct(Struct, frozen=True, kw_only=True):
    """A product of matrices in fragments."""

    types: Types  # of D, A, B and C
    fragments: Fragments  # of A, B, and C and D
    is_clamped: bool  # sums of integers do not wrap around
    joins_by_and: bool  # bits are joined by "and", not by "exclusive or"

    @property
    def registers(self) -> tuple[int, ...]:
        """Registers per lane of A, B, C and D."""
        a, b, c = self.fragments
        d_type, *rest = self.types
        pairs = zip((a, b, c, c), (*rest, d_type), strict=True)
        return tuple(fragment.elements * BITS[kind] // max(32, BITS[kind]) for fragment, kind in pairs)


def find_product(instruction: PtxInstruction) -> MatrixProduct | None:
    """The product of an instruction; None for other instructions, unsupported forms, and Volta's products of quads."""
    shape, types = find_shape(instruction), find_types(instruction)
    if shape is None or types is None:
        return None
    fragments = _lay_out_wmma(shape, types) if instruction.opcode == "wmma" else _lay_out_mma(shape, types)
    if fragments is None:
        return None
    words = instruction.suffixes
    product = MatrixProduct(
        types=types, fragments=fragments, is_clamped="satfinite" in words, joins_by_and="and" in words
    )
    written = [len(source.elements) if isinstance(source, Vector) else 1 for source in instruction.sources]
    return product if list(product.registers[:3]) == written else None


def find_shape(instruction: PtxInstruction) -> tuple[int, int, int] | None:
    """Rows, columns and depth of a dense product."""
    words = instruction.suffixes
    if instruction.opcode == "wmma" and words[:1] != ("mma",):
        return None
    if any(word.startswith(("sp", "kind::mx", "block_scale")) for word in words) or len(instruction.sources) != 3:
        return None
    shape = next((match for word in words if (match := _SHAPE.fullmatch(word))), None)
    return None if shape is None else (int(shape[1]), int(shape[2]), int(shape[3]))


def find_types(instruction: PtxInstruction) -> Types | None:
    """Types of D, A, B and C. ``wmma`` of halves names D and C alone."""
    types = instruction.types
    if instruction.opcode == "wmma" and len(types) == 2:
        types = (types[0], S.F16, S.F16, types[1])
    if len(types) != 4 or not {types[0], types[3]} <= _ACCUMULATORS or not {types[1], types[2]} <= BITS.keys():
        return None
    if types[0] is S.S32:
        return (types[0], types[1], types[2], types[3]) if types[1] not in _FLOATS else None
    return (types[0], types[1], types[2], types[3]) if {types[1], types[2]} <= _FLOATS else None


def _lay_out_mma(shape: tuple[int, int, int], types: Types) -> Fragments | None:
    rows, columns, depth = shape
    per_register = max(1, 32 // BITS[types[1]])
    if rows not in (8, 16) or columns != 8 or depth % (4 * per_register) or BITS[types[1]] != BITS[types[2]]:
        return None
    return (
        left_fragment(rows, depth, per_register),
        right_fragment(depth, columns, per_register),
        sum_fragment(rows, columns),
    )


def _lay_out_wmma(shape: tuple[int, int, int], types: Types) -> Fragments | None:
    rows, columns, depth = shape
    sizes = ((rows, depth, types[1], "a"), (depth, columns, types[2], "b"), (rows, columns, types[3], "c"))
    fragments = []
    for height, width, kind, name in sizes:
        registers = count_registers(name, shape, kind)
        if registers is None:
            return None
        elements = registers * max(1, 32 // BITS[kind])
        by_columns = name == "b" and BITS[kind] < 8
        fragments.append(
            plain_fragment(width, height, elements).turned if by_columns else plain_fragment(height, width, elements)
        )
    return fragments[0], fragments[1], fragments[2]


# Addresses that lanes read or write in ``ldmatrix``, ``stmatrix``, ``wmma.load`` and ``wmma.store``:
# :func:`matrix_addresses`.
#
# Source: PTX ISA 9.0, sections 9.7.14.4.3 to 9.7.14.4.5 (wmma), 9.7.14.5.15 and 9.7.14.5.16 (ldmatrix, stmatrix).

_NONE = np.zeros(32, np.int64)


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
    """One access of a warp as the hardware makes it: the bytes that each lane asks for, no matter which lane holds them afterwards."""

    lanes: int  # that take part, from lane 0 on
    size_bytes: int  # per lane
    offset_bytes: Indexes  # int64[32], as of :class:`MatrixPiece`
    stride_bits: Indexes  # int64[32], as of :class:`MatrixPiece`


class MatrixAccess(Struct, frozen=True, kw_only=True):
    """Pieces and accesses of a matrix load or store."""

    pieces: tuple[MatrixPiece, ...]  # of all registers. A register no piece covers is zero.
    register_types: tuple[ScalarType, ...]  # of the vector operand
    address_lanes: int  # lanes whose address counts (``ldmatrix``: 8 per matrix; ``wmma``: all, and they must agree)
    row_bytes: int  # what is read at each of these addresses as one row; 0 for ``wmma``
    default_stride_elements: int = 0  # of ``wmma`` without a stride operand; 0 for the others
    requests: tuple[MatrixRequest, ...] = ()  # the accesses that ``wmma`` makes; empty for the others
    # those it makes where it names shared memory; empty where they are the same
    shared_requests: tuple[MatrixRequest, ...] = ()


def matrix_addresses(instruction: PtxInstruction) -> MatrixAccess | None:
    """The pieces and accesses of a matrix load or store; None for an unsupported form."""
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
    """Requests of ``wmma`` for memory.

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
    """Requests for factors in shared memory: rows of 16 bytes at the lanes that give their addresses, up to four tiles of eight at once.

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
    """Requests for the element each lane begins at, along and across memory's rows."""
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
