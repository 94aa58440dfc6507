"""Which writes inside one basic block a read can see: guards that cannot hold together are told apart.

Two guards of the same predicate exclude each other as long as nothing writes that predicate between them. So the value of a write is gone
behind another one under the same guard, nothing from before survives two writes under opposite guards, and a read does not see what was written
under the guard opposite to its own. What is known of a predicate ends with the block.
"""

from bisect import bisect_left, bisect_right
from typing import NamedTuple

from gpa_lsp.report.code_index import CodeIndex

UNGUARDED = -1


class SeenWrites(NamedTuple):
    """What a read sees.

    Attributes:
        rows: writes of the block, the nearest first.
        is_open: a value from before the block may be read too.
    """

    rows: list[int]
    is_open: bool


class SeenReads(NamedTuple):
    """Who sees a value.

    Attributes:
        rows: reads of the block, ascending.
        is_open: the value may leave the block.
    """

    rows: list[int]
    is_open: bool


_NONE_WRITTEN = SeenWrites([], True)


def scan_back(index: CodeIndex, resource: int, row: int, first: int, condition: int = UNGUARDED) -> SeenWrites:
    """The writes of a resource that may be seen at a place of a block.

    Args:
        index: of the code.
        resource: its number.
        row: the place; writes before it are looked at.
        first: the block's first row, or where to stop.
        condition: under which the resource is read there, as :attr:`~gpa_lsp.report.code_index.CodeIndex.condition`.
    """
    writes = index.writes(resource)
    place = bisect_left(writes, row)
    if not place or writes[place - 1] < first:
        return _NONE_WRITTEN
    seen: list[int] = []
    covered = (
        {} if condition == UNGUARDED else {condition ^ 1: row}
    )  # under these conditions nothing earlier is seen from these rows on
    while place and writes[place - 1] >= first:
        place -= 1
        write = writes[place]
        under = index.condition[write]
        if under == UNGUARDED:
            seen.append(write)
            return SeenWrites(seen, False)
        guard = index.guard[write]
        behind, opposite = covered.get(under), covered.get(under ^ 1)
        if behind is None or not _is_kept(index, guard, write, behind):
            seen.append(write)
            if opposite is not None and _is_kept(index, guard, write, opposite):
                return SeenWrites(seen, False)
        covered[under] = write
    return SeenWrites(seen, True)


def scan_on(index: CodeIndex, resource: int, start: int, last: int, condition: int = UNGUARDED) -> SeenReads:
    """The reads of a block that may see a value, the opposite of :func:`scan_back`.

    Args:
        index: of the code.
        resource: its number.
        start: the row that wrote it; one before the block for a value that comes from before.
        last: the block's last row.
        condition: under which the row wrote it.
    """
    reads, writes = index.reads(resource), index.writes(resource)
    place, end = bisect_right(reads, start), bisect_right(reads, last)
    written, written_end = bisect_right(writes, start), bisect_right(writes, last)
    if written == written_end and condition == UNGUARDED:
        return SeenReads(list(reads[place:end]), True)
    seen: list[int] = []
    gone = (
        {} if condition == UNGUARDED else {condition ^ 1: start}
    )  # under these conditions the value is not there, since these rows
    for write in writes[written:written_end]:
        while place < end and reads[place] <= write:
            if _sees(index, reads[place], gone):
                seen.append(reads[place])
            place += 1
        under = index.condition[write]
        if under == UNGUARDED:
            return SeenReads(seen, False)
        opposite = gone.get(under ^ 1)
        if opposite is not None and _is_kept(index, index.guard[write], opposite, write):
            return SeenReads(seen, False)
        gone[under] = write
    seen.extend(read for read in reads[place:end] if _sees(index, read, gone))
    return SeenReads(seen, True)


def _sees(index: CodeIndex, read: int, gone: dict[int, int]) -> bool:
    since = gone.get(index.condition[read])
    return since is None or not _is_kept(index, index.guard[read], since, read)


def _is_kept(index: CodeIndex, guard: int, start: int, end: int) -> bool:
    """Whether a predicate is the same at two rows of a block, the first of which may write it."""
    writes = index.writes(guard)
    place = bisect_left(writes, start)
    return place == len(writes) or writes[place] >= end
