"""What fragments execute: :class:`Segment` and :class:`BoundFunction`; and where they are: :class:`Frame`."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from gpa_lsp.emulator.engine.values import Value

if TYPE_CHECKING:
    from gpa_lsp.emulator.engine.binder import Step
    from gpa_lsp.emulator.engine.fragments import Fragment
    from gpa_lsp.emulator.engine.layout import Piece
    from gpa_lsp.emulator.engine.scheduler import Scheduler

End = Callable[["Scheduler", "Fragment"], None]
"""What ends a segment: sends the fragment on, parts it, parks it, or ends its lanes."""


class Segment:
    """Instructions that a fragment executes without stopping.

    Attributes:
        function: name of its function.
        order: its place in the order in which segments are run; lower first.
        steps: what it does.
        end: what comes then.
        live_in: slots that are read here or later before they are written.
        instructions: static numbers of its instructions.
        size: how many.
        returned: of a segment behind a call: for each result the parts that are read: (offset, bytes) → slot.
        is_polling: it reads memory in a way that is meant to see what others write: lanes may spin here.
        enters_block: number of the basic block that begins here; None for a later part of one.
        warp_executions: by warps, so far.
        lane_executions: by lanes, so far.
    """

    __slots__ = (
        "end", "enters_block", "function", "instructions", "is_polling", "lane_executions", "live_in", "order", "returned", "size", "steps",
        "warp_executions",
    )  # fmt: skip

    def __init__(self, function: str, live_in: tuple[int, ...]) -> None:
        self.function = function
        self.order = 0
        self.instructions: list[int] = []
        self.size = 0
        self.live_in = live_in
        self.steps: list[Step] = []
        self.end: End = _nowhere
        self.returned: list[dict[Piece, int]] = []
        self.is_polling = False
        self.enters_block: int | None = None
        self.warp_executions = 0
        self.lane_executions = 0


def _nowhere(_scheduler: "Scheduler", _fragment: "Fragment") -> None:
    raise AssertionError("a segment without an end")


class BoundFunction:
    """A function, ready to run.

    Attributes:
        name: mangled.
        segments: the first one is where it begins.
        template: what its register file begins with.
        dtypes: storage dtype of each slot.
        parameters: for each parameter its parts: (offset, bytes) → slot.
        returns: likewise what it returns.
        local_bytes: of its frame in local memory.
        most_live: registers that are live at once.
    """

    __slots__ = ("dtypes", "local_bytes", "most_live", "name", "parameters", "returns", "segments", "template")

    def __init__(self, name: str, local_bytes: int) -> None:
        self.name = name
        self.local_bytes = local_bytes
        self.most_live = 0
        self.segments: list[Segment] = []
        self.template: list[Value] = []
        self.dtypes: list[np.dtype[Any]] = []
        self.parameters: list[dict[Piece, int]] = []
        self.returns: list[dict[Piece, int]] = []


class Frame:
    """A chain of calls. Lanes that came the same way share the very object.

    Attributes:
        function: the function that runs.
        parent: of the caller; None for the kernel.
        return_to: where the caller goes on; None likewise.
        call_instruction: static number of the call; -1 for the kernel.
        depth: 0 for the kernel.
        local_base: where the function's frame begins in each thread's local memory.
        prefix: of its place in the order of running: the orders of the callers' segments, outermost first.
    """

    __slots__ = ("_callees", "call_instruction", "depth", "function", "local_base", "parent", "prefix", "return_to")

    def __init__(
        self,
        function: BoundFunction,
        parent: "Frame | None" = None,
        return_to: Segment | None = None,
        *,
        order: int = 0,
        call_instruction: int = -1,
    ) -> None:
        self.function = function
        self.parent = parent
        self.return_to = return_to
        self.call_instruction = call_instruction
        self.depth: int = 0 if parent is None else parent.depth + 1
        self.local_base = 0
        self.prefix: tuple[int, ...] = ()
        if parent is not None:
            self.local_base = parent.local_base + -(-parent.function.local_bytes // 16) * 16
            self.prefix = (*parent.prefix, order)
        self._callees: dict[tuple[int, str], Frame] = {}

    def call(self, function: BoundFunction, segment: Segment, return_to: Segment, instruction: int) -> "Frame":
        """The frame of a function called from the end of a segment, by an instruction."""
        key = (segment.order, function.name)
        found = self._callees.get(key)
        if found is None:
            found = self._callees[key] = Frame(
                function, self, return_to, order=segment.order, call_instruction=instruction
            )
        return found
