"""PTX functions → :class:`.segments.BoundFunction`."""

import numpy as np

from gpa_lsp.emulator.engine.barrier_ends import WarpBarrier
from gpa_lsp.emulator.engine.binder import Binder, UnsupportedInstruction
from gpa_lsp.emulator.engine.control import end_with_exit, end_with_fault, end_with_jump
from gpa_lsp.emulator.engine.ends import Ending, bind_end
from gpa_lsp.emulator.engine.fragments import Fragment
from gpa_lsp.emulator.engine.instructions import bind_instruction, find_gate
from gpa_lsp.emulator.engine.lane_steps import guarded_mask
from gpa_lsp.emulator.engine.machine import Machine
from gpa_lsp.emulator.engine.segments import BoundFunction, Segment
from gpa_lsp.emulator.model import FaultKind
from gpa_lsp.emulator.ptx.blocks import PtxBlocks, find_blocks
from gpa_lsp.emulator.ptx.model import PtxFunction, PtxInstruction
from gpa_lsp.emulator.ptx.registers_used import list_reads, list_writes

_ENDING = frozenset({"bra", "brx", "ret", "exit", "trap", "call", "bar", "barrier"})
_MEETING = frozenset({"shfl", "vote", "match", "redux", "mma", "wmma", "ldmatrix", "stmatrix", "movmatrix", "elect"})
_POLLING_OPCODES = frozenset({"atom", "red", "nanosleep"})
_POLLING_SUFFIXES = frozenset({"volatile", "acquire", "relaxed", "mmio"})


def bind_function(machine: Machine, name: str) -> BoundFunction:
    """Bind a function, and note it with the machine."""
    function = machine.module.functions[name]
    bound = BoundFunction(name, function.local_bytes)
    machine.enter_function(bound)
    _FunctionBinder(machine, function, bound).bind()
    return bound


class _FunctionBinder:
    """Cuts the blocks of a function into segments and binds their instructions."""

    def __init__(self, machine: Machine, function: PtxFunction, bound: BoundFunction) -> None:
        self._machine = machine
        self._function = function
        self._bound = bound
        self._binder = Binder(machine, function, machine.first_statics[function.name])
        self._blocks = find_blocks(function)
        self._live = _find_live_at_cuts(function, self._blocks)
        self._segments: list[tuple[int, int, Segment]] = []
        self._starts = [self._new_segment(block, first) for block, first in enumerate(self._blocks.first)]

    def bind(self) -> None:
        """Bind everything."""
        for block, segment in enumerate(self._starts):
            segment.enters_block = self._number_block(block)
            self._bind_block(block, segment)
        layout = self._binder.layout
        always = layout.always_live
        self._segments.sort(key=lambda found: (self._blocks.ranks[found[0]], found[1]))
        for order, (_, _, segment) in enumerate(self._segments):
            segment.order = order
            segment.live_in = tuple(dict.fromkeys((*segment.live_in, *always)))
            segment.size = len(segment.instructions)
        first = self._starts[0]
        self._bound.segments = [first, *(segment for _, _, segment in self._segments if segment is not first)]
        self._bound.template = layout.template
        self._bound.dtypes = layout.dtypes
        self._bound.parameters = [layout.pieces.setdefault(one.name, {}) for one in self._function.parameters]
        self._bound.returns = [layout.pieces.setdefault(one.name, {}) for one in self._function.returns]

    def _number_block(self, block: int) -> int:
        """Its number over all functions, in the order of the static instructions."""
        return self._machine.block_bases.get(self._function.name, 0) + block

    def _new_segment(self, block: int, start: int) -> Segment:
        live = self._live.get(start, frozenset())
        segment = Segment(self._function.name, 0, (), tuple(sorted(live)))
        self._segments.append((block, start, segment))
        return segment

    def _bind_block(self, block: int, segment: Segment) -> None:
        binder, instructions = self._binder, self._function.instructions
        last = self._blocks.last[block]
        binder.steps = segment.steps
        for index in range(self._blocks.first[block], last + 1):
            instruction = instructions[index]
            binder.begin(instruction)
            self._note_polling(segment, instruction)
            try:
                if instruction.opcode in _MEETING:
                    segment = self._put_gate(block, segment, index)
                elif instruction.opcode in _ENDING:
                    following = self._follow(block, index)
                    segment.instructions = (*segment.instructions, binder.static)
                    self._count_guarded()
                    bind_end(
                        Ending(
                            binder=binder,
                            machine=self._machine,
                            segment=segment,
                            following=following,
                            starts=self._starts,
                            blocks=self._blocks,
                        )
                    )
                    if index == last or following is None:
                        return
                    segment = following
                    binder.steps = segment.steps
                    continue
                segment.instructions = (*segment.instructions, binder.static)
                self._count_guarded()
                bind_instruction(binder)
            except (UnsupportedInstruction, KeyError) as error:
                self._refuse(segment, index, error)
                return
        following = self._start_after(block, last)
        segment.end = end_with_exit(None, None) if following is None else end_with_jump(following)

    def _note_polling(self, segment: Segment, instruction: PtxInstruction) -> None:
        if instruction.opcode in _POLLING_OPCODES or not _POLLING_SUFFIXES.isdisjoint(instruction.suffixes):
            segment.is_polling = True

    def _count_guarded(self) -> None:
        binder = self._binder
        guard, static, counts = binder.guard, binder.static, self._machine.guarded
        if guard is None:
            return

        def step(fragment: Fragment) -> None:
            counts[static] += int(np.count_nonzero(guarded_mask(fragment, guard)))

        binder.steps.append(step)

    def _put_gate(self, block: int, segment: Segment, index: int) -> Segment:
        """Cut before an instruction whose lanes must meet."""
        binder = self._binder
        gate = find_gate(binder)
        if gate is None:
            return segment
        following = self._new_segment(block, index)
        guards = () if binder.guard is None else (binder.guard,)
        following.live_in = (*following.live_in, gate, *guards)
        segment.end = WarpBarrier(
            static=binder.static, following=following, members=gate, guard=binder.guard, is_sync=False
        ).arrive
        binder.steps = following.steps
        return following

    def _follow(self, block: int, index: int) -> Segment | None:
        """The segment behind an instruction that ends one; None at the end of the function."""
        if index == self._blocks.last[block]:
            return self._start_after(block, index)
        return self._new_segment(block, index + 1)

    def _start_after(self, block: int, index: int) -> Segment | None:
        return self._starts[block + 1] if index + 1 < len(self._function.instructions) else None

    def _refuse(self, segment: Segment, index: int, error: Exception) -> None:
        """End the lanes that come to an instruction that is not emulated; what is behind it is never reached."""
        instruction = self._function.instructions[index]
        reason = f" ({error})" if isinstance(error, UnsupportedInstruction) and str(error) else ""
        self._binder.discard()
        segment.end = end_with_fault(
            None,
            None,
            kind=FaultKind.UNSUPPORTED,
            message=f"{instruction.text} is not emulated{reason}",
            static=self._binder.static,
        )


def _find_live_at_cuts(function: PtxFunction, blocks: PtxBlocks) -> dict[int, frozenset[int]]:
    """Live slots at the starts of blocks and around instructions where segments are cut."""
    live: dict[int, frozenset[int]] = {}
    for block, (first, last) in enumerate(zip(blocks.first, blocks.last, strict=True)):
        alive: set[int] = set()
        for other in blocks.successors[block]:
            alive.update(blocks.live_in[other])
        for index in range(last, first - 1, -1):
            instruction = function.instructions[index]
            if instruction.opcode in _ENDING:
                live[index + 1] = frozenset(alive)
            if instruction.guard is None:
                alive.difference_update(list_writes(instruction))
            else:
                alive.update(list_writes(instruction))
            alive.update(list_reads(instruction))
            if instruction.opcode in _MEETING:
                live[index] = frozenset(alive)
        live[first] = frozenset(alive)
    return live
