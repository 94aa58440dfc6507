"""Values that a thread stores to the same address again and again."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from gpa_lsp.code.binary.opcodes import Access, MemorySpace
from gpa_lsp.diagnosis.advice.blamed_stalls import (
    build_regions,
    count_samples,
    describe_causes,
    find_edges,
    mark_reasons,
)
from gpa_lsp.diagnosis.advice.matches import EliminationMatch
from gpa_lsp.diagnosis.advice.model import Hotspot
from gpa_lsp.diagnosis.advice.naming import describe_place
from gpa_lsp.diagnosis.advice.optimizers import Found, Optimizer
from gpa_lsp.diagnosis.advice.work_left import count_work_left
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.foundation.prose import NOTHING, Sentence, capitalize, count, say
from gpa_lsp.kernel.dataflow.accesses import GLOBAL_SPACES, mark_accesses
from gpa_lsp.kernel.dataflow.repeated_stores import RepeatedStores, find_repeated_stores

_WAITS = ("long_scoreboard", "short_scoreboard")


def match(subject: Subject) -> Found:
    """A sum that grows in memory is stored each time, and no load behind a store is issued before it.

    Matched: stores of a thread to an address that does not change between them, in a loop or one after the other, with the loads of the same
    address. All but the last need not be. The waits for other loads between them go as far as their copies, then issued together, overlap: of k
    copies one wait stays.

    Source: GPA Section VII, lud (reordering by hand across the stores that forbid it to the compiler).
    """
    found = find_repeated_stores(subject.rows)
    if not found:
        return say("no thread stores to the same address again and again")
    gone, waits = _weigh_rows(subject, found)
    edges = find_edges(subject, (gone > 0) | (waits > 0))
    rows = subject.edges.def_row[edges]
    weights = np.where(mark_reasons(subject, _WAITS)[edges], np.maximum(gone, waits)[rows], gone[rows])
    if count_samples(subject, edges, weights) == 0:
        return say("no warp is stalled at stores that the next one overwrites")
    stores = {row for one in found for row in one.stores}
    return EliminationMatch(
        regions=build_regions(subject, edges, weights, write_hint=lambda _scope, spots: _name(subject, spots, stores)),
        work=count_work_left(subject, executions=gone),
        hint=say(
            "Keep the value of {store} in a local variable while it grows, and store it once at the end: each store keeps the loads behind it "
            "from being issued earlier.",
            store=describe_place(subject, found[0].stores[0]),
        ),
        caveats=(say("Other threads must not need the values in between."),),
        reasons=tuple(_explain(one) for one in found[:1]),
    )


def _weigh_rows(
    subject: Subject, found: Sequence[RepeatedStores]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """float64[n]: the part of each row's executions that goes, and the part of the waits for each load between the stores."""
    gone, waits = np.zeros(len(subject.rows)), np.zeros(len(subject.rows))
    loads = mark_accesses(subject.rows, (*GLOBAL_SPACES, MemorySpace.SHARED), (Access.LOAD,))
    for one in found:
        gone[[*one.stores, *one.loads]] = one.removable_ratio
        between = np.arange(one.first_row, one.last_row + 1)
        waits[between[loads[between]]] = 1 - 1 / len(one.stores)
    return gone, waits


def _name(subject: Subject, hotspots: Sequence[Hotspot], stores: set[int]) -> Sentence:
    def describe(row: int) -> Sentence:
        if row not in stores:
            return NOTHING
        return say("{store} is overwritten by the next store.", store=capitalize(describe_place(subject, row)))

    return describe_causes(hotspots, describe)


def _explain(one: RepeatedStores) -> Sentence:
    stores = count(round(one.repeats), "store")
    if not one.loads:
        return say("{stores} to one address in a row, of which one is needed", stores=stores)
    loads = count(len(one.loads), "load")
    return say(
        "{stores} to one address in a row, of which one is needed, and {loads} of it", stores=stores, loads=loads
    )


OPTIMIZER = Optimizer(
    name="register_accumulation",
    title="Accumulate in a register",
    group="memory traffic",
    find=match,
)
