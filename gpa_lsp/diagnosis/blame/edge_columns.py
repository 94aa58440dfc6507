"""Edges as columns: the many that stay with their instruction, made without an object each, and laid together with others."""

from collections.abc import Sequence

import numpy as np

from gpa_lsp.diagnosis.blame.categories import find_category
from gpa_lsp.diagnosis.blame.model import BlameEdges, Dependency
from gpa_lsp.diagnosis.blame.operands import NO_RESOURCE
from gpa_lsp.diagnosis.blame.view import FunctionView


def blame_themselves(view: FunctionView, reasons: Sequence[int]) -> BlameEdges:
    """Edges from every instruction to itself, for the samples of some reasons; groups count from 0."""
    chosen = np.array(reasons, dtype=np.int64)
    rows, places = np.nonzero(view.all_samples[:, chosen])
    columns = chosen[places]
    categories = np.zeros((len(view.opcodes), len(view.reasons)), dtype=np.uint8)
    for reason in reasons:
        categories[:, reason] = [
            find_category(opcode, Dependency.ITSELF, view.reasons[reason]) for opcode in view.opcodes
        ]
    count = len(rows)
    return BlameEdges(
        use_row=rows.astype(np.int32),
        def_row=rows.astype(np.int32),
        reason=columns.astype(np.int16),
        category=categories[view.instructions.mnemonic_index[rows], columns],
        dependency=np.full(count, Dependency.ITSELF, dtype=np.uint8),
        resource=np.full(count, NO_RESOURCE, dtype=np.int16),
        group=np.arange(count, dtype=np.int32),
        all_samples=view.all_samples[rows, columns].astype(np.float64),
        latency_samples=view.latency_samples[rows, columns].astype(np.float64),
        distance_cycles=np.zeros(count, dtype=np.int32),
        distance_instructions=np.zeros(count, dtype=np.int32),
    )


def merge_edges(first: BlameEdges, second: BlameEdges) -> BlameEdges:
    """Edges of one function from two places, in order; the groups of ``second`` are numbered after those of ``first``."""
    columns = {
        name: np.concatenate([getattr(first, name), getattr(second, name)]) for name in BlameEdges.__struct_fields__
    }
    columns["group"][len(first) :] += int(first.group.max()) + 1 if len(first) else 0
    order = np.lexsort((columns["group"], columns["def_row"], columns["reason"], columns["use_row"]))
    return BlameEdges(**{name: column[order] for name, column in columns.items()})
