"""Pieces of traces: some blocks of one, and one of several."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from gpa_lsp.emulator.trace import ACCESS_DTYPES, BRANCH_DTYPES, ENTRY_DTYPES, Accesses, Branches, Entries, Trace


def join_pieces(pieces: Sequence[Trace]) -> Trace:
    """One trace of pieces of different blocks, in order.

    Args:
        pieces: at least one; the instructions of a later one begin with those of an earlier one.
    """
    if len(pieces) == 1:
        return pieces[0]
    every = [piece.accesses for piece in pieces]
    starts = np.cumsum([0, *(len(one.addresses) for one in every[:-1])]).astype(np.uint64)
    accesses = {name: np.concatenate([getattr(one, name) for one in every]) for name in ACCESS_DTYPES}
    accesses["first_address"] = np.concatenate(
        [one.first_address + start for one, start in zip(every, starts, strict=True)]
    )
    branches = {name: np.concatenate([getattr(piece.branches, name) for piece in pieces]) for name in BRANCH_DTYPES}
    entries = {name: np.concatenate([getattr(piece.entries, name) for piece in pieces]) for name in ENTRY_DTYPES}
    return replace(
        pieces[-1],
        accesses=Accesses(**accesses, addresses=np.concatenate([one.addresses for one in every])),
        branches=Branches(**branches),
        entries=Entries(**entries),
        traced_blocks=np.sort(np.concatenate([piece.traced_blocks for piece in pieces])),
        is_complete=all(piece.is_complete for piece in pieces),
    )


def keep_blocks(trace: Trace, blocks: Sequence[int]) -> Trace | None:
    """The accesses in some blocks, without branches and entries; None where the trace has none of the blocks."""
    traced = np.intersect1d(trace.traced_blocks, np.array(blocks, dtype=np.int64)).astype(np.uint32)
    if not len(traced):
        return None
    rows = trace.accesses
    kept = np.isin(rows.block, traced)
    ends = np.append(rows.first_address[1:], np.uint64(len(rows.addresses))).astype(np.int64)
    lengths: npt.NDArray[np.int64] = ends - rows.first_address.astype(np.int64)
    columns: dict[str, Any] = {name: getattr(rows, name)[kept] for name in ACCESS_DTYPES}
    columns["first_address"] = (np.cumsum(lengths[kept]) - lengths[kept]).astype(np.uint64)
    return replace(
        trace,
        accesses=Accesses(**columns, addresses=rows.addresses[np.repeat(kept, lengths)]),
        branches=Branches(**{name: np.zeros(0, dtype) for name, dtype in BRANCH_DTYPES.items()}),
        entries=Entries(**{name: np.zeros(0, dtype) for name, dtype in ENTRY_DTYPES.items()}),
        traced_blocks=traced,
    )
