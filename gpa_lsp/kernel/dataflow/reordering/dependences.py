"""Which steps of a course depend on which, through registers and through the order of memory accesses, transitively.

A dependence that only the reuse of a register makes (write after read, write after write) is none: whoever writes the code again gets other
registers. Steps reach back :data:`WINDOW_STEPS`; what lies farther away is not looked at, so that sets are bit masks of bounded size and
all of a course takes time in proportion to its length.
"""

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gpa_lsp.kernel.dataflow.reordering.course import Course
from gpa_lsp.kernel.dataflow.reordering.effects import SPACE_COUNT, Step

WINDOW_STEPS = 512  # How far a dependence is followed; more instructions than a scheduler of the compiler looks at

_MOST_WRITERS = 8  # Conditional writers of one register that are kept apart

_MASK = (1 << WINDOW_STEPS) - 1


class Dependences(Struct, frozen=True, kw_only=True):
    """Dependences between m steps. Steps of a loop are there twice: for one turn and for the next, m = 2 × the course's length.

    Masks are relative: of :attr:`ancestors` bit k of step i stands for step i - 1 - k, of :attr:`descendants` for step i + 1 + k.
    """

    sources: tuple[tuple[int, ...], ...]  # m tuples of the steps each depends on directly through registers
    ordered_after: tuple[tuple[int, ...], ...]  # m tuples of the steps each depends on directly through memory
    ancestors: tuple[int, ...]  # m masks of the steps each depends on, directly or not
    data_ancestors: tuple[int, ...]  # m masks of the same through registers alone
    descendants: tuple[int, ...]  # m masks of the steps that depend on each

    def __len__(self) -> int:
        return len(self.sources)

    def depends(self, later: int, earlier: int) -> bool:
        """Whether a step depends on an earlier one."""
        return later > earlier and bool(self.ancestors[later] >> (later - 1 - earlier) & 1)

    def depends_by_data(self, later: int, earlier: int) -> bool:
        """Whether a step depends on an earlier one through registers alone."""
        return later > earlier and bool(self.data_ancestors[later] >> (later - 1 - earlier) & 1)

    def list_independent_before(self, step: int, first: int) -> npt.NDArray[np.int64]:
        """int64[k], the steps from ``first`` up to before ``step`` that it does not depend on, descending."""
        wanted = (1 << max(step - first, 0)) - 1
        return step - 1 - list_bits(wanted & ~self.ancestors[step])

    def list_independent_after(self, step: int, end: int, others: Iterable[int] = ()) -> npt.NDArray[np.int64]:
        """int64[k], the steps after ``step`` up to before ``end`` that depend neither on it nor on ``others``, ascending."""
        dependent = self.descendants[step]
        for other in others:
            gap = step - other
            own = self.descendants[other]
            dependent |= own >> gap if gap >= 0 else own << -gap | 1 << (-gap - 1)
        wanted = (1 << max(end - step - 1, 0)) - 1
        return step + 1 + list_bits(wanted & ~dependent)


def list_bits(mask: int) -> npt.NDArray[np.int64]:
    """int64[k], the numbers of the bits that are set, ascending.

    >>> list_bits(0b10010).tolist()
    [1, 4]
    """
    octets = np.frombuffer(mask.to_bytes((mask.bit_length() + 7) // 8, "little"), dtype=np.uint8)
    return np.flatnonzero(np.unpackbits(octets, bitorder="little")).astype(np.int64)


def find_dependences(course: Course) -> Dependences:
    """The dependences of a course."""
    steps = [*course.steps, *course.steps] if course.is_loop else list(course.steps)
    sources = _link_registers(steps)
    ordered = _link_memory(steps)
    direct = [(*found, *others) for found, others in zip(sources, ordered, strict=True)]
    return Dependences(
        sources=tuple(sources),
        ordered_after=tuple(ordered),
        ancestors=tuple(_close_backwards(direct)),
        data_ancestors=tuple(_close_backwards(sources)),
        descendants=tuple(_close_forwards(direct)),
    )


def _link_registers(steps: Sequence[Step]) -> list[tuple[int, ...]]:
    """A read needs every step that may have written the register last: the last one that surely did, and those since that may have."""
    writers: dict[int, tuple[int, ...]] = {}
    found = []
    for place, step in enumerate(steps):
        needed = {writer for resource in step.reads for writer in writers.get(resource, ())}
        if step.blocks and place:
            needed.add(place - 1)  # the branch that decides about side code
        for resource in step.writes:
            if not step.is_partial:
                writers[resource] = (place,)
                continue
            before = writers.get(resource, ())
            needed.update(before[:-_MOST_WRITERS])  # the new one stands for the oldest of very many
            writers[resource] = (*before[-_MOST_WRITERS:], place)
        found.append(tuple(sorted(needed)))
    return found


def _link_memory(steps: Sequence[Step]) -> list[tuple[int, ...]]:
    """Per space, loads follow the last store, and a store follows the last store and the loads since."""
    last_store = [-1] * SPACE_COUNT
    loads_since: list[list[int]] = [[] for _ in range(SPACE_COUNT)]
    found: list[tuple[int, ...]] = []
    for place, step in enumerate(steps):
        touched = step.loads | step.stores
        if not touched:
            found.append(())
            continue
        needed: set[int] = set()
        for space in range(SPACE_COUNT):
            if not touched >> space & 1:
                continue
            if last_store[space] >= 0:
                needed.add(last_store[space])
            if step.stores >> space & 1:
                needed.update(loads_since[space])
                last_store[space], loads_since[space] = place, []
            else:
                loads_since[space].append(place)
        found.append(tuple(sorted(needed)))
    return found


def _close_backwards(direct: Sequence[Sequence[int]]) -> list[int]:
    closed: list[int] = []
    for place, sources in enumerate(direct):
        mask = 0
        for source in sources:
            gap = place - source
            if gap <= WINDOW_STEPS:
                mask |= closed[source] << gap | 1 << (gap - 1)
        closed.append(mask & _MASK)
    return closed


def _close_forwards(direct: Sequence[Sequence[int]]) -> list[int]:
    closed = [0] * len(direct)
    for place in range(len(direct) - 1, -1, -1):
        own = closed[place] = closed[place] & _MASK
        for source in direct[place]:
            gap = place - source
            if gap <= WINDOW_STEPS:
                closed[source] |= own << gap | 1 << (gap - 1)
    return closed
