"""Which lane reads or writes which address in ``ldmatrix``, ``stmatrix``, ``wmma.load`` and ``wmma.store``: :func:`matrix_addresses`.

Source: PTX ISA 9.0, sections 9.7.14.4.3 to 9.7.14.4.5 (wmma), 9.7.14.5.15 and 9.7.14.5.16 (ldmatrix, stmatrix).
"""

import re

import numpy as np
import numpy.typing as npt

from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.emulator.operations.matrix_layouts import plain_fragment
from gpa_lsp.emulator.operations.matrix_numbers import BITS, register_type
from gpa_lsp.emulator.operations.wmma_shapes import count_registers
from gpa_lsp.ptx.model import PtxInstruction
from gpa_lsp.ptx.scalar_types import ScalarType

S = ScalarType
Indexes = npt.NDArray[np.int64]
_LANES = np.arange(32, dtype=np.int64)
_NONE = np.zeros(32, np.int64)
_SHAPE = re.compile(r"m(\d{1,3})n(\d{1,3})k(\d{1,3})", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixPiece:
    """A piece of each lane's registers, and where it stands in memory.

    The address of lane i is that which lane ``address_lane[i]`` gave, plus ``offset_bytes[i]``, plus the stride operand (in elements) times
    ``stride_bits[i]`` / 8.

    Attributes:
        register: which register of the vector operand.
        shift_bits: where in the register the piece begins.
        size_bytes: of the piece: 1, 2, 4 or 8.
        address_lane: int64[32].
        offset_bytes: int64[32].
        stride_bits: int64[32]; zeros for ``ldmatrix`` and ``stmatrix``.
    """

    register: int
    shift_bits: int
    size_bytes: int
    address_lane: Indexes
    offset_bytes: Indexes
    stride_bits: Indexes


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixAccess:
    """What a matrix load or store moves.

    Attributes:
        pieces: of all registers. A register no piece covers is zero.
        register_types: of the vector operand.
        address_lanes: lanes whose address counts (``ldmatrix``: 8 per matrix; ``wmma``: all, and they must agree).
        row_bytes: what is read at each of these addresses as one row; 0 for ``wmma``.
        default_stride_elements: of ``wmma`` without a stride operand; 0 for the others.
    """

    pieces: tuple[MatrixPiece, ...]
    register_types: tuple[ScalarType, ...]
    address_lanes: int
    row_bytes: int
    default_stride_elements: int = 0


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
    return MatrixAccess(
        pieces=(piece,), register_types=(S.U32,), address_lanes=32, row_bytes=0, default_stride_elements=depth
    )
