"""The per-instruction columns of a kernel's report."""

import numpy as np

from gpa_lsp.binary.control_code import NO_BARRIER
from gpa_lsp.kernel.model import FunctionSamples, Kernel
from gpa_lsp.locations import InlineChain
from gpa_lsp.report.loops import measure_loop_depths
from gpa_lsp.report.model import InstructionColumns


def build_instruction_columns(kernel: Kernel) -> InstructionColumns:
    """All functions of a kernel, one after the other, with inline chains shared between them."""
    functions = kernel.functions
    chains: dict[InlineChain, int] = {}
    chain_index = [_number_chains(function, chains) for function in functions]
    sizes = [len(function.pc_offsets) for function in functions]
    known = [np.full(size, function.control is not None) for function, size in zip(functions, sizes, strict=True)]

    def control(name: str, missing: int) -> list[np.ndarray]:
        return [
            getattr(function.control, name) if function.control is not None else np.full(size, missing, dtype=np.uint8)
            for function, size in zip(functions, sizes, strict=True)
        ]

    return InstructionColumns(
        functions=tuple(function.name for function in functions),
        function_index=np.repeat(np.arange(len(functions), dtype=np.int32), sizes),
        pc_offsets=np.concatenate([function.pc_offsets for function in functions]),
        texts=tuple(text for function in functions for text in _list_texts(function)),
        chains=tuple(chains),
        chain_index=np.concatenate(chain_index),
        reasons=kernel.reasons,
        all_samples=np.concatenate([function.all_samples for function in functions]),
        latency_samples=np.concatenate([function.latency_samples for function in functions]),
        executions=np.concatenate([function.executions for function in functions]),
        loop_depths=np.concatenate([measure_loop_depths(function) for function in functions]),
        stall_cycles=np.concatenate(control("stall_cycles", 0)),
        yield_flag=np.concatenate(control("yield_flag", 0)),
        write_barrier=np.concatenate(control("write_barrier", NO_BARRIER)),
        read_barrier=np.concatenate(control("read_barrier", NO_BARRIER)),
        wait_mask=np.concatenate(control("wait_mask", 0)),
        has_control=np.concatenate(known),
    )


def _list_texts(function: FunctionSamples) -> tuple[str, ...]:
    """Instruction texts; a call that a relocation directs names its callee, whose address the section's bytes do not hold."""
    if function.instructions is None:
        return ("",) * len(function.pc_offsets)
    if function.function is None or function.graph is None:
        return function.instructions.texts
    texts = list(function.instructions.texts)
    for site in function.graph.calls:
        if site.symbol is not None:
            texts[site.instruction] = f"{texts[site.instruction].rpartition(' ')[0]} `({site.symbol})"
    return tuple(texts)


def _number_chains(function: FunctionSamples, chains: dict[InlineChain, int]) -> np.ndarray:
    """Each row's chain, numbered over the whole kernel; -1 without line."""
    if function.lines is None:
        return np.full(len(function.pc_offsets), -1, dtype=np.int32)
    own = function.chain_index
    renumbered = np.full(len(function.lines.chains) + 1, -1, dtype=np.int32)
    for index in np.unique(own[own >= 0]).tolist():
        renumbered[index] = chains.setdefault(function.lines.chains[index], len(chains))
    return renumbered[own]
