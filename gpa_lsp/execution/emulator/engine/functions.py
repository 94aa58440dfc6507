"""PTX functions → :class:`.fragments.BoundFunction`."""

from gpa_lsp.code.ptx.blocks import find_blocks
from gpa_lsp.code.ptx.model import Address, Immediate, PtxFunction, PtxInstruction, Register, Space, Symbol
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.execution.emulator.engine.barriers import WarpBarrier, end_with_barrier
from gpa_lsp.execution.emulator.engine.control import end_with_fault
from gpa_lsp.execution.emulator.engine.ends import Ending, bind_end
from gpa_lsp.execution.emulator.engine.fragments import (
    BoundFunction,
    Closing,
    ClosingKind,
    Segment,
)
from gpa_lsp.execution.emulator.engine.layout import ENDING, MEETING, Layout, find_lives
from gpa_lsp.execution.emulator.engine.machine import Machine
from gpa_lsp.execution.emulator.engine.operands import Reader, UnsupportedInstruction, read_operand
from gpa_lsp.execution.emulator.model import FaultKind
from gpa_lsp.execution.emulator.semantics.find import find_meaning
from gpa_lsp.execution.emulator.semantics.matrix_products import is_group_product
from gpa_lsp.execution.emulator.semantics.model import flatten

_SPACES = {
    "global": Space.GLOBAL,
    "shared": Space.SHARED,
    "local": Space.LOCAL,
    "const": Space.CONST,
    "param": Space.PARAM,
}


def find_space(suffixes: tuple[str, ...]) -> Space:
    """The state space an instruction names; GENERIC when it names none."""
    for suffix in suffixes:
        found = _SPACES.get(suffix.partition("::")[0])
        if found is not None:
            return found
    return Space.GENERIC


# Raised by operands that no compiler writes
_MALFORMED = (LookupError, TypeError, ValueError, AttributeError, OverflowError)
_POLLING_OPCODES = frozenset({"atom", "red", "nanosleep"})
_POLLING_SUFFIXES = frozenset({"volatile", "acquire", "relaxed", "mmio"})
# Loads that go past L1 see what other blocks write; with other instructions, ``cp.async`` above all, these words mean something else
_POLLING_LOADS = frozenset({"cg", "cv"})


def bind_function(machine: Machine, name: str) -> BoundFunction:
    """Bind a function."""
    function = machine.module.functions[name]
    bound = BoundFunction(name, function.local_bytes)
    _FunctionBinder(machine, function, bound).bind()
    return bound


# Prefix of the variables that instrumented PTX records in: no lane polls them
_RECORDING = "gpa_lsp_"


def _is_recording(instruction: PtxInstruction) -> bool:
    address = instruction.sources[0] if instruction.sources else None
    base = address.base if isinstance(address, Address) else None
    return isinstance(base, Symbol) and base.name.startswith(_RECORDING)


class _FunctionBinder:
    """Cuts the blocks of a function into segments and binds their instructions."""

    def __init__(self, machine: Machine, function: PtxFunction, bound: BoundFunction) -> None:
        self._machine = machine
        self._function = function
        self._bound = bound
        self._layout = Layout(function)
        self._first_static = machine.first_statics[function.name]
        self._blocks = find_blocks(function)
        self._life = find_lives(function)
        self._together: set[int] = set()
        self._segments: list[tuple[int, float, Segment]] = []
        self._starts = [self._new_segment(block, first) for block, first in enumerate(self._blocks.first)]

    def bind(self) -> None:
        """Bind all blocks."""
        for block, segment in enumerate(self._starts):
            segment.enters_block = self._number_block(block)
            self._bind_block(block, segment)
        layout = self._layout
        always = [slot for parts in layout.pieces.values() for slot in parts.values()]  # which may be read at any time
        self._segments.sort(key=lambda found: (self._blocks.ranks[found[0]], found[1]))
        for order, (_, _, segment) in enumerate(self._segments):
            segment.order = order
            segment.live_in = tuple(dict.fromkeys((*segment.live_in, *always)))
            segment.size = len(segment.instructions)
        for edge in self._bound.edges:
            edge.entry.live_in = edge.landing.live_in = edge.following.live_in
        first = self._starts[0]
        self._bound.segments = [first, *(segment for _, _, segment in self._segments if segment is not first)]
        self._bound.pieces = layout.pieces
        self._bound.most_live = self._life.most_live
        self._bound.dtypes = layout.dtypes
        self._bound.parameters = [layout.pieces.setdefault(one.name, {}) for one in self._function.parameters]
        self._bound.returns = [layout.pieces.setdefault(one.name, {}) for one in self._function.returns]

    def _number_block(self, block: int) -> int:
        """Number of a block over all functions, in the order of the static instructions."""
        return self._machine.block_bases.get(self._function.name, 0) + block

    def _new_segment(self, block: int, start: int) -> Segment:
        live = self._life.live_at.get(start, frozenset())
        segment = Segment(self._function.name, tuple(sorted(live)))
        self._segments.append((block, start, segment))
        return segment

    def _bind_block(self, block: int, first: Segment) -> None:
        last = self._blocks.last[block]
        self._machine.meter.check_time()
        segment = first
        self._together.clear()
        for index in range(self._blocks.first[block], last + 1):
            try:
                following = self._bind_one(block, segment, self._function.instructions[index])
            except (UnsupportedInstruction, *_MALFORMED) as error:
                self._refuse(segment, index, error)
                return
            if following is None:
                return
            segment = following
        following = self._start_after(block, last)
        kind = ClosingKind.EXIT if following is None else ClosingKind.JUMP
        segment.closing = Closing(kind=kind, taken=following)

    def _bind_one(self, block: int, segment: Segment, instruction: PtxInstruction) -> Segment | None:
        """Bind an instruction; gives the segment for the next one, None when the block ends here."""
        index = instruction.index
        static = self._first_static + index
        self._note_polling(segment, instruction)
        if instruction.opcode in ENDING:
            following = self._follow(block, index)
            others = Segment(self._function.name, () if following is None else following.live_in)
            call = instruction.call
            if call is not None and call.callee is None:
                self._segments.append((block, index + 0.5, others))
                pointer = () if call.pointer is None else (call.pointer.slot,)
                others.live_in = (*segment.live_in, *others.live_in, *pointer)
            segment.instructions.append(static)
            bind_end(
                Ending(
                    instruction=instruction,
                    static=static,
                    machine=self._machine,
                    function=self._function,
                    layout=self._layout,
                    bound=self._bound,
                    segment=segment,
                    following=following,
                    others=others,
                    starts=self._starts,
                    blocks=self._blocks,
                )
            )
            self._together.clear()
            return None if index == self._blocks.last[block] else following
        if instruction.opcode in MEETING:
            segment = self._put_gate(block, segment, instruction)
        segment.instructions.append(static)
        if instruction.opcode in ("ld", "ldu", "st"):
            self._note_parameter(instruction)
        segment.body.append(instruction)
        written = self._life.written[index]
        self._together.difference_update(written)
        if instruction.opcode == "activemask" and instruction.guard is None:
            self._together.update(written)
        return segment

    def _note_parameter(self, instruction: PtxInstruction) -> None:
        """Note the parts of a parameter of a function, or of one that it hands over, that are loaded or stored."""
        operand = instruction.sources[0]
        if find_space(instruction.suffixes) is not Space.PARAM or not isinstance(operand, Address):
            return
        base, size = operand.base, instruction.types[-1].natural_dtype.itemsize
        if not isinstance(base, Symbol) or (self._function.is_entry and self._machine.is_kernel_parameter(base.name)):
            return
        is_store = instruction.opcode == "st"
        elements = flatten(instruction.sources[1:2] if is_store else instruction.destinations)
        note = self._layout.store_piece if is_store else self._layout.load_piece
        for place in range(len(elements) or 1):
            note(base.name, (base.offset_bytes + operand.offset_bytes + place * size, size))

    def _note_polling(self, segment: Segment, instruction: PtxInstruction) -> None:
        words = _POLLING_SUFFIXES | _POLLING_LOADS if instruction.opcode == "ld" else _POLLING_SUFFIXES
        if _is_recording(instruction):
            return
        if instruction.opcode in _POLLING_OPCODES or not words.isdisjoint(instruction.suffixes):
            segment.is_polling = True

    def _put_gate(self, block: int, segment: Segment, instruction: PtxInstruction) -> Segment:
        """Cut before an instruction whose lanes must meet."""
        if self._names_who_is_here(instruction):
            return segment
        gate = self._find_gate(instruction)
        if gate is None:
            return segment
        self._together.clear()
        following = self._new_segment(block, instruction.index)
        barrier = WarpBarrier(
            static=self._first_static + instruction.index,
            following=following,
            members=gate,
            guard=instruction.guard,
            is_sync=False,
            is_of_group=instruction.opcode == "wgmma",
        )
        segment.end = end_with_barrier(barrier)
        if instruction.guard is None and not barrier.is_of_group:
            segment.closing = Closing(kind=ClosingKind.GATE, taken=following)
        return following

    def _find_gate(self, instruction: PtxInstruction) -> Reader | None:
        """Reader of the member mask of an instruction whose lanes wait for each other; None when they do not."""
        if "sync" not in instruction.suffixes or (instruction.opcode == "wgmma" and not is_group_product(instruction)):
            return None
        meaning, members = find_meaning(instruction), None
        if meaning is not None and meaning.members is not None:
            members = flatten(instruction.sources)[meaning.members]
        mask = Immediate(0xFFFFFFFF) if members is None else members
        return read_operand(mask, ScalarType.U32, self._machine.geometry)

    def _names_who_is_here(self, instruction: PtxInstruction) -> bool:
        """Whether the member mask is the result of ``activemask`` in this segment: those lanes are together."""
        members = instruction.sources[-1] if instruction.sources else None
        is_exchange = instruction.opcode in ("shfl", "vote")
        return is_exchange and isinstance(members, Register) and members.slot in self._together

    def _follow(self, block: int, index: int) -> Segment | None:
        """The segment behind an instruction that ends one; None at the end of the function."""
        if index == self._blocks.last[block]:
            return self._start_after(block, index)
        return self._new_segment(block, index + 1)

    def _start_after(self, block: int, index: int) -> Segment | None:
        return self._starts[block + 1] if index + 1 < len(self._function.instructions) else None

    def _refuse(self, segment: Segment, index: int, error: Exception) -> None:
        """End lanes at an instruction that is not emulated; the code after it is never reached."""
        reason = f" ({error})" if isinstance(error, UnsupportedInstruction) and str(error) else ""
        message = f"{self._function.instructions[index].text} is not emulated{reason}"
        segment.closing = None  # lanes do not meet for it
        segment.end = end_with_fault(FaultKind.UNSUPPORTED, message, self._first_static + index)
