"""The pipeline of a round: what the paper says of it, on operations written by hand."""

import random
from collections.abc import Sequence
from itertools import chain

import numpy as np
import pytest

from gpa_lsp.code.ptx.model import Address
from gpa_lsp.execution.hybrid.contention import RoundUses, Use, simulate_round
from gpa_lsp.execution.hybrid.operations import Arithmetic, Operation, Part, Resource, hoist_loads

ADD = Use(Resource.ARITHMETIC, 0.0, 2.0, 0.0)
LOAD = Use(Resource.GLOBAL, 10.0, 4.0, 10.0)
SHARED = Use(Resource.SHARED, 3.0, 2.0, 3.0)
CONSTANT = Use(Resource.CONSTANT, 5.0, 1.0, 5.0)
BARRIER = Use(Resource.BARRIER, 0.0, 0.0, 0.0)


def number_uses(uses: Sequence[Sequence[Use]]) -> RoundUses:
    """The uses of warps as numbers."""
    known: dict[Use, int] = {}
    numbers = np.array([known.setdefault(one, len(known)) for one in chain.from_iterable(uses)], np.int32)
    return RoundUses(table=tuple(known), numbers=numbers, starts=np.cumsum([0, *map(len, uses)], dtype=np.int64))


@pytest.mark.parametrize(
    ("warps", "block_warps", "cycles"),
    [
        ([[ADD, LOAD, ADD]], 1, 2 + 24 + 2),  # a warp alone takes the sum of its latencies
        ([[ADD] * 5] * 4, 4, 4 * 5 * 2),  # warps take turns at what they share
        ([[ADD] * 10, [LOAD]], 2, 24),  # what they do not share overlaps
        ([[LOAD]] * 3, 3, 10 + 3 * 4 + 10),  # only the delay is held
        ([[ADD] * 10 + [BARRIER, ADD], [BARRIER, SHARED]], 2, 20 + 8),
        ([[ADD] * 10 + [BARRIER, ADD], [BARRIER, SHARED]], 1, 22),  # a barrier is for its block alone
        ([[ADD], [BARRIER, ADD], []], 3, 4),  # and not for warps that have ended
        ([[], []], 2, 0),
    ],
)
def test_what_a_round_takes(warps: list[list[Use]], block_warps: int, cycles: int) -> None:
    assert simulate_round(number_uses(warps), block_warps) == cycles


def test_the_trace_of_figure_2() -> None:
    """Two blocks of four warps; with so much arithmetic the barrier costs nothing."""
    busy = Use(Resource.ARITHMETIC, 0.0, 6.0, 0.0)
    trace = [busy, CONSTANT, busy, SHARED, BARRIER, busy, LOAD]
    cycles = simulate_round(number_uses([trace] * 8), 4)
    arithmetic = 8 * 3 * 6
    assert arithmetic + 24 <= cycles <= arithmetic + 24 + 8 + 12


@pytest.mark.parametrize("seed", range(20))
def test_no_round_is_shorter_than_its_longest_warp_or_its_busiest_resource(seed: int) -> None:
    maker = random.Random(seed)
    warps = maker.randint(1, 12)
    own = maker.choice([one for one in (1, 2, 3, 4) if warps % one == 0])
    barriers = maker.randint(0, 3)
    uses = []
    for _ in range(warps):
        parts = [maker.choices((ADD, LOAD, SHARED, CONSTANT), k=maker.randint(0, 6)) for _ in range(barriers + 1)]
        uses.append([one for number, part in enumerate(parts) for one in ([BARRIER] if number else []) + part])
    cycles = simulate_round(number_uses(uses), own)
    alone = [sum(one.before_cycles + one.locked_cycles + one.after_cycles for one in trace) for trace in uses]
    held = [sum(one.locked_cycles for trace in uses for one in trace if one.resource is kind) for kind in Resource]
    assert max((*alone, *held)) <= cycles <= sum(alone)


def test_a_warp_that_waits_for_operands_goes_on_past_a_load() -> None:
    load = Use(Resource.GLOBAL, 0.0, 4.0, 16.0, (), (1,))
    other = Use(Resource.ARITHMETIC, 0.0, 2.0, 0.0, (2,), (2,))
    needs = Use(Resource.ARITHMETIC, 0.0, 2.0, 0.0, (1,), (3,))
    hands_on = Use(Resource.REGISTER, 0.0, 0.0, 0.0, (1,), (4,))
    later = Use(Resource.ARITHMETIC, 0.0, 2.0, 0.0, (4,), (5,))
    assert simulate_round(number_uses([[load, other, other, needs]]), 1, by_operands=True) == 20 + 2
    assert simulate_round(number_uses([[load, other, other, needs]]), 1) == 20 + 3 * 2
    assert simulate_round(number_uses([[load, other, hands_on, later]]), 1, by_operands=True) == 20 + 2
    assert simulate_round(number_uses([[load, other]]), 1, by_operands=True) == 20, (
        "its own end waits for what it loads"
    )


def test_a_block_begins_where_one_has_ended() -> None:
    long, short = [ADD] * 10, [LOAD]
    assert simulate_round(number_uses([short, short]), 1, blocks=4) < 2 * simulate_round(number_uses([short, short]), 1)
    assert simulate_round(number_uses([long]), 1, blocks=3) == 3 * simulate_round(number_uses([long]), 1)


@pytest.mark.parametrize("seed", range(20))
def test_hoisting_keeps_what_depends_in_order(seed: int) -> None:
    maker = random.Random(seed)
    kinds = [
        Operation(instruction=0, resource=Resource.ARITHMETIC, arithmetic=Arithmetic.SINGLE),
        Operation(instruction=0, resource=Resource.GLOBAL, address=Address(base=None)),
        Operation(instruction=0, resource=Resource.GLOBAL, address=Address(base=None), is_store=True),
        Operation(instruction=0, resource=Resource.BARRIER),
        None,
    ]
    weights = (8, 4, 1, 1, 3)
    parts = [
        Part(operation=kind, reads=(maker.randint(0, 5), 100 + number), writes=(maker.randint(0, 5),))
        for number, (kind,) in enumerate(maker.choices(kinds, weights) for _ in range(60))
    ]
    hoisted = hoist_loads(parts)
    assert sorted(one.reads[1] for one in hoisted) == [100 + number for number in range(60)]
    place = {one.reads[1]: at for at, one in enumerate(hoisted)}
    for number, one in enumerate(parts):
        for other in parts[number + 1 :]:
            depends = {one.writes[0]} & {other.reads[0], *other.writes} or one.reads[0] in other.writes
            is_fence = (kinds[2], kinds[3])
            if depends or (one.operation in is_fence and other.operation in (kinds[1], *is_fence)):
                assert place[one.reads[1]] < place[other.reads[1]]
