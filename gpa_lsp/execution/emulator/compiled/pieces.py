"""Which operations of a kernel can be written in C together: :func:`find_pieces`.

The interpreter executes an operation by all warps before it turns to the next one, a piece all its operations by one warp before the next warp.
Pieces end before an access that could tell the difference: one to where another of the piece stores, or that stores where another of it loads.
"""

from collections.abc import Iterable, Sequence

from msgspec import Struct

from gpa_lsp.code.ptx.model import Space
from gpa_lsp.execution.emulator.compiled.lowering import Operation
from gpa_lsp.execution.emulator.compiled.model import DIVIDE, LOAD, OPERATION, PYTHON, STORE, End
from gpa_lsp.execution.emulator.compiled.program import EXCHANGES, PRODUCT, CompiledKernel
from gpa_lsp.execution.emulator.engine.fragments import Segment

_MOST_APART = 256  # Pairs of accesses of a piece that must go to different regions: each is looked at before it runs
_MOST_OPERATIONS = 128  # Of a piece: C compilers take longer for each the more a function has
_IN_REGIONS = frozenset({Space.GENERIC, Space.GLOBAL, Space.CONST, Space.PARAM})


class Piece(Struct, frozen=True, kw_only=True):
    """Operations that are executed together."""

    first: int  # number of the first one
    operations: tuple[Operation, ...]  # all of them
    needed: frozenset[int]  # places written that somebody reads later
    apart: tuple[tuple[int, int], ...]  # accesses, by number, that must go to different regions

    @property
    def end(self) -> int:
        """Number of the first operation behind it."""
        return self.first + len(self.operations)


def find_pieces(kernel: CompiledKernel, names: Sequence[str], *, checks_shared: bool) -> list[Piece]:
    """The pieces of all segments, by what the accesses went to so far."""
    fields = OPERATION.names or ()
    operations: list[Operation] = [dict(zip(fields, row, strict=True)) for row in kernel.operations.tolist()]
    for one in operations:
        one["name"] = names[one["code"]] if one["code"] < len(names) else ""
    has_products = any(one["name"] == PRODUCT for one in operations)
    exchanged = {place for one in operations if one["name"].startswith(EXCHANGES) for place in list_read(one)}
    pieces: list[Piece] = []
    for row, segment in zip(kernel.table.tolist(), kernel.segments, strict=True):
        fields_of_segment = dict(zip(kernel.table.dtype.names or (), row, strict=True))
        first, last = fields_of_segment["first"], fields_of_segment["last"]
        cuts = _Cutter(operations, checks_shared=checks_shared).cut(first, last)
        alive = None if has_products else _list_read_behind(kernel, segment, fields_of_segment)
        # Others may read the registers of lanes that need them no more.
        pieces += _build(operations, (first, last), cuts, None if alive is None else alive | exchanged)
    return pieces


def list_written(operation: Operation) -> list[int]:
    """Places that an operation writes."""
    if operation["code"] == LOAD:
        return [place for place in list(operation["places"])[: operation["elements"]] if place >= 0]
    if operation["code"] == STORE:
        return []
    return [place for place in (operation["result"], operation["other_result"]) if place >= 0]


def list_read(operation: Operation) -> list[int]:
    """Places that an operation reads; more than that where its operands are not all used."""
    found = [operation["guard"], operation["a"], operation["b"], operation["c"]]
    if operation["code"] == STORE:
        found = [operation["guard"], operation["a"], *list(operation["places"])[: operation["elements"]]]
    elif operation["code"] == LOAD:
        found = [operation["guard"], operation["a"]]
    return [place for place in found if place >= 0]


def list_read_by_python(kernel: CompiledKernel) -> list[list[int]]:
    """Places that are read behind segments; none where the core does all, for then the operations say it."""
    rows = [dict(zip(kernel.table.dtype.names or (), row, strict=True)) for row in kernel.table.tolist()]
    if PYTHON not in kernel.operations["code"] and all(row["end"] != End.PYTHON for row in rows):
        return []
    found = (_list_read_behind(kernel, segment, row) for row, segment in zip(rows, kernel.segments, strict=True))
    return [sorted(places) if places is not None else [] for places in found]


class _Cutter:
    """Parts the operations of a segment.

    Args:
        operations: of the kernel.
        checks_shared: as of :func:`find_pieces`.
    """

    def __init__(self, operations: list[Operation], *, checks_shared: bool) -> None:
        self._operations = operations
        self._checks_shared = checks_shared
        self._accesses: list[tuple[int, tuple[int, ...], tuple[int, ...]]] = []
        self._versions: dict[int, int] = {}
        self._apart: list[tuple[int, int]] = []

    def cut(self, first: int, last: int) -> list[tuple[int, int, tuple[tuple[int, int], ...]]]:
        """First and last of each piece, the last excluded, and its accesses that must stay apart."""
        found = []
        begin: int | None = None
        for number in range(first, last):
            operation = self._operations[number]
            if not self._is_known(operation):
                if begin is not None:
                    found.append((begin, number, tuple(self._apart)))
                begin = None
                continue
            if begin is None or number - begin >= _MOST_OPERATIONS or not self._joins(number, operation):
                if begin is not None:
                    found.append((begin, number, tuple(self._apart)))
                begin = number
                self._accesses, self._apart = [], []
                self._joins(number, operation)
            for place in list_written(operation):
                self._versions[place] = self._versions.get(place, 0) + 1
        if begin is not None:
            found.append((begin, last, tuple(self._apart)))
        return found

    def _is_known(self, operation: Operation) -> bool:
        code = operation["code"]
        if code < PYTHON:
            return not operation["name"].startswith(EXCHANGES)
        if code == DIVIDE:
            return True
        if code not in (LOAD, STORE) or operation["is_strong"]:
            return False
        return operation["space"] in _IN_REGIONS or (operation["space"] == Space.SHARED and not self._checks_shared)

    def _joins(self, number: int, operation: Operation) -> bool:
        """Whether an operation can be part of the piece; then it is."""
        code, place = operation["code"], operation["a"]
        if code not in (LOAD, STORE):
            return True
        version = self._versions.get(place, 0)
        guard = operation["guard"]
        key = place, version, operation["literal"], operation["element_bytes"], operation["elements"]
        lanes = guard, self._versions.get(guard, 0), operation["is_negated"]
        apart = []
        for other, other_key, other_lanes in self._accesses:
            before = self._operations[other]
            if before["code"] == code == LOAD:
                continue
            if before["code"] == code and key == other_key and (guard < 0 or lanes == other_lanes):
                continue  # all that was stored is stored over
            is_shared = operation["space"] == Space.SHARED
            if is_shared != (before["space"] == Space.SHARED):
                continue
            if is_shared or operation["region"] == before["region"] or min(operation["region"], before["region"]) < 0:
                return False  # or nobody knows
            apart.append((other, number))
        if len(self._apart) + len(apart) > _MOST_APART:
            return False
        self._apart += apart
        self._accesses.append((number, key, lanes))
        return True


def _list_read_behind(kernel: CompiledKernel, segment: Segment, row: Operation) -> set[int] | None:
    closing = segment.closing
    if closing is None or row["end"] == End.PYTHON:
        return None
    places = {row["predicate"]} if closing.guard is not None else set()
    for following in (closing.taken, closing.fallen):
        if following is not None:
            found = (kernel.frames.find(slot) for slot in following.live_in)
            places.update(place for place in found if place is not None and place >= 0)
    return places


def _build(
    operations: list[Operation],
    extent: tuple[int, int],
    cuts: Iterable[tuple[int, int, tuple[tuple[int, int], ...]]],
    behind: set[int] | None,
) -> list[Piece]:
    """Pieces, from the last one to the first, with what is read behind each."""
    first, last = extent
    everything = {place for one in operations[first:last] for place in (*list_written(one), *list_read(one))}
    alive = set(everything) if behind is None else set(behind)
    ends = {end: (begin, apart) for begin, end, apart in cuts}
    inside: range = range(0)
    pieces: list[Piece] = []
    for number in range(last, first - 1, -1):
        if number in ends:
            begin, apart = ends[number]
            inside = range(begin, number)
            chosen = tuple(operations[begin:number])
            written = {place for one in chosen for place in list_written(one)}
            pieces.append(Piece(first=begin, operations=chosen, needed=frozenset(written & alive), apart=apart))
        if number == first:
            break
        operation = operations[number - 1]
        if number - 1 not in inside and (operation["code"] >= PYTHON or operation["name"] == PRODUCT):
            alive |= everything  # what is read does not stand in the operation
            continue
        if operation["guard"] < 0:
            alive.difference_update(list_written(operation))
        alive.update(list_read(operation))
    return pieces[::-1]
