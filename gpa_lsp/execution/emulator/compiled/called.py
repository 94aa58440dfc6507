"""Functions that a kernel of the core calls, executed by the numpy engine: :class:`Called`."""

from gpa_lsp.execution.emulator.engine.fragments import Barrier, Batch, Dispatcher, Fragment, Frame, Segment
from gpa_lsp.execution.emulator.engine.machine import Machine
from gpa_lsp.execution.emulator.engine.scheduler import Scheduler


class Called(Scheduler):
    """Runs lanes within functions; those that return go back to the core.

    Args:
        batch: that is run.
        machine: the launch.
        kernel: frame of the kernel.
        core: takes lanes that are in the kernel, that exit, or that come to a barrier.
    """

    def __init__(self, batch: Batch, machine: Machine, kernel: Frame, core: Dispatcher) -> None:
        super().__init__(batch, machine.meter, machine.faults, machine.tracer, machine.instructions)
        self._kernel = kernel
        self._core = core

    def go(self, fragment: Fragment, segment: Segment) -> None:
        """Send a fragment on."""
        if fragment.frame is self._kernel:
            self._core.go(fragment, segment)
        else:
            super().go(fragment, segment)

    def meet(self, barrier: Barrier, fragment: Fragment) -> None:
        """A fragment has come to a barrier."""
        self._core.meet(barrier, fragment)

    def retire(self, fragment: Fragment) -> None:
        """The lanes of a fragment have exited."""
        self._core.retire(fragment)

    def run_some(self) -> bool:
        """Run those that can run, until all have left or it is time to look whether others can; False when there were none.

        Raises:
            BudgetReached: time, instructions or memory ran out.
        """
        fragment = self._pick()
        if fragment is None:
            return False
        while fragment is not None:
            self._run_segment(fragment)
            # The next turn is of those that wait for longest.
            fragment = None if self._polled >= self._patience else self._pick()
        return True
