"""Defs and uses of one function: registers, uniform registers, predicates, and scoreboards as registers of their own.

The six scoreboards become the *virtual barrier registers* B0–B5: an instruction that sets one defines it, one that waits for it uses it. So a
wait that touches no register of the instruction waited for is a def-use pair like any other.

Block barriers, fences and their like write no register either; each kind of them is one more resource, which they define, and which what waits
for such a thing uses. Convergence barriers (BSSY, BSYNC) are left out, as published.

Source: GPA section IV, "Virtual barrier registers" and Figure 3.
"""

from collections.abc import Collection, Mapping, Sequence
from itertools import chain, pairwise

import numpy as np
from msgspec import Struct

from gpa_lsp.code.binary.model import ResourceKind, ResourceLists
from gpa_lsp.code.binary.opcodes import Synchronisation
from gpa_lsp.diagnosis.blame.barriers import SCOREBOARD_COUNT, SCOREBOARDS_OF, find_dependency_barriers
from gpa_lsp.diagnosis.blame.view import FunctionView
from gpa_lsp.foundation.distinct import find_distinct

UNCONDITIONAL = -1  # The condition of an instruction without a guard

_FIRST_SCOREBOARD = 5 << 8
_FIRST_SYNCHRONISATION = 6 << 8
_KINDS_OF_SYNCHRONISATION = tuple(Synchronisation)


def number_scoreboard(scoreboard: int) -> int:
    """The number of a scoreboard among resource numbers, which end below.

    >>> number_scoreboard(2)
    1282
    """
    return _FIRST_SCOREBOARD + scoreboard


def is_scoreboard(resource: int) -> bool:
    """Whether a number stands for a virtual barrier register.

    >>> is_scoreboard(number_scoreboard(0)), is_scoreboard(515)
    (True, False)
    """
    return _FIRST_SCOREBOARD <= resource < _FIRST_SCOREBOARD + SCOREBOARD_COUNT


def number_synchronisation(kind: Synchronisation) -> int:
    """The number of a kind of synchronisation among resource numbers.

    >>> number_synchronisation(Synchronisation.BLOCK)
    1536
    """
    return _FIRST_SYNCHRONISATION + _KINDS_OF_SYNCHRONISATION.index(kind)


class DefUse(Struct, frozen=True, kw_only=True):
    """Defs and uses of the n instructions of a function.

    Resources are resource numbers, :func:`number_scoreboard` and :func:`number_synchronisation`. The latter have no uses: samples say what waits.
    """

    definitions: Mapping[int, Sequence[int]]  # resource → instructions that define it, ascending
    plain_uses: Mapping[int, Sequence[int]]  # resource → instructions without a guard that use it, ascending
    # n tuples, what each instruction uses: scoreboards it waits for, then resources it reads, ascending
    uses: Sequence[tuple[int, ...]]
    # n conditions under which the instructions execute: twice the guard's number, plus one where it is negated; :data:`UNCONDITIONAL` without a guard
    condition: Sequence[int]
    guarded: frozenset[int]  # resources that some instruction defines under a condition
    # n tuples parallel to ``uses``, the def in the same block that hides all others; -1 where none does. Of resources that are not in ``guarded``.
    near: Sequence[tuple[int, ...]]
    # n numbers of the scoreboard that an instruction releases once it has read its operands; -1 where it has none, or uses the one of its result
    operand_scoreboard: Sequence[int]


def find_def_use(view: FunctionView) -> DefUse:
    """Collect the defs and uses of a function."""
    instructions = view.instructions
    is_guarded = instructions.guard >= 0
    twice = 2 * instructions.guard.astype(np.int64)
    condition: list[int] = np.where(is_guarded, twice + instructions.guard_negated, UNCONDITIONAL).tolist()
    definitions = _group_writes(view)
    uses = _list_uses(view)
    plain_uses: dict[int, list[int]] = {}
    for row, used in enumerate(uses):
        if condition[row] == UNCONDITIONAL:
            for resource in used:
                plain_uses.setdefault(resource, []).append(row)
    guarded = frozenset(resource for resource, rows in definitions.items() if is_guarded[rows].any())
    read, written = (column.astype(np.int64) for column in (view.control.read_barrier, view.control.write_barrier))
    return DefUse(
        definitions=definitions,
        plain_uses=plain_uses,
        uses=uses,
        condition=condition,
        guarded=guarded,
        near=_find_near(view, definitions, uses, guarded),
        operand_scoreboard=np.where(
            (read < SCOREBOARD_COUNT) & (read != written), number_scoreboard(0) + read, -1
        ).tolist(),
    )


def _group_writes(view: FunctionView) -> dict[int, list[int]]:
    """Resource → the instructions that write it, set it (a scoreboard), or are it (a synchronisation)."""
    writes, control, count = view.instructions.writes, view.control, len(view)
    kinds = np.array(
        [-1 if one.synchronises is None else number_synchronisation(one.synchronises) for one in view.flow.opcodes]
    )
    synchronises = kinds[view.instructions.mnemonic_index]
    rows = [np.repeat(np.arange(count), np.diff(writes.starts)), np.flatnonzero(synchronises >= 0)]
    numbers = [writes.numbers.astype(np.int64), synchronises[rows[1]].astype(np.int64)]
    for column in (control.write_barrier, control.read_barrier):
        setters = np.flatnonzero(column < SCOREBOARD_COUNT)
        rows.append(setters)
        numbers.append(number_scoreboard(0) + column[setters].astype(np.int64))
    pairs = find_distinct(np.concatenate(numbers) * count + np.concatenate(rows))
    found, starts = np.unique(pairs // count, return_index=True)
    groups = np.split(pairs % count, starts[1:])
    return {
        resource: group.tolist()
        for resource, group in zip(found.tolist(), groups, strict=False)
        if resource >> 8 != ResourceKind.CONVERGENCE_BARRIER
    }


def _list_uses(view: FunctionView) -> list[tuple[int, ...]]:
    instructions = view.instructions
    waits = [tuple(map(number_scoreboard, scoreboards)) for scoreboards in SCOREBOARDS_OF]
    masks = view.control.wait_mask.tolist()
    barriers = find_dependency_barriers(
        instructions.mnemonics, instructions.mnemonic_index, instructions.texts, instructions.guard
    )
    for row, barrier in barriers.items():
        masks[row] |= barrier.every
    reads = instructions.reads
    kept = reads.numbers >> 8 != ResourceKind.CONVERGENCE_BARRIER
    starts = np.concatenate([[0], np.cumsum(kept)])[reads.starts]
    read = ResourceLists(starts=starts.astype(np.int32), numbers=reads.numbers[kept]).split()
    return [waits[mask] + numbers for mask, numbers in zip(masks, read, strict=True)]


def _find_near(
    view: FunctionView,
    definitions: Mapping[int, Sequence[int]],
    uses: Sequence[tuple[int, ...]],
    guarded: Collection[int],
) -> list[tuple[int, ...]]:
    """Compute ``near`` of :class:`DefUse`."""
    count = len(uses)
    starts = np.cumsum([0, *map(len, uses)])
    rows = np.repeat(np.arange(count), np.diff(starts))
    resources = np.fromiter(chain.from_iterable(uses), dtype=np.int64, count=int(starts[-1]))
    # Defs and uses on one axis, resource by resource; before all of them stands a def of nothing.
    keys = [np.array([-count])]
    keys += [np.array(definitions[one]) + one * count for one in sorted(definitions) if one not in guarded]
    defs = np.concatenate(keys)
    last = defs[np.searchsorted(defs, resources * count + rows) - 1] - resources * count
    is_near = last >= view.graph.first_instruction[view.graph.block_of_instruction][rows]
    found = np.where(is_near, last, -1).tolist()
    return [tuple(found[first:end]) for first, end in pairwise(starts.tolist())]
