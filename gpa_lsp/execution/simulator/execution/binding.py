"""Rows of a kernel → what executes them: :class:`BoundCode`."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from gpa_lsp.code.binary.model import Flow
from gpa_lsp.code.binary.opcodes import MemorySpace, Opcode
from gpa_lsp.execution.simulator.execution.demand import Demand
from gpa_lsp.execution.simulator.execution.lowering import Lowering, tabulate
from gpa_lsp.execution.simulator.execution.memory_spaces import ConstantBanks, SpecialRegisters
from gpa_lsp.execution.simulator.execution.operand_values import MachineInstruction, read_instruction
from gpa_lsp.execution.simulator.execution.row_operands import Row, encode_predicate
from gpa_lsp.execution.simulator.execution.walk_model import Code, Flag
from gpa_lsp.foundation.records import ColumnRecord
from gpa_lsp.kernel.model import KernelRows

_MOVES_CONTROL = frozenset(
    {"BAR", "WARPSYNC", "B2R", "R2B", "KILL", "BPT", "UCGABAR_ARV", "UCGABAR_WAIT", "ENDCOLLECTIVE"}
)
_NO_FLOW = (Flow.NONE, Flow.BARRIER_SET)
_WHY_NOT = {
    MemorySpace.TEXTURE: ": the driver decides how a texture lies in memory, so its sectors are not known",
    MemorySpace.SURFACE: ": the driver decides how a surface lies in memory, so its sectors are not known",
}
_WITHOUT_SECTORS = (MemorySpace.WARP, MemorySpace.CONSTANT, MemorySpace.TENSOR)


class BoundStep(Struct, frozen=True, kw_only=True):
    """An instruction that can be executed."""

    instruction: MachineInstruction  # as written
    lowered: Row  # for machine code; of what moves control, its predicate alone
    refusal: str  # why it cannot be executed at all; empty where it can
    moves_control: bool  # it is executed by the walk itself, too


class Segment(ColumnRecord, frozen=True, kw_only=True):
    """Rows that are executed one after the other."""

    first: int  # row
    steps: tuple[BoundStep, ...]  # all of them
    table: npt.NDArray[Any]  # the same for machine code
    resources: npt.NDArray[np.int32]  # numbers of what they read and write

    @property
    def last(self) -> BoundStep | None:
        """The step that moves control; None where the next row follows."""
        return self.steps[-1] if self.steps[-1].moves_control else None


class BoundCode:
    """The instructions of a kernel and of what it calls, bound when they are first reached.

    Args:
        rows: of the kernel.
        banks: constants.
        specials: special registers of the warps that run.
        demand: what is asked for.
        immediates: those that are put into the code when it is loaded, by row.
        registers: general ones that there is room for.
    """

    def __init__(
        self,
        rows: KernelRows,
        banks: ConstantBanks,
        specials: SpecialRegisters,
        demand: Demand,
        *,
        immediates: Mapping[int, int],
        registers: int,
    ) -> None:
        self.rows = rows
        self._demand = demand
        self._immediates = immediates
        self._lowering = Lowering(banks, registers, specials.numbers)
        self._bound: dict[int, BoundStep] = {}
        self._segments: dict[int, Segment] = {}
        self._flow: Sequence[int] = rows.flow.tolist()
        targets = rows.target_row
        self._leaders = frozenset(targets[targets >= 0].tolist())  # rows that are jumped to

    def find_segment(self, first: int) -> Segment:
        """From a row to the next one that moves control, or is jumped to."""
        found = self._segments.get(first)
        if found is None:
            steps = self._list_steps(first)
            table, resources = tabulate([one.lowered for one in steps])
            found = self._segments[first] = Segment(first=first, steps=tuple(steps), table=table, resources=resources)
        return found

    def _list_steps(self, first: int) -> list[BoundStep]:
        steps: list[BoundStep] = []
        for row in range(first, len(self.rows)):
            if steps and (row in self._leaders or steps[-1].moves_control):
                break
            steps.append(self._bind(row))
        return steps

    def _bind(self, row: int) -> BoundStep:
        found = self._bound.get(row)
        if found is not None:
            return found
        instruction = read_instruction(row, self.rows.texts[row])
        if row in self._immediates and instruction.operands:
            given = hex(self._immediates[row])
            instruction = replace(instruction, operands=(*instruction.operands[:-1], given))
        own: Row = {}
        guard = -1
        if instruction.guard and not (instruction.guard[-1] == "T" and not instruction.is_guard_negated):
            guard = int(self.rows.guard[row])
            name = f"{'!' if instruction.is_guard_negated else ''}{instruction.guard}"
            own = {"guard": encode_predicate(name), "guard_resource": guard}
        moves_control = self._flow[row] not in _NO_FLOW or instruction.opcode in _MOVES_CONTROL
        refusal = ""
        lowered: Row | None = {"code": Code.SKIP} if moves_control else self._lower(instruction)
        if lowered is None:
            refusal = _refuse(instruction, self.rows.opcode(row))
            lowered = {"code": Code.REFUSED if refusal else Code.OPAQUE if self._demand.rows[row] else Code.SKIP}
        reads = [one for one in self.rows.reads.of(row) if one != guard]
        writes = [] if moves_control else self.rows.writes.of(row)
        found = self._bound[row] = BoundStep(
            instruction=instruction,
            lowered={"read": reads, "write": writes, **own, **lowered},
            refusal=refusal,
            moves_control=moves_control,
        )
        return found

    def _lower(self, instruction: MachineInstruction) -> Row | None:
        """For machine code: of accesses also whether what they load or store is asked for; of others nothing where it is not."""
        row = self._lowering.lower(instruction)
        if row is None:
            return None
        number, code = instruction.row, row["code"]
        asks, stores = self._demand.rows[number], self._demand.stored[number]
        if code < Code.LOAD:
            return row if asks else {"code": Code.SKIP}
        is_asked = {Code.LOAD: asks, Code.STORE: stores, Code.ATOMIC: asks or stores}.get(code, False)
        return row | {"flags": row.get("flags", 0) | (Flag.ASKED if is_asked else 0)}


def _refuse(instruction: MachineInstruction, opcode: Opcode) -> str:
    """Why an instruction that is not understood ends the walk; empty where only its results are unknown."""
    if opcode.memory is not None and opcode.memory not in _WITHOUT_SECTORS:
        why = _WHY_NOT.get(opcode.memory, "")
        return f"{instruction.opcode} is not simulated{why}"
    if not opcode.is_known:
        return f"{instruction.opcode} is no instruction that is known"
    return ""
