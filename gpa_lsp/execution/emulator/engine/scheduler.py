"""Which fragment runs next: :class:`Scheduler` runs one batch to its end."""

from gpa_lsp.code.ptx.static_instructions import StaticInstruction
from gpa_lsp.execution.emulator.engine.barriers import Barriers
from gpa_lsp.execution.emulator.engine.faults import FaultLog, find_thread
from gpa_lsp.execution.emulator.engine.fragments import Barrier, Batch, Fragment, Frame, Segment
from gpa_lsp.execution.emulator.engine.merging import merge_fragments
from gpa_lsp.execution.emulator.engine.meter import BudgetReached, Meter
from gpa_lsp.execution.emulator.engine.tracing import Tracer

# Fragments that wait at one place are merged when there are more, so that what they hold stays bounded
_MOST_WAITERS = 8
PATIENCE = 256  # Segments with polling loads that may run before a fragment that waits for longest gets its turn
LEAST_PATIENCE = 8

Key = tuple[Frame, Segment]
Position = tuple[int, ...]


class Waiters:
    """Fragments that wait to run at one place.

    Attributes:
        position: of the place in the order of running.
        since: when the first of them came, in segments run.
        fragments: all of them.
    """

    __slots__ = ("fragments", "position", "since")

    def __init__(self, position: Position, since: int) -> None:
        self.position = position
        self.since = since
        self.fragments: list[Fragment] = []


def find_place(segment: Segment, instructions: tuple[StaticInstruction, ...]) -> int | None:
    """The instruction that tells best where a fragment stands: the segment's first access to memory, or its first instruction."""
    accesses = (number for number in segment.instructions if instructions[number].kind is not None)
    return next(accesses, next(iter(segment.instructions), None))


class Scheduler:
    """Runs one batch.

    The segment that comes first in its function's order is run first, callees before what follows the call, so lanes that parted wait for each
    other where their ways join. Lanes that spin on memory would keep others from running: after some segments with polling loads those that
    wait for longest run, so whatever another lane of the batch has to do will be done.

    Attributes:
        batch: what it runs.
        meter: of the emulation.
        faults: of the emulation.
        barriers: where lanes wait for others.
    """

    def __init__(
        self,
        batch: Batch,
        meter: Meter,
        faults: FaultLog,
        tracer: Tracer | None,
        instructions: tuple[StaticInstruction, ...],
    ) -> None:
        self.batch = batch
        self.meter = meter
        self.faults = faults
        self.tracer = tracer
        self._instructions = instructions
        self.barriers = Barriers(batch, faults)
        self._waiting: dict[Key, Waiters] = {}
        self._ran = 0
        self._polled = 0
        self._patience = PATIENCE

    def go(self, fragment: Fragment, segment: Segment) -> None:
        """Send a fragment on."""
        fragment.segment = segment
        key = (fragment.frame, segment)
        waiters = self._waiting.get(key)
        if waiters is None:
            waiters = self._waiting[key] = Waiters((*fragment.frame.prefix, segment.order), self._ran)
        waiters.fragments.append(fragment)
        if len(waiters.fragments) >= _MOST_WAITERS:
            waiters.fragments = [merge_fragments(waiters.fragments)]

    def meet(self, barrier: Barrier, fragment: Fragment) -> None:
        """A fragment has come to a barrier."""
        self.barriers.meet(self, barrier, fragment)

    def retire(self, fragment: Fragment) -> None:
        """The lanes of a fragment have exited."""
        batch = self.batch
        batch.live_count -= fragment.count
        if batch.live_count == 0:
            batch.live[:] = False
            return
        rows = batch.live.reshape(-1, 32)
        if fragment.mask is None:
            rows[fragment.warps.ids] = False
        else:
            rows[fragment.warps.ids] &= ~fragment.mask.reshape(-1, 32)

    def run(self, kernel: Frame) -> None:
        """Run the kernel with all threads of the batch.

        Raises:
            BudgetReached: time, instructions or memory ran out.
        """
        self.go(self._begin(kernel), kernel.function.segments[0])
        while True:
            if self._polled >= self._patience:
                self.barriers.release(self, force=False)
            fragment = self._pick()
            if fragment is not None:
                self._run_segment(fragment)
                continue
            if not self.barriers.release(self):
                return

    def _begin(self, kernel: Frame) -> Fragment:
        batch = self.batch
        whole = batch.live_count == batch.root.lanes
        return Fragment(
            batch=batch,
            warps=batch.root,
            mask=None if whole else batch.live.copy(),
            count=batch.live_count,
            registers=kernel.function.template.copy(),
            callers=(),
            frame=kernel,
            link=None,
        )

    def _run_segment(self, fragment: Fragment) -> None:
        segment = fragment.segment
        if self.tracer is not None and segment.enters_block is not None:
            self.tracer.record_entry(fragment, segment.enters_block)
        for step in segment.steps:
            step(fragment)
        segment.warp_executions += fragment.warp_count
        segment.lane_executions += fragment.count
        self._ran += 1
        self._polled += segment.is_polling
        executed = fragment.warp_count * segment.size
        self.batch.clock += executed
        try:
            self.meter.count_instructions(executed)
        except BudgetReached as reached:
            reached.instruction = find_place(segment, self._instructions)
            lane = 0 if fragment.mask is None else int(fragment.mask.argmax())
            reached.block, reached.thread = find_thread(fragment.warps, lane)
            raise
        segment.end(self, fragment)

    def _pick(self) -> Fragment | None:
        waiting = self._waiting
        if not waiting:
            return None
        if len(waiting) == 1:
            waiters = waiting.popitem()[1]
        elif self._polled >= self._patience:
            key = min(waiting, key=lambda place: waiting[place].since)
            waiters = waiting.pop(key)
            self._polled = 0
            self._patience = max(self._patience // 2, LEAST_PATIENCE)
        else:
            key = min(waiting, key=lambda place: waiting[place].position)
            waiters = waiting.pop(key)
        if len(waiters.fragments) == 1:
            return waiters.fragments[0]
        return merge_fragments(waiters.fragments)
