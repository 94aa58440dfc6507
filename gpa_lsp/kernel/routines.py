"""The routines of a function section: the function itself, and the local functions the compiler put behind it."""

import numpy as np
import numpy.typing as npt

from gpa_lsp.binary.model import Function, LineTable


def index_routines(function: Function | None, pc_offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
    """Which routine each instruction belongs to.

    Args:
        function: the section's function; None for code that is not there, which is one routine.
        pc_offsets: int64[n].

    Returns:
        int32[n]: 0 for the section's own function, i + 1 for ``function.sub_functions[i]``. Where damaged symbols overlap, the first counts.
    """
    index = np.zeros(len(pc_offsets), dtype=np.int32)
    for number, sub in enumerate(function.sub_functions if function is not None else (), start=1):
        inside = (pc_offsets >= sub.start_offset) & (pc_offsets < sub.start_offset + sub.size_bytes)
        index[inside & (index == 0)] = number
    return index


def index_chains(
    function: Function | None, lines: LineTable | None, pc_offsets: npt.NDArray[np.int64]
) -> npt.NDArray[np.int32]:
    """The inline chain of each instruction.

    A line table's row holds until the next one, and so on into a local function that has no rows of its own (the slow path of a division):
    the table then gives it the last line of the code before it, where it was not written. Such instructions have no line here.

    Returns:
        int32[n] into ``lines.chains``; -1 without a line.
    """
    if lines is None:
        return np.full(len(pc_offsets), -1, dtype=np.int32)
    index = lines.chain_index(pc_offsets)
    for sub in function.sub_functions if function is not None else ():
        own_rows = lines.row_offsets[lines.row_offsets >= sub.start_offset]
        first_row = int(own_rows[0]) if len(own_rows) else sub.start_offset + sub.size_bytes
        lined_from = min(first_row, sub.start_offset + sub.size_bytes)
        index[(pc_offsets >= sub.start_offset) & (pc_offsets < lined_from)] = -1
    return index
