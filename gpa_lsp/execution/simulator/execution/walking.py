"""Executes the warps of some blocks, step by step: :class:`Walk`."""

import re
from collections.abc import Callable, Container, Sequence

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gpa_lsp.code.binary.model import INSTRUCTION_BYTES, Flow
from gpa_lsp.execution.emulator.engine.geometry import WARP_LANES, pack_lanes, unpack_lanes
from gpa_lsp.execution.simulator.execution.compiled_steps import (
    BoundCode,
    BoundStep,
    CompiledSteps,
    Segment,
    WalkFaultError,
)
from gpa_lsp.execution.simulator.execution.memory_spaces import ConstantBanks, MemorySpaces, SpecialRegisters
from gpa_lsp.execution.simulator.execution.operand_values import (
    PARTS,
    RZ,
    UnreadOperandError,
    find_constant,
    find_register,
    find_signs,
    is_predicate,
)
from gpa_lsp.execution.simulator.execution.recording import Recorder
from gpa_lsp.execution.simulator.execution.warp_state import (
    BLOCKED,
    Bits,
    BlockBarriers,
    CallStack,
    Column,
    Lanes,
    Path,
    Paths,
    WarpState,
    gather,
)
from gpa_lsp.execution.simulator.warp_walk import NotSimulated
from gpa_lsp.foundation.numbers import format_count, format_seconds
from gpa_lsp.foundation.work_time import work_time
from gpa_lsp.kernel.model import KernelRows

_CALLEE = re.compile(r"`\((?P<name>[^)]*)\)")
_STEPS_UNTIL_FAIR = 128
_MOST_CALLS = 64  # Nested: deeper ones end the walk


class WalkLimits(Struct, frozen=True, kw_only=True):
    """Limits of a walk; the first one reached ends it."""

    executions: int = 12_000_000  # of instructions by warps, kept
    seconds: float = 60.0  # of processor time


class WalkRefusedError(Exception):
    """An instruction cannot be executed."""


class Walk:
    """The warps of some blocks.

    Args:
        code: what they execute.
        state: their registers, with the lanes that start alive.
        spaces: their memories.
        specials: their special registers.
        recorder: notes what they execute.
        blocks: int64[w], number of each warp's block among those that run.
        limits: see :class:`WalkLimits`.
        banks: constants.

    Attributes:
        problems: why blocks did not run to their end, first block first: number of the block, warp, row and sentence.
    """

    def __init__(
        self,
        code: BoundCode,
        state: WarpState,
        spaces: MemorySpaces,
        specials: SpecialRegisters,
        *,
        recorder: Recorder,
        blocks: npt.NDArray[np.int64],
        limits: WalkLimits,
        banks: ConstantBanks,
    ) -> None:
        self._code, self._state, self._recorder = code, state, recorder
        self._rows: KernelRows = code.rows
        self._blocks = blocks
        self._limits = limits
        self._banks = banks
        self._paths = Paths(state, state.alive)
        self._barriers = BlockBarriers(state, self._paths, blocks)
        self._calls = _find_calls(self._rows)
        self._targets: list[int] = self._rows.target_row.tolist()
        self._flow: list[int] = self._rows.flow.tolist()
        self.problems: dict[int, tuple[int, int | None, str]] = {}
        self._step = 0
        self._last_steps: npt.NDArray[np.int64] = np.zeros(state.count, np.int64)
        self._compiled = CompiledSteps(state, spaces, specials.values, recorder)
        self._lanes = Lanes(slice(0, 0), np.zeros((0, WARP_LANES), np.bool_))
        self._by_flow: dict[int, Callable[[BoundStep, Lanes], None]] = {
            Flow.BRANCH: self._branch,
            Flow.INDIRECT_BRANCH: self._branch_indirectly,
            Flow.CALL: self._call,
            Flow.INDIRECT_CALL: self._call_indirectly,
            Flow.RETURN: self._return,
            Flow.EXIT: self._exit,
            Flow.BARRIER_WAIT: self._converge,
        }
        self._by_opcode: dict[str, Callable[[BoundStep, Lanes], None]] = {
            "BAR": self._wait_for_block,
            "WARPSYNC": self._wait_for_lanes,
            "B2R": self._read_barrier,
        }

    def run(self) -> None:
        """Run until every block has ended, or none can go on."""
        end = work_time() + self._limits.seconds
        with np.errstate(all="ignore"):
            while True:
                row = self._choose_row()
                if row == BLOCKED and self._paths.part():
                    continue
                if row == BLOCKED:
                    break
                if self._recorder.executions > self._limits.executions:
                    self._end_all(
                        f"more than {format_count(self._limits.executions)} instructions would have to be kept"
                    )
                    break
                if work_time() > end:
                    self._end_all(f"it took more than {format_seconds(self._limits.seconds)} of processor time")
                    break
                self._run_segment(row)
        self._note_deadlocks()

    def _choose_row(self) -> int:
        """The lowest row, where warps that diverged are likely to meet; now and then that of the warp that waited longest.

        Without the latter, a warp that waits in a loop for another would keep it from ever going on.
        """
        self._step += 1
        rows = self._paths.rows
        if self._step % _STEPS_UNTIL_FAIR == 0:
            longest = int(np.where(rows == BLOCKED, self._step, self._last_steps).argmin())
            return int(rows[longest])
        return int(rows.min())

    def _run_segment(self, row: int) -> None:
        chosen = self._paths.rows == row
        warps: npt.NDArray[np.int64] | slice = slice(None) if chosen.all() else np.flatnonzero(chosen)
        lanes = Lanes(warps, self._paths.masks[warps])
        self._last_steps[warps] = self._step
        if row >= len(self._rows):
            self._fail(lanes, len(self._rows) - 1, "it runs past the end of the code")
            return
        segment = self._code.find_segment(row)
        try:
            bits = self._compiled.run(segment, lanes)
        except WalkFaultError as error:
            place = error.place
            self._recorder.end(row, place, lanes)
            self._paths.rows[warps] = row + place
            guilty = Lanes(self._numbers(lanes)[error.guilty], lanes.mask[error.guilty])
            self._fail(guilty, row + place, str(error))
            return
        if segment.last is None:
            self._recorder.end(row, len(segment.steps), lanes)
            self._paths.rows[warps] = row + len(segment.steps)
            return
        self._move(segment, segment.last, lanes, Lanes(warps, unpack_lanes(bits)))

    # Control -------------------------------------------------------------------------------------------------------

    def _move(self, segment: Segment, step: BoundStep, lanes: Lanes, guarded: Lanes) -> None:
        """The last instruction of a segment, which says where its warps go on.

        Args:
            guarded: of them, the lanes for which its predicate holds.
        """
        row = step.instruction.row
        does = self._by_opcode.get(step.instruction.opcode) or self._by_flow.get(self._flow[row])
        self._recorder.end(segment.first, len(segment.steps) - (does is None), lanes)
        self._lanes = lanes
        try:
            if does is None:
                raise WalkRefusedError(_describe_refusal(step.instruction.opcode))
            does(step, guarded)
        except (WalkRefusedError, UnreadOperandError) as error:
            self._paths.rows[lanes.warps] = row
            self._fail(lanes, row, str(error) or f"{step.instruction.opcode} is not simulated")

    def _read(self, operand: str, lanes: Lanes) -> Column:
        """The 32 bits of a register, a constant or a number, of each lane or of all."""
        negative, inverted, bar, suffix = find_signs(operand)
        register, constant = find_register(operand), find_constant(operand)
        if negative or bar or PARTS.get(suffix, suffix) is not None:
            raise UnreadOperandError(operand)
        if register is not None and register[1] != RZ:
            file = self._state.registers if register[0] == "R" else self._state.uniform
            found: Column = file[register[1]][lanes.warps]
        else:
            number = 0 if register else self._banks.read_word(*constant) if constant else int(operand, 16)
            found = np.full((1, 1), number & 0xFFFFFFFF, np.uint32)
        return ~found if inverted else found

    def _read_predicate(self, operand: str, lanes: Lanes) -> Column:
        """Whether a predicate holds."""
        found: Column = self._find_predicate(operand.removeprefix("!"))[lanes.warps]
        return ~found if operand.startswith("!") else found

    def _find_predicate(self, name: str) -> npt.NDArray[np.bool_]:
        """bool[w, 32 or 1]."""
        file = self._state.uniform_predicates if name.startswith("U") else self._state.predicates
        found: npt.NDArray[np.bool_] = file[-1 if name.endswith("T") else int(name[-1])]
        return found

    def _numbers(self, lanes: Lanes) -> npt.NDArray[np.int64]:
        found: npt.NDArray[np.int64] = np.arange(self._state.count, dtype=np.int64)[lanes.warps]
        return found

    def _go(self, lanes: Lanes, taken: npt.NDArray[np.bool_], target: int, following: int) -> None:
        """Let some lanes jump; the others go on at the following row."""
        whole = self._lanes.mask
        jumps = (taken == whole).all(axis=1)
        stays = ~taken.any(axis=1)
        numbers = self._numbers(lanes)
        self._paths.rows[numbers[jumps]] = target
        self._paths.rows[numbers[stays]] = following
        parted = ~jumps & ~stays
        self._paths.divide(numbers[parted], whole[parted], taken[parted], target, following)

    def _branch(self, step: BoundStep, lanes: Lanes) -> None:
        row = step.instruction.row
        target = self._targets[row]
        taken = lanes.mask
        operands = step.instruction.operands
        if step.instruction.has("DIV"):
            # ~URZ and the like: jumps where not all of these lanes are here.
            wanted = self._read(operands[0], lanes)
            taken = taken & (pack_lanes(self._lanes.mask)[:, None] != wanted)
        elif len(operands) > 1:
            self._check_known(step, lanes)
            for operand in operands[:-1]:
                if is_predicate(operand):
                    taken = taken & self._read_predicate(operand, lanes)
        if target < 0:
            raise WalkRefusedError("its target is not in the code")
        self._go(lanes, taken, target, row + 1)

    def _check_known(self, step: BoundStep, lanes: Lanes) -> None:
        if self._state.has_unknown and self._state.find_unknown(step.lowered["read"], lanes).any():
            raise WalkRefusedError("what decides it depends on a value that is not known")

    def _branch_indirectly(self, step: BoundStep, lanes: Lanes) -> None:
        row = step.instruction.row
        function = int(self._rows.function_index[row])
        following = int(self._rows.pc_offsets[row]) + INSTRUCTION_BYTES
        known = self._rows.functions[function].function
        allowed = None if known is None else known.indirect_branch_targets.get(int(self._rows.pc_offsets[row]))
        goals = self._find_goals(step, lanes, following)
        for place, warp in enumerate(self._numbers(lanes).tolist()):
            ways = self._part_ways(place, lanes, goals[place], row, allowed)
            self._paths.part_into(warp, (Path(goal, bits, self._paths.stacks[warp]) for bits, goal in ways))

    def _find_goals(self, step: BoundStep, lanes: Lanes, following: int) -> npt.NDArray[np.int64]:
        """int64[k, 32], offsets in the function that a register and a number behind it lead to."""
        self._check_known(step, lanes)
        parts = " ".join(step.instruction.operands).split()
        base = self._read(parts[0], lanes).astype(np.int64)
        offset = int(parts[1], 16) if len(parts) > 1 and parts[1].lstrip("-").startswith("0x") else 0
        return np.broadcast_to((base + offset + following) & 0xFFFFFFFF, lanes.mask.shape)

    def _part_ways(
        self, place: int, lanes: Lanes, goals: npt.NDArray[np.int64], row: int, allowed: Container[int] | None
    ) -> list[tuple[Bits, int]]:
        """Lanes of a warp, and the row they go on at; those that do not jump last."""
        function = int(self._rows.function_index[row])
        first, stop = int(self._rows.first_rows[function]), int(self._rows.first_rows[function + 1])
        found = np.unique(goals[lanes.mask[place]]).tolist()
        if any(
            one % INSTRUCTION_BYTES or first + one // INSTRUCTION_BYTES >= stop or (allowed and one not in allowed)
            for one in found
        ):
            raise WalkRefusedError("where it goes is not known")
        ways = [(gather((goals == one) & lanes.mask[place]), first + one // INSTRUCTION_BYTES) for one in found]
        return [*ways, (self._tell_apart(place, lanes)[1], row + 1)]

    def _tell_apart(self, place: int, lanes: Lanes) -> tuple[Bits, Bits]:
        """Lanes of a warp's running path for which the predicate holds, and the others."""
        return gather(lanes.mask[place]), gather(self._lanes.mask[place] & ~lanes.mask[place])

    def _call_indirectly(self, step: BoundStep, lanes: Lanes) -> None:
        """A call of what a register names: where its function begins in the section of the kernel."""
        row = step.instruction.row
        if not step.instruction.has("REL"):
            raise WalkRefusedError("it calls a function through a register, by an address that no image says")
        goals = self._find_goals(step, lanes, 0)
        allowed = self._calls.entries.get(int(self._rows.function_index[row]), frozenset())
        for place, warp in enumerate(self._numbers(lanes).tolist()):
            stack = self._paths.stacks[warp]
            deeper = _nest(stack, row)
            ways = self._part_ways(place, lanes, goals[place], row, allowed)
            self._paths.part_into(warp, (Path(goal, bits, stack if goal == row + 1 else deeper) for bits, goal in ways))

    def _call(self, step: BoundStep, lanes: Lanes) -> None:
        row = step.instruction.row
        target = self._targets[row]
        if target < 0:
            found = _CALLEE.search(step.instruction.text)
            target = self._calls.first_rows.get(found["name"], -1) if found else -1
            if target < 0:
                name = found["name"] if found else "a function through a register"
                raise WalkRefusedError(f"it calls {name}, which is not in the module")
        if row not in self._calls.rows and self._targets[row] >= 0:
            self._go(lanes, lanes.mask, target, row + 1)
            return
        for place, warp in enumerate(self._numbers(lanes).tolist()):
            bits, rest = self._tell_apart(place, lanes)
            stack = self._paths.stacks[warp]
            deeper = _nest(stack, row) if bits else stack
            self._paths.part_into(warp, (Path(target, bits, deeper), Path(row + 1, rest, stack)))

    def _return(self, step: BoundStep, lanes: Lanes) -> None:
        row = step.instruction.row
        for place, warp in enumerate(self._numbers(lanes).tolist()):
            bits, rest = self._tell_apart(place, lanes)
            stack = self._paths.stacks[warp]
            if bits and not stack:
                raise WalkRefusedError("it returns where nothing was called")
            outer = stack[-1] if stack else row + 1
            self._paths.part_into(warp, (Path(outer, bits, stack[:-1]), Path(row + 1, rest, stack)))

    def _exit(self, step: BoundStep, lanes: Lanes) -> None:
        numbers = self._numbers(lanes)
        ends = lanes.mask
        for operand in step.instruction.operands:
            if is_predicate(operand):
                self._check_known(step, lanes)
                ends = ends & self._read_predicate(operand, lanes)
        self._state.alive[numbers] &= ~ends
        rest = self._lanes.mask & ~ends
        goes_on = rest.any(axis=1)
        self._paths.masks[numbers] = rest
        self._paths.rows[numbers[goes_on]] = step.instruction.row + 1
        ended = numbers[~goes_on]
        for warp in ended.tolist():
            self._paths.switch(warp)
        if ends.any():
            self._barriers.release(np.unique(self._blocks[numbers]))

    def _converge(self, step: BoundStep, lanes: Lanes) -> None:
        number = int(next(one for one in step.instruction.operands if one.startswith("B"))[1:])
        self._wait(step.instruction.row + 1, lanes, self._state.barriers[number][lanes.warps], number)

    def _wait_for_lanes(self, step: BoundStep, lanes: Lanes) -> None:
        operand = step.instruction.operands[0] if step.instruction.operands else "0xffffffff"
        self._check_known(step, lanes)
        self._wait(step.instruction.row + 1, lanes, self._read(operand, lanes), None)

    def _wait(self, following: int, lanes: Lanes, wanted: Column, barrier: int | None) -> None:
        """Let warps go on at a row whose awaited lanes are all here; the others wait.

        Args:
            wanted: lanes that each lane waits for.
            barrier: number of the convergence barrier; None where they wait in front of the row.
        """
        numbers, bits = self._numbers(lanes), lanes.bits
        awaited = np.bitwise_or.reduce(np.where(lanes.mask, wanted, 0), axis=1)
        is_here = (awaited & pack_lanes(self._state.alive[lanes.warps]) & ~bits) == 0
        self._paths.rows[numbers[is_here]] = following
        for place in np.flatnonzero(~is_here).tolist():
            warp, stack = int(numbers[place]), self._paths.stacks[int(numbers[place])]
            self._paths.wait(warp, Path(following, int(bits[place]), stack, barrier, int(awaited[place])))

    def _wait_for_block(self, step: BoundStep, lanes: Lanes) -> None:
        row = step.instruction.row
        instruction = step.instruction
        self._check_known(step, lanes)
        values = [one for one in instruction.operands if not is_predicate(one)]
        given = [np.broadcast_to(self._read(one, lanes), lanes.mask.shape) for one in values]
        chosen = [self._read_predicate(one, lanes) for one in instruction.operands if is_predicate(one)]
        holds = lanes.mask & chosen[0] if chosen else np.zeros_like(lanes.mask)
        waits = not instruction.has("ARV")
        numbers = self._numbers(lanes)
        for place, warp in enumerate(numbers.tolist()):
            bits, rest = self._tell_apart(place, lanes)
            if not bits:
                self._paths.rows[warp] = row + 1
                continue
            first = int(lanes.mask[place].argmax())
            path = Path(row + 1, bits, self._paths.stacks[warp])
            self._barriers.arrive(
                warp,
                int(given[0][place][first]) if given else 0,
                path,
                expected=int(given[1][place][first]) if len(given) > 1 else 0,
                holds=int(holds[place].sum()),
                waits=waits,
            )
            if rest or not waits:
                self._paths.resume(warp, Path(row + 1, rest | (0 if waits else bits), path.stack))
            self._paths.switch(warp)
        self._barriers.release(np.unique(self._blocks[numbers]))

    def _read_barrier(self, step: BoundStep, lanes: Lanes) -> None:
        """B2R.RESULT: what the last reduction at a barrier found."""
        instruction = step.instruction
        if not instruction.has("RESULT"):
            raise WalkRefusedError(f"{instruction.opcode} is not simulated")
        results = self._barriers.results[lanes.warps]
        for operand in instruction.operands:
            register = find_register(operand)
            if register is not None and register[1] != RZ:
                _write(self._state.registers[register[1]], lanes, results[:, :1].astype(np.uint32))
            elif register is None and not operand.endswith("T"):
                _write(self._find_predicate(operand), lanes, results[:, 1:2] != 0)
        self._paths.rows[self._numbers(lanes)] = instruction.row + 1

    # Ends ----------------------------------------------------------------------------------------------------------

    def _fail(self, lanes: Lanes, row: int, reason: str) -> None:
        """The blocks of some warps go no further."""
        numbers = self._numbers(lanes)
        for warp in numbers.tolist():
            self.problems.setdefault(int(self._blocks[warp]), (warp, row, reason))
        for block in np.unique(self._blocks[numbers]).tolist():
            self._barriers.drop(block)
            for warp in np.flatnonzero(self._blocks == block).tolist():
                self._state.alive[warp] = False
                self._paths.drop(warp)

    def _end_all(self, reason: str) -> None:
        for warp in np.flatnonzero(self._state.alive.any(axis=1)).tolist():
            row = int(self._paths.rows[warp])
            self.problems.setdefault(int(self._blocks[warp]), (warp, None if row == BLOCKED else row, reason))

    def _note_deadlocks(self) -> None:
        """Note the blocks whose lanes still wait."""
        for warp in np.flatnonzero(self._state.alive.any(axis=1)).tolist():
            block = int(self._blocks[warp])
            row = self._paths.waiting_row(warp)
            found = self._barriers.find_row(block) if row is None else row
            self.problems.setdefault(block, (warp, found, "its lanes wait for others that never come"))


def _write(file: Column, lanes: Lanes, values: Column) -> None:
    """Write to the lanes that execute, of one register or predicate."""
    part = file[lanes.warps]
    np.copyto(part, values, where=lanes.mask)
    file[lanes.warps] = part


def _describe_refusal(opcode: str) -> str:
    """Reason why an instruction that moves control ends the walk."""
    why = ": blocks of a cluster, which wait for each other on several SMs, are not" if "CGABAR" in opcode else ""
    return f"{opcode} is not simulated{why}"


def _nest(stack: CallStack, row: int) -> CallStack:
    """The call stack inside of a call."""
    if len(stack) >= _MOST_CALLS:
        raise WalkRefusedError(f"calls nest deeper than {_MOST_CALLS}")
    return (*stack, row + 1)


class _Calls(Struct, frozen=True, kw_only=True):
    """Calls and entries of functions."""

    rows: frozenset[int]  # that call, and do not only jump
    first_rows: dict[str, int]  # of each function, by its name
    entries: dict[int, frozenset[int]]  # number of a section → offsets at which functions begin in it


def _find_calls(rows: KernelRows) -> _Calls:
    calls: set[int] = set()
    firsts: dict[str, int] = {}
    offsets: dict[int, frozenset[int]] = {}
    for number, function in enumerate(rows.functions):
        first = int(rows.first_rows[number])
        firsts.setdefault(function.name, first)
        if function.graph is not None:
            calls |= {first + site.instruction for site in function.graph.calls if not site.is_tail}
            offsets[number] = frozenset(one.start_offset for one in function.graph.procedures)
            for procedure in function.graph.procedures:
                firsts.setdefault(procedure.name, first + procedure.start_offset // INSTRUCTION_BYTES)
    return _Calls(rows=frozenset(calls), first_rows=firsts, entries=offsets)


def describe_problems(walk: Walk, blocks: Sequence[int], warps: Sequence[int]) -> tuple[NotSimulated, ...]:
    """Reasons why blocks did not run to their end, each once."""
    found: dict[tuple[str, int | None], NotSimulated] = {}
    for block, (warp, row, reason) in sorted(walk.problems.items()):
        entry = NotSimulated(reason=reason, row=row, block=blocks[block], warp=warps[warp])
        found.setdefault((reason, row), entry)
    return tuple(found.values())
