"""Work of each unit that a change leaves, counted on the kernel's instructions: :func:`count_work_left`.

A change is told by what it takes from each instruction: a part of its executions, of the lines it asks L1 for, of its passes through shared memory.
Units are those of :class:`~gpa_lsp.diagnosis.advice.launch_time.LaunchTime`.
"""

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt

from gpa_lsp.code.binary.model import Flow
from gpa_lsp.code.binary.opcodes import MemorySpace
from gpa_lsp.diagnosis.analyses.limiter import list_members
from gpa_lsp.diagnosis.analyses.mix import assign_pipes, list_pipes
from gpa_lsp.diagnosis.analyses.model import WAVEFRONTS
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.kernel.dataflow.accesses import GLOBAL_SPACES, MOVES, mark_accesses
from gpa_lsp.kernel.dataflow.value_flow import FunctionFlow, build_flow

Parts = npt.NDArray[np.float64]  # float64[n], the part of each row that goes, 0..1; negative where there is more

Marks = npt.NDArray[np.bool_]

_FEWEST_PASSES = 0.5  # Of a line: at most two go through together

_CONDITIONS = frozenset({"ISETP", "FSETP", "DSETP", "PLOP3"})  # They write predicates alone

# Pipes of the instruction mix → units
_PIPES = {**{name: name for name in ("fma", "alu", "fp64", "fp16", "xu", "tensor", "lsu", "adu")}, "tex": "texture"}


def count_work_left(
    subject: Subject,
    *,
    executions: Parts | None = None,
    lines: Parts | None = None,
    wavefronts: Parts | None = None,
    added: Mapping[str, float] | None = None,
) -> dict[str, float]:
    """Unit → the part of its work that stays; units of which nothing is counted are not named.

    Args:
        executions: of warps.
        lines: of the lines of global memory that L1 is asked for; None where they go with the executions.
        wavefronts: of the passes through shared memory; None where they go with the executions.
        added: unit → its work that comes, in warp instructions or passes.
    """
    rows = subject.rows
    executed = subject.executed.astype(np.float64)
    gone = np.zeros(len(rows)) if executions is None else executions
    found: dict[str, float] = {}
    more = added or {}
    _set(found, "issue", executed, gone, sum(count for unit, count in more.items() if unit in _PIPES.values()))
    architecture = subject.kernel.architecture
    if architecture is not None:
        pipes = assign_pipes(subject, architecture.name)
        for number, pipe in enumerate(list_pipes()):
            unit = _PIPES.get(pipe.name)
            if unit is not None:
                _set(found, unit, np.where(pipes == number, executed, 0.0), gone, more.get(unit, 0.0))
    is_global, is_shared = mark_accesses(rows, GLOBAL_SPACES, MOVES), mark_accesses(rows, (MemorySpace.SHARED,), MOVES)
    counted = ((is_global, rows.counter("global_tag_requests")), (is_shared, rows.counter("shared_wavefronts")))
    tags, passes = (
        np.where(chosen, executed if column is None else np.maximum(column, 0), 0.0) for chosen, column in counted
    )
    gone_lines, gone_passes = gone if lines is None else lines, gone if wavefronts is None else wavefronts
    _set(found, "tags", tags, gone_lines)
    _set(found, "shared", passes, gone_passes, more.get("shared", 0.0))
    # The data stage of L1 serves both: a pass for each wavefront, and for each line or two.
    each = _measure_passes_per_line(subject, float(tags.sum()), float(passes.sum()))
    through = np.where(is_global, np.maximum(tags * each, np.minimum(tags, executed)), 0.0)
    _set(found, "l1", through + passes, np.where(is_shared, gone_passes, gone_lines), more.get("shared", 0.0))
    return found


def _measure_passes_per_line(subject: Subject, lines: float, wavefronts: float) -> float:
    """Passes through the data stage of L1 by the lines of global memory that it was asked for; 1 where these were not both collected."""
    busy = [one.busy_ratio for one in list_members(subject) if one.unit in ("l1", "shared") and one.by == WAVEFRONTS]
    cycles = subject.elapsed_cycles
    if not busy or not lines or not cycles or not subject.sm_count or subject.kernel.has_mixed_launches:
        return 1.0
    passes = max(busy) * cycles * subject.sm_count * subject.run_count
    return min(1.0, max(_FEWEST_PASSES, (passes - wavefronts) / lines))


def remove_feeders(subject: Subject, gone: Parts, *, guarded: Marks | None = None) -> Parts:
    """The same with the arithmetic whose results only instructions read of which as much goes: addresses, converted operands, conditions.

    ``guarded``: bool[n], instructions that stay, but no longer under a condition that those that go share with them.
    """
    found = gone.copy()
    rows = subject.rows
    marks = np.zeros(len(rows), dtype=np.bool_) if guarded is None else guarded
    for index in range(len(rows.functions)):
        flow = build_flow(rows, index)
        if flow is None:
            continue
        here = slice(flow.first_row, flow.first_row + len(flow))
        _remove_feeders_in(flow, found[here], np.zeros(len(flow), dtype=np.bool_), _is_arithmetic)
        if marks[here].any():
            _remove_feeders_in(flow, found[here], marks[here], _is_condition)
            _remove_feeders_in(flow, found[here], np.zeros(len(flow), dtype=np.bool_), _is_arithmetic)
    return found


def _remove_feeders_in(
    flow: FunctionFlow, gone: Parts, others: Marks, accepts: Callable[[FunctionFlow, int], bool]
) -> None:
    """Mark in place, block by block, what only instructions that go and the others read."""
    for part in np.unique(gone[gone > 0]).tolist():
        by_block: dict[int, list[int]] = {}
        for row in np.flatnonzero(gone == part).tolist():
            by_block.setdefault(flow.block_of[row], []).append(row)
        for block, members in by_block.items():
            window = flow.rows_of_block(block)
            readers = [*members, *(row for row in window if others[row])]
            feeders = flow.find_feeders(readers, window, lambda row: accepts(flow, row))
            gone[[row for row in feeders if gone[row] < part]] = part


def _is_condition(flow: FunctionFlow, row: int) -> bool:
    return flow.mnemonic(row).split(".")[0] in _CONDITIONS


def _is_arithmetic(flow: FunctionFlow, row: int) -> bool:
    opcode = flow.opcode(row)
    return opcode.memory is None and opcode.flow is Flow.NONE and opcode.synchronises is None


def _set(found: dict[str, float], unit: str, work: Parts, gone: Parts, added: float = 0.0) -> None:
    every = float(work.sum())
    if every > 0:
        found[unit] = max(0.0, 1.0 + (added - float((work * gone).sum())) / every)
