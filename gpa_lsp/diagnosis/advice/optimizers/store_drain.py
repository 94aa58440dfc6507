"""Warps that have ended but for their stores, and keep their place until the stores are done."""

from collections.abc import Sequence

import numpy as np

from gpa_lsp.code.binary.opcodes import Access
from gpa_lsp.diagnosis.advice.blamed_stalls import build_regions, describe_causes, mark_reasons
from gpa_lsp.diagnosis.advice.matches import EliminationMatch
from gpa_lsp.diagnosis.advice.model import Hotspot, SilenceStage
from gpa_lsp.diagnosis.advice.naming import describe_place
from gpa_lsp.diagnosis.advice.optimizers import Found, NotApplicable, Optimizer
from gpa_lsp.diagnosis.advice.residency import WAVES, count_waves
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.foundation.prose import NOTHING, Sentence, capitalize, count, number, say

_DRAIN = "drain"
_STORES = (Access.STORE, Access.REDUCTION)


def match(subject: Subject) -> Found:
    """Stalls after the last instruction, for stores.

    Matched: ``drain`` stalls times 1 − 1 / waves. Blocks that do the work of all the waves one after the other drain once instead of once a
    wave; in between, their stores are in flight while they go on. Approximation: going on costs nothing, which the memory's roof corrects where
    the stores fill it.

    Source: stall reasons of Nsight Compute; not in the publication. In published reports kernels that only store spend 0.27 to 0.60 of their
    samples so, and those of them that leave the memory half idle are the ones to gain.
    """
    draining = subject.rows.count_reason(_DRAIN)
    if draining == 0:
        return say("no warp is stalled on its stores at exit")
    waves = count_waves(subject) or 0.0
    if waves <= 1.0:
        return NotApplicable(
            SilenceStage.GATED,
            say(
                "{samples} stalled on stores at exit, but with {waves} of blocks each slot drains only once",
                samples=count(draining, "sample"),
                waves=number(waves, "wave"),
            ),
        )
    regions = build_regions(
        subject,
        np.flatnonzero(mark_reasons(subject, (_DRAIN,))),
        1.0 - 1.0 / waves,
        write_hint=lambda _scope, hotspots: _name_stores(subject, hotspots),
    )
    if not regions:
        return say("no store was found for the {samples} stalled on stores", samples=count(draining, "sample"))
    return EliminationMatch(
        regions=regions,
        hint=say(
            "Let each thread process several elements in a grid-stride loop, with as many blocks as fit on the GPU at once: stores then "
            "overlap with further work, and blocks drain once instead of {waves}.",
            waves=count(waves, "time"),
        ),
        caveats=(say("Where the stores saturate the memory bandwidth, their stalls only move."),),
        reasons=(
            say(
                "{samples} at the end of {waves} of blocks, all waves but one counted",
                samples=count(draining, "sample"),
                waves=number(waves, "wave"),
            ),
        ),
    )


def _name_stores(subject: Subject, hotspots: Sequence[Hotspot]) -> Sentence:
    """The stores that warps are stalled on."""

    def describe(row: int) -> Sentence:
        if subject.rows.opcode(row).access not in _STORES:
            return NOTHING
        return say("{store} is still in flight when its warps exit.", store=capitalize(describe_place(subject, row)))

    return describe_causes(hotspots, describe)


OPTIMIZER = Optimizer(
    name="store_drain",
    title="Overlap stores with further work",
    group="stores",
    needs_metrics=(WAVES,),
    find=match,
)
