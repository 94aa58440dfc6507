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
    rows = []
    for number, sub in enumerate(function.function.sub_functions if function.function is not None else (), start=1):
        row = _make_row(kernel, function, (sub.name, FunctionRole.SUB_FUNCTION), function.routine_index == number)
        rows.append(replace(row, start_offset=sub.start_offset))
    role = FunctionRole.DEVICE_FUNCTION
    if function.name == kernel.mangled_name:
        role = FunctionRole.KERNEL
    elif function.name == OUTSIDE_MODULE:
        role = FunctionRole.OUTSIDE_MODULE
    rows.append(_make_row(kernel, function, (function.name, role), function.routine_index == 0))
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
        has_lines=bool((function.chain_index[rows] >= 0).any()),
        samples=int(every.sum()),
        latency_samples=int(latency.sum()),
        by_reason=count_reasons(kernel.reasons, every, latency),
        registers=function.function.registers if function.function is not None else None,
        section=function.name,
    )
