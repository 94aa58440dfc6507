"""Use of an emulation's budget: :class:`Meter`."""

from gpa_lsp.execution.emulator.model import Budget, FaultKind
from gpa_lsp.foundation.numbers import format_bytes, format_count, format_seconds
from gpa_lsp.foundation.work_time import work_time


class BudgetReached(Exception):  # noqa: N818  (no error: it ends the emulation)
    """A limit was reached.

    Args:
        kind: which.
        message: for the finding.

    Attributes:
        instruction: static number of what was executed then; None when nothing was.
        block: linear index of a block that executed it; None when none did.
        thread: a thread of the block; None when none did.
    """

    def __init__(self, kind: FaultKind, message: str) -> None:
        self.kind = kind
        self.instruction: int | None = None
        self.block: int | None = None
        self.thread: tuple[int, int, int] | None = None
        super().__init__(message)


_TOLD_SHARE = 0.05  # From this part of the time on, what analyses took is named


class Meter:
    """Counts time, instructions and memory, in the thread that emulates.

    Time is that of the processor, so that a launch gets as far on a busy machine as on an idle one.

    Args:
        budget: the limits.

    Attributes:
        sink_seconds: spent by the trace's sink; it counts against the budget, but not as time of the emulator.
    """

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self.started = work_time()
        self.sink_seconds = 0.0
        self.warp_instructions = 0
        self.held_bytes = 0
        self.peak_bytes = 0
        self._deadline = self.started + budget.seconds
        self._is_ended = False

    def end(self) -> None:
        """End the time for good; from any thread."""
        self._is_ended = True
        self._deadline = self.started

    def restart(self) -> None:
        """Begin with the budget again; what is held stays."""
        self.started = work_time()
        self.sink_seconds = 0.0
        self.warp_instructions = 0
        self._deadline = self.started + self.budget.seconds

    @property
    def seconds(self) -> float:
        """Seconds since it began, without those of the sink."""
        return work_time() - self.started - self.sink_seconds

    @property
    def left_seconds(self) -> float:
        """Seconds left; 0 once the time is over."""
        return max(self._deadline - work_time(), 0.0)

    def count_instructions(self, warp_instructions: int) -> None:
        """Note what was executed.

        Raises:
            BudgetReached: too much of it, or the time is over.
        """
        self.warp_instructions += warp_instructions
        if self.warp_instructions > self.budget.warp_instructions:
            raise BudgetReached(
                FaultKind.INSTRUCTION_BUDGET,
                f"{format_count(self.warp_instructions)} warp instructions were executed; {format_count(self.budget.warp_instructions)} are allowed",
            )
        self.check_time()

    def check_time(self) -> None:
        """See whether there is time left.

        Raises:
            BudgetReached: the time is over.
        """
        if self._is_ended or work_time() > self._deadline:
            raise BudgetReached(
                FaultKind.TIME_BUDGET,
                f"not done after {self._describe_time()} and {format_count(self.warp_instructions)} warp instructions",
            )

    def _describe_time(self) -> str:
        """The processor time used, and the part of it that the trace's sink took."""
        used = self.seconds + self.sink_seconds
        whole = f"{format_seconds(used)} of processor time"
        taken = self.sink_seconds
        return whole if taken < _TOLD_SHARE * used else f"{whole}, {format_seconds(taken)} of it analysing,"

    def hold(self, size_bytes: int, what: str) -> None:
        """Ask for memory, before it is taken.

        Raises:
            BudgetReached: it is too much.
        """
        if self.held_bytes + size_bytes > self.budget.memory_bytes:
            raise BudgetReached(
                FaultKind.MEMORY_BUDGET,
                f"{what} needs {format_bytes(size_bytes)} in addition to {format_bytes(self.held_bytes)} held; "
                f"{format_bytes(self.budget.memory_bytes)} are allowed",
            )
        self.held_bytes += size_bytes
        self.peak_bytes = max(self.peak_bytes, self.held_bytes)

    def release(self, size_bytes: int) -> None:
        """Give memory back."""
        self.held_bytes -= size_bytes

    @property
    def left_bytes(self) -> int:
        """Bytes that may still be held."""
        return self.budget.memory_bytes - self.held_bytes
