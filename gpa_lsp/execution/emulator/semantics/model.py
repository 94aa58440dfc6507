"""Meanings of instructions: :class:`Meaning`, and the :class:`Family` that finds it.

Operands are counted *flattened*: the elements of vectors one by one, both halves of a pair. A negated predicate (``!%p``) arrives negated. A register
wider than its source type gives its low bits, one that is narrower zeros above it; a result narrower than its register is extended by the result
type. A literal is converted to the source type: ``-1`` of ``U32`` is 0xFFFFFFFF.
"""

from collections.abc import Callable

from msgspec import Struct

from gpa_lsp.code.ptx.model import Operand, Pair, PtxInstruction, Vector
from gpa_lsp.code.ptx.scalar_types import ScalarType

S = ScalarType
SHARED_WINDOW = 0x7FFD_0000_0000  # Generic address of the first byte of a block's own shared memory
LOCAL_WINDOW = 0x7FFE_0000_0000  # Generic address of the first byte of a thread's own local memory
WINDOW_BYTES = 1 << 32
# Shared addresses of a cluster have the rank of the block plus 1 from this bit on; 0 is the block's own memory. Within: bits of the offset.
RANK_SHIFT = 24
RANKS_MASK = ((1 << 32) - 1) >> RANK_SHIFT << RANK_SHIFT
LONGEST_VECTOR = 8  # Elements that an instruction accesses at once


class Meaning(Struct, frozen=True, kw_only=True):
    """Meaning of an instruction, as expressions of typed Python.

    ``a(T)`` are the lanes of its first source as numbers of a type T, ``b(T)`` to ``e(T)`` those of the others, ``k(u8)`` the carry flag. Predicates
    are ``u8`` 0 or 1. What exchanges sees ``mask``, the lanes that execute it, and ``standing``, those that stand at it, guarded or not.
    """

    sources: tuple[ScalarType, ...]  # in the order written
    results: tuple[ScalarType, ...]  # of the destinations
    values: tuple[str, ...]  # expression of each result, of its width
    steps: tuple[tuple[str, int, str], ...] = ()  # names (x, y, z), bits and expressions of what the values also read
    carry: str = ""  # the new carry flag
    exchanges: bool = False  # lanes read those of others
    divides: bool = False  # the second source must not be 0
    members: int | None = (
        None  # which source is the member mask of the ``.sync`` form; None: all lanes of the warp meet
    )


class Family(Struct, frozen=True, kw_only=True):
    """A family of instructions: one file of the catalogue :mod:`.families`."""

    opcodes: tuple[str, ...]  # first words of the instructions that it may know; several families can name the same one
    # gives the meaning, with all its choices made, or None for a form that it does not know; once per instruction of a kernel
    find: Callable[[PtxInstruction], Meaning | None]


def flatten(operands: tuple[Operand, ...]) -> list[Operand | None]:
    """Operands with vectors and pairs taken apart; None for dropped results."""
    out: list[Operand | None] = []
    for operand in operands:
        if isinstance(operand, Vector):
            out.extend(operand.elements)
        elif isinstance(operand, Pair):
            out.extend((operand.first, operand.second))
        else:
            out.append(operand)
    return out


def of_one(kind: ScalarType, sources: int, value: str) -> Meaning:
    """A meaning whose sources and single result are of one type."""
    return Meaning(sources=(kind,) * sources, results=(kind,), values=(value,))


def name_bits(kind: ScalarType) -> str:
    """The unsigned integer of typed Python that a value of a type is stored as."""
    return f"u{8 * kind.bytes}"


def find_word(instruction: PtxInstruction, words: "tuple[str, ...] | dict[str, object] | frozenset[str]") -> str | None:
    """The first suffix that is one of some words."""
    return next((word for word in instruction.suffixes if word in words), None)
