"""The work bound of one function: graph searches spend from it, so that no input makes them run without end."""

from msgspec import Struct

WORK_PER_INSTRUCTION = 400  # Steps a function may cost per instruction; real kernels stay below 40

LEAST_WORK = 2_000_000  # Steps that any function may cost

STEPS_PER_BLOCK = 12  # What looking at one block costs a budget, where a step is some tenths of a microsecond

STEPS_PER_EDGE = 40  # What finding and pruning one edge of the dependency graph costs


class OutOfWorkError(Exception):
    """The function's budget is spent; the blamer gives up on the instruction it was looking at, and says so."""


class WorkBudget(Struct):
    """Steps left for a function. Searches call :meth:`spend` and stop, keeping what they have, when it says no."""

    remaining: int  # steps left; never negative
    is_exhausted: bool = False  # a search was refused

    @classmethod
    def for_function(cls, instruction_count: int) -> "WorkBudget":
        """The bound of a function of that size: linear in it.

        >>> WorkBudget.for_function(10).remaining == LEAST_WORK
        True
        """
        return cls(remaining=max(LEAST_WORK, WORK_PER_INSTRUCTION * instruction_count))

    def spend(self, steps: int) -> bool:
        """Take ``steps`` away; False, and nothing taken, when there are not so many left.

        >>> budget = WorkBudget(remaining=3)
        >>> budget.spend(2), budget.spend(2), budget.is_exhausted
        (True, False, True)
        """
        if steps > self.remaining:
            self.is_exhausted = True
            return False
        self.remaining -= steps
        return True

    def charge(self, steps: int) -> None:
        """Take ``steps`` away, for searches that have no part of an answer.

        Raises:
            OutOfWorkError: there are not so many left.
        """
        if not self.spend(steps):
            raise OutOfWorkError
