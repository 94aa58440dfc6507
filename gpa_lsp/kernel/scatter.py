"""Lay the samples, execution counts and counters of a placed kernel over its instructions, one function section at a time, and once more for each
launch context: the launches with one configuration from one host path.

Source: GPA, section III: "We analyze each GPU kernel's launch context separately."
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec.structs import astuple, replace

from gpa_lsp.code.binary.line_table import read_line_table
from gpa_lsp.code.binary.model import INSTRUCTION_BYTES, Cubin, Function, Instructions, LineTable
from gpa_lsp.code.binary.sass import decode_control_codes
from gpa_lsp.code.control_flow.build import build_flow_graph
from gpa_lsp.foundation.distinct import find_distinct
from gpa_lsp.foundation.errors import GpaError, Problem
from gpa_lsp.kernel.model import OUTSIDE_MODULE, FunctionSamples, Kernel
from gpa_lsp.kernel.place import PlacedKernel, PlacedLaunch
from gpa_lsp.profile.model import Launch, PlaceSamples
from gpa_lsp.profile.ncu.samples import InstructionCounts

_Sums = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]  # All samples and latency samples, int64[n, k] each

_Part = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]  # Rows, and their samples by reason


def scatter_function(
    name: str,
    placed: PlacedKernel,
    reasons: Sequence[str],
    instructions: Instructions | None,
    problems: list[Problem],
) -> FunctionSamples:
    """Sum the launches' samples of one function of the module."""
    function = placed.cubin.functions.get(name) if placed.cubin is not None else None
    pc_offsets = _list_offsets(name, placed, function)
    lines = _read_lines(placed.cubin, name, problems)
    graph = (
        build_flow_graph(function, instructions, lines) if function is not None and instructions is not None else None
    )
    if graph is not None:
        problems.extend(graph.problems)
    return FunctionSamples(
        name=name,
        function=function,
        instructions=instructions,
        graph=graph,
        control=decode_control_codes(function.code) if function is not None else None,
        lines=lines,
        chain_index=index_chains(function, lines, pc_offsets),
        routine_index=index_routines(function, pc_offsets),
        pc_offsets=pc_offsets,
        **_sum_launches(name, placed, reasons, pc_offsets),
    )


def narrow_function(function: FunctionSamples, placed: PlacedKernel, reasons: Sequence[str]) -> FunctionSamples:
    """A function with the samples of some launches, on the same rows."""
    if function.name == OUTSIDE_MODULE:
        sums = _sum_outside(placed, reasons, function.pc_offsets.astype(np.uint64))
    else:
        sums = _sum_launches(function.name, placed, reasons, function.pc_offsets)
    return replace(function, **sums)


def _sum_launches(
    name: str, placed: PlacedKernel, reasons: Sequence[str], pc_offsets: npt.NDArray[np.int64]
) -> dict[str, Any]:
    """Samples and counts of the launches in a function of the module, by field of :class:`FunctionSamples`."""
    sums = (np.zeros((len(pc_offsets), len(reasons)), np.int64), np.zeros((len(pc_offsets), len(reasons)), np.int64))
    executions = np.full(len(pc_offsets), -1, dtype=np.int64)
    places = _PlaceSums(placed)
    for launch in placed.launches:
        span = _find_span(name, launch)
        if span is not None:
            start, end = span
            samples = launch.launch.samples
            if samples is not None:
                inside = (samples.addresses >= start) & (samples.addresses < end)
                rows = _add_samples(launch, inside, (pc_offsets.astype(np.uint64) + start), reasons, sums)
                places.add(launch, inside, rows, reasons)
            _add_counts((launch.executed_addresses, launch.executions), span, pc_offsets, executions)
    return {
        "all_samples": sums[0],
        "latency_samples": sums[1] if placed.is_split else None,
        "executions": executions,
        "counters": _gather_counters(name, placed.launches, pc_offsets),
        "places": places.make(),
    }


def scatter_outside(placed: PlacedKernel, reasons: Sequence[str]) -> FunctionSamples | None:
    """The samples that lie in no function of the module, by absolute address; None when there are none."""
    addresses = [
        samples.addresses[_find_outside(launch)]
        for launch in placed.launches
        if (samples := launch.launch.samples) is not None
    ]
    rows = find_distinct(np.concatenate(addresses)) if addresses else np.zeros(0, dtype=np.uint64)
    if len(rows) == 0:
        return None
    return FunctionSamples(
        name=OUTSIDE_MODULE,
        function=None,
        instructions=None,
        graph=None,
        control=None,
        lines=None,
        chain_index=np.full(len(rows), -1, dtype=np.int32),
        routine_index=np.zeros(len(rows), dtype=np.int32),
        pc_offsets=rows.astype(np.int64),
        executions=np.full(len(rows), -1, dtype=np.int64),
        **_sum_outside(placed, reasons, rows),
    )


def _find_outside(launch: PlacedLaunch) -> npt.NDArray[np.bool_]:
    """bool[m], the sampled addresses of a launch that lie in no function of the module."""
    assert launch.launch.samples is not None
    return launch.addresses.locate(launch.launch.samples.addresses) < 0


def _sum_outside(placed: PlacedKernel, reasons: Sequence[str], rows: npt.NDArray[np.uint64]) -> dict[str, Any]:
    """Samples of the launches outside the module, by field of :class:`FunctionSamples`."""
    sums = (np.zeros((len(rows), len(reasons)), np.int64), np.zeros((len(rows), len(reasons)), np.int64))
    places = _PlaceSums(placed)
    for launch in placed.launches:
        if launch.launch.samples is not None:
            outside = _find_outside(launch)
            places.add(launch, outside, _add_samples(launch, outside, rows, reasons, sums), reasons)
    return {
        "all_samples": sums[0],
        "latency_samples": sums[1] if placed.is_split else None,
        "places": places.make(),
    }


class _PlaceSums:
    """Sums samples of a placed kernel by the place that launched them, where there are several."""

    def __init__(self, placed: PlacedKernel) -> None:
        sampled = [one.launch for one in placed.launches if one.launch.samples is not None]
        self._parts: dict[tuple[str, ...], list[_Part]] = {
            tuple(map(str, one.call_stack)): []
            for one in sampled
            if one.samples is not None and one.samples.total_samples
        }

    def add(
        self, launch: PlacedLaunch, chosen: npt.NDArray[np.bool_], rows: npt.NDArray[np.int64], reasons: Sequence[str]
    ) -> None:
        """Add the chosen samples of a launch, which are those of some rows."""
        samples = launch.launch.samples
        if samples is None or len(self._parts) <= 1 or not len(rows) or not samples.total_samples:
            return
        every = np.zeros((len(rows), len(reasons)), np.int64)
        every[:, [reasons.index(reason) for reason in samples.reasons]] = samples.all_samples[chosen]
        self._parts[tuple(map(str, launch.launch.call_stack))].append((rows, every))

    def make(self) -> tuple[PlaceSamples, ...]:
        """The places with samples."""
        return tuple(_join_parts(stack, parts) for stack, parts in self._parts.items() if parts)


def _join_parts(stack: tuple[str, ...], parts: "list[_Part]") -> PlaceSamples:
    touched = np.concatenate([rows for rows, _ in parts])
    rows, at = np.unique(touched, return_inverse=True)
    sums = np.zeros((len(rows), parts[0][1].shape[1]), np.int64)
    np.add.at(sums, at.reshape(-1), np.concatenate([every for _, every in parts]))
    return PlaceSamples(call_stack=stack, rows=rows, all_samples=sums)


def _find_span(name: str, launch: PlacedLaunch) -> tuple[np.uint64, np.uint64] | None:
    """First and one-past-last address of a function during a launch; None when it was not loaded."""
    if name not in launch.addresses.names:
        return None
    position = launch.addresses.names.index(name)
    return launch.addresses.starts[position], launch.addresses.ends[position]


def _list_offsets(name: str, placed: PlacedKernel, function: Function | None) -> npt.NDArray[np.int64]:
    """Offsets of every instruction of the section, or, without code, of those sampled or executed."""
    if function is not None:
        return np.arange(0, function.size_bytes, INSTRUCTION_BYTES, dtype=np.int64)
    seen = [np.zeros(0, dtype=np.uint64)]
    for launch in placed.launches:
        span = _find_span(name, launch)
        if span is not None:
            touched = launch.list_touched()
            seen.append(touched[(touched >= span[0]) & (touched < span[1])] - span[0])
    return find_distinct(np.concatenate(seen)).astype(np.int64)


def _read_lines(cubin: Cubin | None, name: str, problems: list[Problem]) -> LineTable | None:
    if cubin is None or not cubin.has_lines or name not in cubin.functions:
        return None
    try:
        table = read_line_table(cubin, name)
    except GpaError as error:
        problems.append(Problem.from_error(error, kernel=name))
        return None
    return table if len(table.row_offsets) else None


def _add_samples(
    launch: PlacedLaunch,
    chosen: npt.NDArray[np.bool_],
    row_addresses: npt.NDArray[np.uint64],
    reasons: Sequence[str],
    sums: _Sums,
) -> npt.NDArray[np.int64]:
    """Add the chosen samples of a launch to the rows with their addresses, which are the result; every chosen address has a row."""
    samples = launch.launch.samples
    if samples is None or not chosen.any():
        return np.zeros(0, np.int64)
    rows = np.searchsorted(row_addresses, samples.addresses[chosen]).astype(np.int64)
    columns = np.array([reasons.index(reason) for reason in samples.reasons], dtype=np.int64)
    sums[0][np.ix_(rows, columns)] += samples.all_samples[chosen]
    if samples.latency_samples is not None:
        sums[1][np.ix_(rows, columns)] += samples.latency_samples[chosen]
    return rows


def _gather_counters(
    name: str, launches: Sequence[PlacedLaunch], pc_offsets: npt.NDArray[np.int64]
) -> dict[str, npt.NDArray[np.int64]]:
    """A function's counters, summed over the launches that have them."""
    counters: dict[str, npt.NDArray[np.int64]] = {}
    for launch in launches:
        span = _find_span(name, launch)
        for counter, columns in launch.counters.items():
            sums = counters.setdefault(counter, np.full(len(pc_offsets), -1, dtype=np.int64))
            if span is not None:
                _add_counts(columns, span, pc_offsets, sums)
    return counters


def _add_counts(
    columns: InstructionCounts,
    span: tuple[np.uint64, np.uint64],
    pc_offsets: npt.NDArray[np.int64],
    sums: npt.NDArray[np.int64],
) -> None:
    """Add counts to the rows at their addresses; a row that is counted for the first time is no longer -1."""
    addresses, counts = columns
    inside = (addresses >= span[0]) & (addresses < span[1])
    offsets = (addresses[inside] - span[0]).astype(np.int64)
    rows = np.searchsorted(pc_offsets, offsets)
    known = rows < len(pc_offsets)
    known[known] = pc_offsets[rows[known]] == offsets[known]
    np.maximum.at(sums, rows[known], 0)
    np.add.at(sums, rows[known], counts[inside][known])


def index_routines(function: Function | None, pc_offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
    """int32[n], which routine each instruction belongs to: 0 for the section's own function, i + 1 for ``function.sub_functions[i]``.

    Where damaged symbols overlap, the first counts; code that is not there is one routine.
    """
    index = np.zeros(len(pc_offsets), dtype=np.int32)
    for number, sub in enumerate(function.sub_functions if function is not None else (), start=1):
        inside = (pc_offsets >= sub.start_offset) & (pc_offsets < sub.start_offset + sub.size_bytes)
        index[inside & (index == 0)] = number
    return index


def index_chains(
    function: Function | None, lines: LineTable | None, pc_offsets: npt.NDArray[np.int64]
) -> npt.NDArray[np.int32]:
    """int32[n] into ``lines.chains``, the inline chain of each instruction; -1 without a line.

    A line table's row holds until the next one, and so on into a local function that has no rows of its own (the slow path of a division):
    the table then gives it the last line of the code before it, where it was not written. Such instructions have no line here.
    """
    if lines is None:
        return np.full(len(pc_offsets), -1, dtype=np.int32)
    index = lines.chain_index(pc_offsets)
    for sub in function.sub_functions if function is not None else ():
        own_rows = lines.row_offsets[lines.row_offsets >= sub.start_offset]
        first_row = int(own_rows[0]) if len(own_rows) else sub.start_offset + sub.size_bytes
        lined_from = min(first_row, sub.start_offset + sub.size_bytes)
        index[(pc_offsets >= sub.start_offset) & (pc_offsets < lined_from)] = -1
    return index


# Contexts of a kernel that are analysed separately: each costs as much as a kernel of its own
MOST_CONTEXTS = 8

_ContextKey = tuple[object, ...]


def group_contexts(launches: Iterable[Launch]) -> tuple[tuple[tuple[Launch, ...], float], ...]:
    """Launches that have numbers by context, with each context's part of the whole, the largest first whatever the order of the launches.

    The parts are those of the time where every context has one, else of the samples, else of the number of launches.
    """
    groups: dict[_ContextKey, list[Launch]] = {}
    for launch in launches:
        if launch.failure is None:
            groups.setdefault(_identify(launch), []).append(launch)
    for measure in (_measure_time, _count_samples, len):
        weights = [float(measure(group)) for group in groups.values()]
        if all(weights):
            break
    whole = sum(weights) or 1.0
    ranked = sorted(zip(groups, groups.values(), weights, strict=True), key=lambda one: (-one[2], repr(one[0])))
    return tuple((tuple(group), weight / whole) for _, group, weight in ranked)


def _identify(launch: Launch) -> _ContextKey:
    """Key of a launch's context. Addresses of the host are left out, because they differ from run to run."""
    frames = ((frame.function, frame.module, frame.file, frame.line) for frame in launch.call_stack)
    return (*astuple(launch.configuration), launch.read_count("launch__cluster_size"), *frames)


def _measure_time(launches: Sequence[Launch]) -> float:
    return sum((one.read_number("gpu__time_duration.sum") or 0.0) * (one.launch_count or 1) for one in launches)


def _count_samples(launches: Sequence[Launch]) -> int:
    return sum(one.samples.total_samples for one in launches if one.samples is not None)


def split_kernel(kernel: Kernel, placed: PlacedKernel) -> Kernel:
    """A kernel with its heaviest launch contexts, where there are several, on the same rows."""
    groups = group_contexts(kernel.launches)
    if len(groups) < 2:
        return kernel
    contexts = tuple(_narrow(kernel, placed, group) for group, _ in groups[:MOST_CONTEXTS])
    return replace(kernel, contexts=contexts)


def _narrow(kernel: Kernel, placed: PlacedKernel, launches: Sequence[Launch]) -> Kernel:
    numbers = {one.index for one in launches}
    part = replace(placed, launches=tuple(one for one in placed.launches if one.launch.index in numbers))
    functions = tuple(narrow_function(function, part, kernel.reasons) for function in kernel.functions)
    return replace(kernel, launches=tuple(launches), functions=functions)
