"""Warps that have ended but for their stores, and keep their place until the stores are done."""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from gpa_lsp.advice.blamed_stalls import build_regions, find_edges
from gpa_lsp.advice.hint_words import begin_sentence, join_sentences
from gpa_lsp.advice.matches import EliminationMatch
from gpa_lsp.advice.model import Category, Hotspot, Silence, SilenceStage
from gpa_lsp.advice.optimizers import EliminationOptimizer
from gpa_lsp.advice.source_words import describe_place
from gpa_lsp.advice.subject import Subject
from gpa_lsp.binary.opcodes import Access

_DRAIN = "drain"
_WAVES = "launch__waves_per_multiprocessor"
_STORES = (Access.STORE, Access.REDUCTION)
_MOST_SENTENCES = 2


class StoreDrain(EliminationOptimizer):
    """Stalls after the last instruction, for stores.

    Matched: ``drain`` stalls times 1 − 1 / waves. Blocks that do the work of all the waves one after the other drain once instead of once a
    wave; in between, their stores are under way while they go on. Approximation: going on costs nothing, which the memory's roof corrects where
    the stores fill it.

    Source: stall reasons of Nsight Compute; not in the publication. In published reports kernels that only store spend 0.27 to 0.60 of their
    samples so, and those of them that leave the memory half idle are the ones to gain.
    """

    name: ClassVar[str] = "store_drain"
    title: ClassVar[str] = "Blocks that go on while stores are under way"
    category: ClassVar[Category] = Category.CODE
    group: ClassVar[str] = "stores"
    needs_metrics: ClassVar[tuple[str, ...]] = (_WAVES,)

    def match(self, subject: Subject) -> EliminationMatch | Silence:
        """Find stalls for stores at the exit."""
        if not subject.rows.has_code:
            return self.silent(SilenceStage.NO_CODE, "the code could not be disassembled")
        draining = subject.rows.count_reason(_DRAIN)
        if draining == 0:
            return self.silent(SilenceStage.NOT_MATCHED, "no warp waits for its stores at the end")
        waves = subject.metric(_WAVES) or 0.0
        if waves <= 1.0:
            message = f"{draining:,} samples wait for stores at the end, but with {waves:.1f} waves of blocks each place drains only once"
            return self.silent(SilenceStage.GATED, message)
        edges = find_edges(subject, np.ones(len(subject.rows), dtype=np.bool_), (_DRAIN,))
        regions = build_regions(
            subject,
            edges,
            np.full(len(edges), 1.0 - 1.0 / waves),
            write_hint=lambda _scope, hotspots: _name_stores(subject, hotspots),
        )
        if not regions:
            return self.silent(
                SilenceStage.NOT_MATCHED, f"the {draining:,} samples that wait for stores could not be blamed on any"
            )
        return EliminationMatch(
            keeps_instructions=True,
            regions=regions,
            hint=(
                "Let each thread do several elements in a grid-stride loop, with as many blocks as fit on the GPU at once: their stores are then "
                f"under way while they go on, and blocks drain once instead of {waves:.0f} times."
            ),
            caveats=("Where the stores themselves fill the memory's bandwidth, waiting for them only moves.",),
            reasons=(f"{draining:,} samples at the end of {waves:.1f} waves of blocks, all waves but one counted",),
        )


def _name_stores(subject: Subject, hotspots: Sequence[Hotspot]) -> str:
    """The stores that are waited for."""
    rows = [hotspot.def_row for hotspot in hotspots if subject.rows.opcode(hotspot.def_row).access in _STORES]
    return join_sentences(
        (f"{begin_sentence(describe_place(subject, row))} is still under way when its warps end." for row in rows),
        _MOST_SENTENCES,
    )


OPTIMIZER = StoreDrain()
