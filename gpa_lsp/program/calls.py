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
    is_site = np.isin(flow.flow, (Flow.CALL, Flow.INDIRECT_CALL))
    is_site |= (flow.flow == Flow.BRANCH) & np.isin(instructions.pc_offsets, list(function.call_symbols))
    is_site[flow.jump_source] = False
    found = []
    for index in np.flatnonzero(is_site).tolist():
        kind = Flow(flow.flow[index])
        symbol = function.call_symbols.get(index * INSTRUCTION_BYTES)
        if symbol is not None:
            callee = procedure_named.get(symbol)
        elif kind == Flow.CALL:
            callee = procedure_at.get(int(instructions.target[index]) // INSTRUCTION_BYTES)
        else:
            callee = None
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
