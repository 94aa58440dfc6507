"""Call sites of a function section."""

import numpy as np

from gpa_lsp.binary.model import INSTRUCTION_BYTES, Flow, Function, Instructions
from gpa_lsp.program.cfg import InstructionFlow, ProcedureStart
from gpa_lsp.program.model import CallSite


def find_call_sites(
    function: Function, instructions: Instructions, flow: InstructionFlow, starts: tuple[ProcedureStart, ...]
) -> tuple[CallSite, ...]:
    """The instructions that call, by address. A CALL that is a long jump is none; a branch to another section's symbol is one."""
    procedure_at = {start.instruction: number for number, start in enumerate(starts)}
    procedure_named = {start.name: number for number, start in enumerate(starts)}
    jumps = set(flow.jump_source.tolist())
    found = []
    for index in np.flatnonzero(np.isin(flow.flow, (Flow.CALL, Flow.INDIRECT_CALL, Flow.BRANCH))).tolist():
        kind = flow.flow[index]
        symbol = function.call_symbols.get(int(instructions.pc_offsets[index]))
        if index in jumps or (kind == Flow.BRANCH and symbol is None):
            continue
        target = int(instructions.target[index])
        callee = procedure_named.get(symbol) if symbol is not None else None
        if callee is None and kind == Flow.CALL and target >= 0 and symbol is None:
            callee = procedure_at.get(target // INSTRUCTION_BYTES)
        found.append(
            CallSite(
                instruction=index,
                callee_procedure=callee,
                symbol=symbol,
                is_indirect=kind == Flow.INDIRECT_CALL,
                is_tail=kind == Flow.BRANCH,
            )
        )
    return tuple(found)
