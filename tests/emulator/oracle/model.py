"""Meanings of instructions in the oracle: :class:`LaneOperation`, :class:`WarpOperation`, and the :class:`Family` that binds them.

What holds of both kinds of operation:

* Operands are counted *flattened*: the elements of vectors one by one, both halves of a pair. A negated predicate (``!%p``) arrives negated.
* A source type says in which natural dtype the operand arrives. Where the sign does not matter, an operation asks for the *unsigned* type of
  the width (``add.s32`` reads and gives ``U32``), because registers are stored so and nothing need be converted. A register wider than
  the source type gives its low bits; a result narrower than its register is extended by the *result* type (``S8`` by its sign).
* A literal is converted to the source type: ``-1`` for ``U32`` is 0xFFFFFFFF.
* Results may be the very objects that came as sources, or views of them: nobody writes into either.
* The caller sets ``np.errstate(all="ignore")`` around evaluation.
"""

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from gpa_lsp.code.ptx.model import PtxInstruction
from gpa_lsp.code.ptx.scalar_types import ScalarType


class LaneOperation(Struct, frozen=True, kw_only=True):
    """Meaning of an instruction for each lane by itself."""

    # takes the sources, each an array of n lanes, and gives the result, or a tuple of them when there are several
    evaluate: Callable[..., Any]
    source_types: tuple[ScalarType, ...]  # one per source operand, flattened, in the order written
    result_types: tuple[ScalarType, ...]  # one per destination, flattened
    reads_carry: bool = False  # the carry flag CC.CF (bool) comes as one more source, the last
    writes_carry: bool = False  # the new carry flag is given as one more result, the last


class WarpOperation(Struct, frozen=True, kw_only=True):
    """Meaning of an instruction across the lanes of warps."""

    # takes ``active``, bool[w, 32] (the lanes that execute together), then the sources, each [w, 32] in its natural dtype (or anything that
    # broadcasts to that); gives one result [w, 32], or a tuple of them. Lanes that are not active hold anything, in sources and in results.
    evaluate: Callable[..., Any]
    source_types: tuple[ScalarType, ...]  # as of :class:`LaneOperation`
    result_types: tuple[ScalarType, ...]  # as of :class:`LaneOperation`
    # which source is the member mask of the ``.sync`` form; None when there is none (all active lanes take part)
    member_mask_source: int | None = None


Operation = LaneOperation | WarpOperation


class Family(Struct, frozen=True, kw_only=True):
    """A family of instructions: one file of the catalogue :mod:`.families`."""

    opcodes: tuple[str, ...]  # first words of the instructions it may know; several families can name the same one
    # gives the operation, with all its choices made, or None for a form it does not know. Called once per static instruction.
    bind: Callable[[PtxInstruction], Operation | None]


def same_types(evaluate: Callable[..., Any], kind: ScalarType, sources: int) -> LaneOperation:
    """An operation whose sources and single result are of one type."""
    return LaneOperation(evaluate=evaluate, source_types=(kind,) * sources, result_types=(kind,))
