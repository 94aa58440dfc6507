"""Which calls lead to what is recorded: :class:`CallPaths` gives an instruction a number of its own for each way to it."""

from dataclasses import replace

from gpa_lsp.emulator.engine.fragments import Frame
from gpa_lsp.emulator.engine.meter import Meter
from gpa_lsp.emulator.trace import StaticInstruction

_MOST_PATHS = 1 << 12
_MOST_INSTRUCTIONS = 1 << 16
"""What is reached in further ways keeps the number it has without regard to its callers: that the way is not known then shows."""
_INSTRUCTION_BYTES = 512

_Path = tuple[tuple[int, ...], dict[int, int]]
"""Calls, innermost first, and the number of each instruction that was reached by them."""


class CallPaths:
    """Numbers of instructions in called functions, one for each chain of calls that leads there.

    A call that is on the chain already is not put on it again, so that recursion, however deep, is one loop of it.

    Args:
        instructions: all static instructions, by index.
        meter: counts the memory.
    """

    def __init__(self, instructions: tuple[StaticInstruction, ...], meter: Meter) -> None:
        self._instructions = instructions
        self._meter = meter
        self._further: list[StaticInstruction] = []
        self._paths: dict[tuple[int, ...], _Path] = {}
        self._frames: dict[Frame, _Path] = {}
        self._listed = instructions

    def number(self, frame: Frame, static: int) -> int:
        """The number of an instruction as it is reached in a frame; the kernel's own keep theirs.

        Args:
            frame: that executes it.
            static: its number without regard to the way.

        Raises:
            BudgetReached: there is no memory for another one.
        """
        if frame.parent is None:
            return static
        found = self._frames.get(frame)
        if found is None:
            calls = _list_calls(frame)
            found = self._paths.get(calls)
            if found is None:
                if len(self._paths) >= _MOST_PATHS:
                    return static
                found = self._paths[calls] = (calls, {})
            self._frames[frame] = found
        path, numbers = found
        number = numbers.get(static)
        if number is None:
            if len(self._further) >= _MOST_INSTRUCTIONS:
                return static
            self._meter.hold(_INSTRUCTION_BYTES, "the trace")
            number = numbers[static] = len(self._instructions) + len(self._further)
            self._further.append(replace(self._instructions[static], index=number, calls=path, same_as=static))
        return number

    def list_instructions(self) -> tuple[StaticInstruction, ...]:
        """All static instructions, then those reached by calls in the order in which they were; a later list begins with an earlier one."""
        if len(self._listed) < len(self._instructions) + len(self._further):
            self._listed = (*self._instructions, *self._further)
        return self._listed


def _list_calls(frame: Frame) -> tuple[int, ...]:
    """The calls that lead to a frame, innermost first."""
    calls = []
    while frame.parent is not None:
        calls.append(frame.call_instruction)
        frame = frame.parent
    path: list[int] = []
    for call in reversed(calls):
        if call in path:
            del path[path.index(call) + 1 :]
        else:
            path.append(call)
    return tuple(reversed(path))
