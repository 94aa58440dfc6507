"""Who calls whom: the :class:`CallGraph` of a device image."""

from dataclasses import dataclass
from enum import Enum


class CallKind(Enum):
    """How a call names its callee."""

    DIRECT = "direct"
    """By an address in the same section."""
    SYMBOL = "symbol"
    """By the symbol of a relocation."""
    INDIRECT = "indirect"
    """Through a register; the callee is not known, its candidates are in :attr:`CallGraph.pointer_calls`."""
    DECLARED = "declared"
    """By an entry of ``.nv.callgraph`` without a call site we know: the caller was not disassembled, or calls it through a register."""


class Recursion(Enum):
    """Whether a procedure can be active twice at a time."""

    NONE = "none"
    """No chain of calls leads back to it."""
    POSSIBLE = "possible"
    """Only chains through function pointers do."""
    CERTAIN = "certain"
    """A chain of calls that name their callees does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallNode:
    """A procedure: a function section's own routine, or a local sub-function.

    Attributes:
        function: mangled name of the function whose section holds it.
        name: mangled name of the procedure; equal to ``function`` for the section's own routine.
        start_offset: first byte in the section.
        is_entry: a kernel.
        recursion: see :class:`Recursion`.
    """

    function: str
    name: str
    start_offset: int
    is_entry: bool
    recursion: Recursion


@dataclass(frozen=True, slots=True, kw_only=True)
class CallEdge:
    """One call site, or one declared call.

    Attributes:
        caller: index into :attr:`CallGraph.nodes`.
        callee: likewise; None when it is unknown or outside the module.
        callee_name: mangled name of the callee; None when it is unknown.
        pc_offset: of the calling instruction, bytes from the start of the caller's section; None for declared calls.
        kind: how the callee is named.
        is_outside_module: the callee is named and not in this image (``vprintf``, functions of other objects).
        is_tail: the caller does not get control back.
    """

    caller: int
    callee: int | None
    callee_name: str | None
    pc_offset: int | None
    kind: CallKind
    is_outside_module: bool
    is_tail: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PointerCalls:
    """Procedures that call through pointers of one prototype, and the procedures such a pointer can name.

    Attributes:
        callers: indexes into :attr:`CallGraph.nodes`, ascending.
        callees: likewise.
    """

    callers: tuple[int, ...]
    callees: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CallGraph:
    """The procedures of an image and their calls.

    Attributes:
        nodes: in section order, and by address within a section.
        edges: by caller, then address; declared calls last.
        edges_by_caller: for each node the indexes of its edges, ascending.
        edges_by_callee: for each node the indexes of the edges that name it, ascending.
        pointer_calls: what calls through pointers can reach; callers × callees is not multiplied out.
    """

    nodes: tuple[CallNode, ...]
    edges: tuple[CallEdge, ...]
    edges_by_caller: tuple[tuple[int, ...], ...]
    edges_by_callee: tuple[tuple[int, ...], ...]
    pointer_calls: tuple[PointerCalls, ...]

    def find_node(self, function: str, name: str | None = None) -> int | None:
        """Index of a function's own routine, or of the sub-function ``name`` of it; None when there is none."""
        wanted = name if name is not None else function
        numbers = range(len(self.nodes))
        return next((i for i in numbers if (self.nodes[i].function, self.nodes[i].name) == (function, wanted)), None)
