"""The per-function rows of a kernel's report."""

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from gpa_lsp.kernel.model import OUTSIDE_MODULE, FunctionSamples, Kernel
from gpa_lsp.report.count import count_reasons
from gpa_lsp.report.model import FunctionRole, FunctionRow
from gpa_lsp.report.names import demangle


def list_functions(kernel: Kernel) -> tuple[FunctionRow, ...]:
    """One row per function and per local function inside another's section, most samples first. Rows do not overlap."""
    rows: list[FunctionRow] = []
    for function in kernel.functions:
        rows.extend(_rows_of_section(kernel, function))
    rows.sort(key=lambda row: (-row.samples, row.role is not FunctionRole.KERNEL, row.mangled_name))
    return tuple(rows)


def _rows_of_section(kernel: Kernel, function: FunctionSamples) -> list[FunctionRow]:
    own = np.ones(len(function.pc_offsets), dtype=np.bool_)
    rows = []
    for sub in function.function.sub_functions if function.function is not None else ():
        inside = (function.pc_offsets >= sub.start_offset) & (function.pc_offsets < sub.start_offset + sub.size_bytes)
        inside &= own
        own &= ~inside
        row = _make_row(kernel, function, (sub.name, FunctionRole.SUB_FUNCTION), inside)
        rows.append(replace(row, start_offset=sub.start_offset))
    role = FunctionRole.DEVICE_FUNCTION
    if function.name == kernel.mangled_name:
        role = FunctionRole.KERNEL
    elif function.name == OUTSIDE_MODULE:
        role = FunctionRole.OUTSIDE_MODULE
    rows.append(_make_row(kernel, function, (function.name, role), own))
    return rows


def _make_row(
    kernel: Kernel, function: FunctionSamples, identity: tuple[str, FunctionRole], rows: npt.NDArray[np.bool_]
) -> FunctionRow:
    mangled_name, role = identity
    every, latency = function.all_samples[rows].sum(axis=0), function.latency_samples[rows].sum(axis=0)
    return FunctionRow(
        mangled_name=mangled_name,
        name=demangle(kernel.name if role is FunctionRole.KERNEL else mangled_name),
        role=role,
        instruction_count=int(rows.sum()) if function.function is not None else 0,
        has_lines=function.lines is not None
        and bool((function.lines.chain_index(function.pc_offsets[rows]) >= 0).any()),
        samples=int(every.sum()),
        latency_samples=int(latency.sum()),
        by_reason=count_reasons(kernel.reasons, every, latency),
        registers=function.function.registers if function.function is not None else None,
        section=function.name,
    )
