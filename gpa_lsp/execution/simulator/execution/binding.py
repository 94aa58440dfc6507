"""Rows of a kernel → what executes them: :class:`BoundCode`."""

import re
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gpa_lsp.code.binary.model import Flow
from gpa_lsp.code.binary.opcodes import MemorySpace as KnownSpace
from gpa_lsp.code.binary.opcodes import Opcode
from gpa_lsp.execution.simulator.execution.demand import Demand
from gpa_lsp.execution.simulator.execution.lowering import Lowering
from gpa_lsp.execution.simulator.execution.memory_spaces import ConstantBanks, SpecialRegisters, UnknownConstantError
from gpa_lsp.execution.simulator.execution.memory_steps import MemoryStep, build_memory_step
from gpa_lsp.execution.simulator.execution.operand_values import (
    MachineInstruction,
    Reader,
    UnreadOperandError,
    is_predicate,
    read_instruction,
    read_integer,
    read_predicate,
    write_pair,
    write_predicate,
    write_register,
)
from gpa_lsp.execution.simulator.execution.row_operands import Row, encode_predicate
from gpa_lsp.execution.simulator.execution.walk_model import Code
from gpa_lsp.execution.simulator.execution.warp_state import WARP_LANES, Column, Lanes, WarpState, pack_lanes
from gpa_lsp.foundation.records import ColumnRecord
from gpa_lsp.kernel.model import KernelRows

Step = Callable[[WarpState, Lanes], None]
Builder = Callable[[MachineInstruction, ConstantBanks], Step]

_LANES = np.arange(WARP_LANES, dtype=np.int64)[None, :]


def build_special(instruction: MachineInstruction, specials: SpecialRegisters) -> Step:
    """S2R, S2UR, CS2R."""
    target, name = instruction.operands
    values = specials.find(name)
    if values is None:
        raise UnreadOperandError(instruction.text)
    if instruction.opcode == "CS2R" and not instruction.has("32"):
        both = write_pair(target)
        return lambda state, lanes: both(state, lanes, values[lanes.warps].astype(np.uint64))
    write = write_register(target)
    if target.startswith("U"):
        return lambda state, lanes: write(state, lanes, values[lanes.warps][:, :1])
    return lambda state, lanes: write(state, lanes, values[lanes.warps])


def build_shuffle(instruction: MachineInstruction, banks: ConstantBanks) -> Step:
    """SHFL: values of other lanes."""
    inside, target, value_text, lane_text, bound_text = instruction.operands
    mode = instruction.modifiers[0]
    value, lane, bound = (read_integer(text, banks) for text in (value_text, lane_text, bound_text))
    write, out = write_register(target), write_predicate(inside)

    def step(state: WarpState, lanes: Lanes) -> None:
        given = np.broadcast_to(value(state, lanes), lanes.mask.shape)
        by, limit = lane(state, lanes).astype(np.int64) & 31, bound(state, lanes).astype(np.int64)
        segment, clamp = limit >> 8 & 31, limit & 31
        last = (_LANES & segment) | (clamp & ~segment)
        if mode == "UP":
            source, is_inside = _LANES - by, _LANES - by >= last
        elif mode == "DOWN":
            source, is_inside = _LANES + by, _LANES + by <= last
        elif mode == "BFLY":
            source, is_inside = _LANES ^ by, (_LANES ^ by) <= last
        else:
            source = (_LANES & segment) | (by & ~segment)
            is_inside = source <= last
        source = np.broadcast_to(np.where(is_inside, source, _LANES) & 31, lanes.mask.shape)
        write(state, lanes, np.take_along_axis(given, source, axis=1))
        out(state, lanes, is_inside)

    return step


def build_vote(instruction: MachineInstruction, banks: ConstantBanks) -> Step:
    """VOTE, VOTEU: which of the lanes hold a predicate."""
    del banks
    operands = instruction.operands
    chosen = read_predicate(operands[-1])
    target = next((one for one in operands if not is_predicate(one)), None)
    outs = [one for one in operands[:-1] if is_predicate(one)]
    write = None if target is None else write_register(target)
    out = write_predicate(outs[0]) if outs else None
    mode = next(one for one in instruction.modifiers if one in ("ANY", "ALL", "EQ"))

    def step(state: WarpState, lanes: Lanes) -> None:
        holds = lanes.mask & chosen(state, lanes)
        if write is not None:
            write(state, lanes, pack_lanes(holds)[:, None])
        if out is not None:
            some: Column = np.any(holds, axis=1, keepdims=True)
            every: Column = np.all(holds == lanes.mask, axis=1, keepdims=True)
            out(state, lanes, some if mode == "ANY" else every if mode == "ALL" else every | ~some)

    return step


def build_match(instruction: MachineInstruction, banks: ConstantBanks) -> Step:
    """MATCH: lanes with the same value."""
    if instruction.has("U64"):
        raise UnreadOperandError(instruction.text)
    value = read_integer(instruction.operands[-1], banks)
    target = next(one for one in instruction.operands if not is_predicate(one))
    write = write_register(target)
    out = write_predicate(instruction.operands[0]) if is_predicate(instruction.operands[0]) else None
    is_all = instruction.has("ALL")

    def step(state: WarpState, lanes: Lanes) -> None:
        given = np.broadcast_to(value(state, lanes), lanes.mask.shape)
        same = (given[:, :, None] == given[:, None, :]) & lanes.mask[:, None, :]
        bits = (same.astype(np.uint64) << np.arange(WARP_LANES, dtype=np.uint64)).sum(axis=2).astype(np.uint32)
        if is_all:
            agrees = bits == lanes.bits[:, None]
            bits = np.where(agrees, bits, np.uint32(0))
            if out is not None:
                out(state, lanes, agrees)
        write(state, lanes, bits)

    return step


_REDUCTIONS: dict[str, Callable[..., Column]] = {
    "SUM": lambda values, mask: np.where(mask, values, 0).sum(axis=1, keepdims=True),
    "MIN": lambda values, mask: np.where(mask, values, 1 << 40).min(axis=1, keepdims=True),
    "MAX": lambda values, mask: np.where(mask, values, -1 << 40).max(axis=1, keepdims=True),
    "OR": lambda values, mask: np.bitwise_or.reduce(np.where(mask, values, 0), axis=1, keepdims=True),
    "XOR": lambda values, mask: np.bitwise_xor.reduce(np.where(mask, values, 0), axis=1, keepdims=True),
    "AND": lambda values, mask: np.bitwise_and.reduce(np.where(mask, values, -1), axis=1, keepdims=True),
}


def build_reduction(instruction: MachineInstruction, banks: ConstantBanks) -> Step:
    """REDUX: one value of all lanes'."""
    name = next((one for one in instruction.modifiers if one in _REDUCTIONS), "AND")
    value, write = read_integer(instruction.operands[1], banks), write_register(instruction.operands[0])
    is_signed = instruction.has("S32")

    def step(state: WarpState, lanes: Lanes) -> None:
        given = np.broadcast_to(value(state, lanes), lanes.mask.shape)
        wide = (given.view(np.int32) if is_signed else given).astype(np.int64)
        write(state, lanes, (_REDUCTIONS[name](wide, lanes.mask) & 0xFFFFFFFF).astype(np.uint32))

    return step


def build_to_uniform(instruction: MachineInstruction, banks: ConstantBanks) -> Step:
    """R2UR: the value of the first lane that executes."""
    if len(instruction.operands) > 2 and not instruction.operands[0].endswith("T"):
        raise UnreadOperandError(instruction.text)
    value, write = read_integer(instruction.operands[-1], banks), write_register(instruction.operands[-2])

    def step(state: WarpState, lanes: Lanes) -> None:
        given = np.broadcast_to(value(state, lanes), lanes.mask.shape)
        first = lanes.mask.argmax(axis=1)[:, None]
        write(state, lanes, np.take_along_axis(given, first, axis=1))

    return step


_BARRIER = re.compile(r"B(\d+)")


def build_barrier_move(instruction: MachineInstruction, banks: ConstantBanks) -> Step:
    """BMOV: a convergence barrier to a register or back."""
    target, source = instruction.operands
    into, outof = _BARRIER.fullmatch(target), _BARRIER.fullmatch(source)
    clears = instruction.has("CLEAR")
    if into and not outof:
        number, value = int(into[1]), read_integer(source, banks)

        def set_barrier(state: WarpState, lanes: Lanes) -> None:
            part = state.barriers[number][lanes.warps]
            np.copyto(part, np.broadcast_to(value(state, lanes), lanes.mask.shape), where=lanes.mask)
            state.barriers[number][lanes.warps] = part

        return set_barrier
    if outof is None or into is not None:
        raise UnreadOperandError(instruction.text)
    from_number, write = int(outof[1]), write_register(target)

    def get_barrier(state: WarpState, lanes: Lanes) -> None:
        part = state.barriers[from_number][lanes.warps]
        write(state, lanes, part)
        if clears:
            state.barriers[from_number][lanes.warps] = np.where(lanes.mask, np.uint32(0), part)

    return get_barrier


def build_barrier_set(instruction: MachineInstruction, banks: ConstantBanks) -> Step:
    """BSSY: the lanes that execute it will wait for each other."""
    del banks
    found = _BARRIER.fullmatch(instruction.operands[0])
    if found is None:
        raise UnreadOperandError(instruction.text)
    number = int(found[1])

    def step(state: WarpState, lanes: Lanes) -> None:
        part = state.barriers[number][lanes.warps]
        np.copyto(part, lanes.bits[:, None], where=lanes.mask)
        state.barriers[number][lanes.warps] = part

    return step


def build_barrier_leave(instruction: MachineInstruction, banks: ConstantBanks) -> Step:
    """BREAK: the lanes that execute it are waited for no longer."""
    del banks
    found = next((one for text in instruction.operands if (one := _BARRIER.fullmatch(text))), None)
    if found is None or any(is_predicate(one) and not one.endswith("T") for one in instruction.operands):
        raise UnreadOperandError(instruction.text)
    number = int(found[1])

    def step(state: WarpState, lanes: Lanes) -> None:
        part: npt.NDArray[np.uint32] = state.barriers[number][lanes.warps]
        state.barriers[number][lanes.warps] = part & ~lanes.bits[:, None]
        state.are_barriers_left = True

    return step


# Change no register
NOTHING_OPCODES = (
    "NOP", "DEPBAR", "LDGDEPBAR", "MEMBAR", "ERRBAR", "CCTL", "CCTLL", "CGAERRBAR", "YIELD", "NANOSLEEP", "FENCE", "PREEXIT", "ACQBULK", "CCTLT",
    "ACQSHMINIT", "PMTRIG", "WARPGROUP",
)  # fmt: skip
# By opcode
LANE_STEPS: dict[str, Builder] = {
    "SHFL": build_shuffle,
    "VOTE": build_vote,
    "VOTEU": build_vote,
    "MATCH": build_match,
    "REDUX": build_reduction,
    "R2UR": build_to_uniform,
    "BMOV": build_barrier_move,
    "BSSY": build_barrier_set,
    "BREAK": build_barrier_leave,
}


_MOVES_CONTROL = frozenset(
    {"BAR", "WARPSYNC", "B2R", "R2B", "KILL", "BPT", "UCGABAR_ARV", "UCGABAR_WAIT", "ENDCOLLECTIVE"}
)
_NO_FLOW = (Flow.NONE, Flow.BARRIER_SET)
_WHY_NOT = {
    KnownSpace.TEXTURE: ": the driver decides how a texture lies in memory, so its sectors are not known",
    KnownSpace.SURFACE: ": the driver decides how a surface lies in memory, so its sectors are not known",
}
_WITHOUT_SECTORS = (KnownSpace.WARP, KnownSpace.CONSTANT, KnownSpace.TENSOR)


class BoundStep(ColumnRecord, frozen=True, kw_only=True):
    """An instruction that can be executed."""

    instruction: MachineInstruction  # as written
    step: (
        Step | None
    )  # what it does to registers across lanes; None for what machine code does, and for what is not known
    memory: MemoryStep | None  # what it does to memory; None for nothing
    refusal: str  # why it cannot be executed at all; empty where it can
    guard: Reader | None  # its predicate, negated where it is; None without one
    guard_resource: int  # the number of the predicate; -1 without one
    reads: npt.NDArray[np.int64]  # int64, numbers of what it reads, without the guard
    writes: npt.NDArray[np.int64]  # int64, numbers of what it writes
    touches: tuple[int, ...]  # the numbers of both
    moves_control: bool  # it is executed by the walk itself
    lowered: Row | None = None  # for machine code; None for what is done in numpy

    @property
    def is_computed(self) -> bool:
        """Whether machine code does all of it."""
        return self.lowered is not None and self.memory is None


class Segment(Struct, frozen=True, kw_only=True):
    """Rows that are executed one after the other."""

    first: int  # row
    steps: tuple[BoundStep, ...]  # of all but the last, and of the last where it does not move control
    last: BoundStep | None  # the step that moves control; None where the next row follows
    count: int  # rows


class BoundCode:
    """The instructions of a kernel and of what it calls, bound when they are first reached.

    Args:
        rows: of the kernel.
        banks: constants.
        specials: special registers of the warps that run.
        demand: what is asked for.
        registers: general ones that there is room for.
    """

    def __init__(
        self,
        rows: KernelRows,
        banks: ConstantBanks,
        specials: SpecialRegisters,
        demand: Demand,
        *,
        registers: int,
    ) -> None:
        self.rows = rows
        self._banks = banks
        self._specials = specials
        self._demand = demand
        self._lowering = Lowering(banks, registers)
        self._bound: dict[int, BoundStep] = {}
        self._segments: dict[int, Segment] = {}
        self._flow: Sequence[int] = rows.flow.tolist()
        self._leaders = _find_leaders(rows)

    def find_segment(self, first: int) -> Segment:
        """From a row to the next one that moves control, or is jumped to."""
        found = self._segments.get(first)
        if found is None:
            found = self._segments[first] = self._build_segment(first)
        return found

    def _build_segment(self, first: int) -> Segment:
        steps: list[BoundStep] = []
        row = first
        while row < len(self.rows):
            step = self.bind(row)
            row += 1
            if step.moves_control:
                return Segment(first=first, steps=tuple(steps), last=step, count=row - first)
            steps.append(step)
            if row in self._leaders:
                break
        return Segment(first=first, steps=tuple(steps), last=None, count=row - first)

    def bind(self, row: int) -> BoundStep:
        """One instruction."""
        found = self._bound.get(row)
        if found is None:
            found = self._bound[row] = self._bind(row)
        return found

    def _bind(self, row: int) -> BoundStep:
        instruction = read_instruction(row, self.rows.texts[row])
        guard, guard_resource = None, -1
        if instruction.guard and not (instruction.guard[-1] == "T" and not instruction.is_guard_negated):
            guard = read_predicate(("!" if instruction.is_guard_negated else "") + instruction.guard)
            guard_resource = int(self.rows.guard[row])
        moves_control = self._flow[row] not in _NO_FLOW or instruction.opcode in _MOVES_CONTROL
        step: Step | None = None
        memory: MemoryStep | None = None
        lowered: Row | None = None
        if not moves_control:
            try:
                memory = build_memory_step(
                    instruction, self._banks, is_asked=self._demand.rows[row], is_stored=self._demand.stored[row]
                )
                step = self._build_step(instruction) if memory is None and self._demand.rows[row] else None
            except (UnreadOperandError, UnknownConstantError, ValueError, IndexError, StopIteration):
                memory = None
            if step is None:
                lowered = self._lower(instruction, has_memory=memory is not None)
        is_understood = moves_control or memory is not None or step is not None or instruction.opcode in NOTHING_OPCODES
        is_idle = lowered is not None and lowered["code"] in (Code.SKIP, Code.OPAQUE)
        refusal = "" if is_understood or not is_idle else _refuse(instruction, self.rows.opcode(row))
        reads = [one for one in self.rows.reads.of(row) if one != guard_resource]
        lowered = None if refusal else lowered
        if lowered is not None:
            name = f"{'!' if instruction.is_guard_negated else ''}{instruction.guard}"
            own = {} if guard is None else {"guard": encode_predicate(name), "guard_resource": guard_resource}
            lowered = {"read": reads, "write": self.rows.writes.of(row), **own, **lowered}
        return BoundStep(
            instruction=instruction,
            step=step,
            memory=memory,
            refusal=refusal,
            guard=guard,
            guard_resource=guard_resource,
            reads=np.array(reads, dtype=np.int64),
            writes=np.array(self.rows.writes.of(row), dtype=np.int64),
            touches=(*reads, *self.rows.writes.of(row)),
            moves_control=moves_control,
            lowered=lowered,
        )

    def _lower(self, instruction: MachineInstruction, *, has_memory: bool) -> Row | None:
        """For machine code; None for accesses that numpy does."""
        if has_memory:
            is_load = instruction.opcode.startswith("LD")
            asked = self._demand.rows if is_load else self._demand.stored
            return self._lowering.lower_access(instruction, is_asked=asked[instruction.row])
        if not self._demand.rows[instruction.row] or instruction.opcode in NOTHING_OPCODES:
            return {"code": Code.SKIP}
        return self._lowering.lower_arithmetic(instruction) or {"code": Code.OPAQUE}

    def _build_step(self, instruction: MachineInstruction) -> Step | None:
        opcode = instruction.opcode
        if opcode in ("S2R", "S2UR", "CS2R"):
            return build_special(instruction, self._specials)
        build = LANE_STEPS.get(opcode) or LANE_STEPS.get(opcode.removeprefix("U"))
        return None if build is None else build(instruction, self._banks)


def _refuse(instruction: MachineInstruction, opcode: Opcode) -> str:
    """Why an instruction that is not understood ends the walk; empty where only its results are unknown."""
    if opcode.memory is not None and opcode.memory not in _WITHOUT_SECTORS:
        why = _WHY_NOT.get(opcode.memory, "")
        return f"{instruction.opcode} is not simulated{why}"
    if not opcode.is_known:
        return f"{instruction.opcode} is no instruction that is known"
    return ""


def _find_leaders(rows: KernelRows) -> frozenset[int]:
    """Rows that are jumped to."""
    targets = rows.target_row
    return frozenset(targets[targets >= 0].tolist())
