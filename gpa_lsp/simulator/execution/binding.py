"""Rows of a kernel → what executes them: :class:`BoundCode`."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.binary.model import Flow
from gpa_lsp.binary.opcodes import MemorySpace as KnownSpace
from gpa_lsp.binary.opcodes import Opcode
from gpa_lsp.native.shared_library import Core
from gpa_lsp.rows.model import KernelRows
from gpa_lsp.simulator.execution.constant_banks import ConstantBanks, UnknownConstantError
from gpa_lsp.simulator.execution.demand import Demand
from gpa_lsp.simulator.execution.float_steps import FLOAT_STEPS
from gpa_lsp.simulator.execution.integer_steps import INTEGER_STEPS, Step
from gpa_lsp.simulator.execution.lane_steps import LANE_STEPS, NOTHING_OPCODES, build_special
from gpa_lsp.simulator.execution.lowering import CODES, Lowering, Row, encode_predicate
from gpa_lsp.simulator.execution.machine_instruction import MachineInstruction, read_instruction
from gpa_lsp.simulator.execution.memory_steps import MemoryStep, build_memory_step
from gpa_lsp.simulator.execution.operand_values import Reader, UnreadOperandError, read_predicate
from gpa_lsp.simulator.execution.special_registers import SpecialRegisters
from gpa_lsp.simulator.execution.warp_state import Lanes, WarpState

_MOVES_CONTROL = frozenset(
    {"BAR", "WARPSYNC", "B2R", "R2B", "KILL", "BPT", "UCGABAR_ARV", "UCGABAR_WAIT", "ENDCOLLECTIVE"}
)
_NO_FLOW = (Flow.NONE, Flow.BARRIER_SET)
_WHY_NOT = {
    KnownSpace.TEXTURE: ": the driver decides how a texture lies in memory, so its sectors are not known",
    KnownSpace.SURFACE: ": the driver decides how a surface lies in memory, so its sectors are not known",
}
_WITHOUT_SECTORS = (KnownSpace.WARP, KnownSpace.CONSTANT, KnownSpace.TENSOR)


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundStep:
    """An instruction that can be executed.

    Attributes:
        instruction: as written.
        step: what it does to registers; None for what is not known, whose results are then unknown.
        memory: what it does to memory; None for nothing.
        refusal: why it cannot be executed at all; empty where it can.
        guard: its predicate, negated where it is; None without one.
        guard_resource: the number of the predicate; -1 without one.
        reads: int64, numbers of what it reads, without the guard.
        writes: int64, numbers of what it writes.
        touches: the numbers of both.
        moves_control: it is executed by the walk itself.
        lowered: the same for the compiled core; None where that cannot do it.
    """

    instruction: MachineInstruction
    step: Step | None
    memory: MemoryStep | None
    refusal: str
    guard: Reader | None
    guard_resource: int
    reads: npt.NDArray[np.int64]
    writes: npt.NDArray[np.int64]
    touches: tuple[int, ...]
    moves_control: bool
    lowered: Row | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """Rows that are executed one after the other.

    Attributes:
        first: row.
        steps: of all but the last, and of the last where it does not move control.
        last: the step that moves control; None where the next row follows.
        count: rows.
    """

    first: int
    steps: tuple[BoundStep, ...]
    last: BoundStep | None
    count: int


class BoundCode:
    """The instructions of a kernel and of what it calls, bound when they are first reached.

    Args:
        rows: of the kernel.
        banks: constants.
        specials: special registers of the warps that run.
        demand: what is asked for.
        core: executes what it can; None where numpy does all.
        registers: general ones that there is room for.

    Attributes:
        core: see there.
    """

    def __init__(
        self,
        rows: KernelRows,
        banks: ConstantBanks,
        specials: SpecialRegisters,
        demand: Demand,
        *,
        core: Core | None = None,
        registers: int = 0,
    ) -> None:
        self.rows = rows
        self._banks = banks
        self._specials = specials
        self._demand = demand
        self.core = core
        self._lowering = None if core is None else Lowering(banks, registers)
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
        refusal = ""
        if not moves_control:
            try:
                is_asked = self._demand.rows[row]
                memory = build_memory_step(
                    instruction, self._banks, is_asked=is_asked, is_stored=self._demand.stored[row]
                )
                if memory is None:
                    is_built = is_asked or instruction.opcode in NOTHING_OPCODES
                    step = self._build_step(instruction) if is_built else _SKIP
            except (UnreadOperandError, UnknownConstantError, ValueError, IndexError, StopIteration):
                memory = None
            if memory is None and (step is None or step is _SKIP):
                refusal = _refuse(instruction, self.rows.opcode(row))
        reads = [one for one in self.rows.reads.of(row) if one != guard_resource]
        lowered = None if moves_control or refusal else self._lower(instruction, step, has_memory=memory is not None)
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

    def _lower(self, instruction: MachineInstruction, step: Step | None, *, has_memory: bool) -> Row | None:
        """A step for the compiled core."""
        if self._lowering is None:
            return None
        if has_memory:
            is_load = instruction.opcode.startswith("LD")
            asked = self._demand.rows if is_load else self._demand.stored
            return self._lowering.lower_access(instruction, is_asked=asked[instruction.row])
        if step is _SKIP or instruction.opcode in NOTHING_OPCODES:
            return {"code": CODES.index("SKIP")}
        if step is None:
            return {"code": CODES.index("OPAQUE")}
        return self._lowering.lower_arithmetic(instruction)

    def _build_step(self, instruction: MachineInstruction) -> Step | None:
        opcode = instruction.opcode
        if opcode in ("S2R", "S2UR", "CS2R"):
            return build_special(instruction, self._specials)
        for name in (opcode, opcode.removeprefix("U")):
            for table in (INTEGER_STEPS, FLOAT_STEPS, LANE_STEPS):
                if name in table:
                    return table[name](instruction, self._banks)
        return None


def _do_nothing(state: WarpState, lanes: Lanes) -> None:
    """Nobody asks for the results."""
    del state, lanes


_SKIP: Step = _do_nothing


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
