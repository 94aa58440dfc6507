"""Def-use pairs inside basic blocks: for each register an instruction reads, the last instruction before it in its block that wrote it."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from gpa_lsp.binary.control_code import NO_BARRIER
from gpa_lsp.blame.operands import RegisterUses
from gpa_lsp.blame.view import FunctionView


def find_fixed_latency_defs(view: FunctionView, is_use: npt.NDArray[np.bool_]) -> Iterator[tuple[int, int]]:
    """The (use, def) rows of values that come from instructions of fixed latency, in the order of uses.

    A value from before the block is left out: the stall counts since have paid for it, or are too few to matter. So is a value behind a
    scoreboard, which its counter stands for.

    Args:
        view: the function.
        is_use: bool[n], the uses that are asked about.
    """
    uses = RegisterUses(view.instructions)
    has_scoreboard = (view.control.write_barrier != NO_BARRIER).tolist()
    first_rows = view.graph.first_instruction[view.graph.block_of_instruction].tolist()
    last_write: dict[int, int] = {}
    for row, wanted in enumerate(is_use.tolist()):
        if wanted:
            sources = {last_write.get(number, -1) for number in uses.reads(row)}
            yield from ((row, source) for source in sorted(sources) if source >= first_rows[row])
        for number in uses.writes(row):
            last_write[number] = -1 if has_scoreboard[row] else row
