"""A :class:`Kernel`: measurements laid over the instructions they were taken on.

They are kept per function section (:class:`FunctionSamples`), and as columns over all sections (:class:`KernelRows`): *rows* of a kernel are
rows of these columns.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct, field
from msgspec.structs import replace

from gpa_lsp.code.binary.linkage_names import demangle
from gpa_lsp.code.binary.model import (
    INSTRUCTION_BYTES,
    NO_BARRIER,
    ControlCodes,
    Cubin,
    Flow,
    Function,
    Instructions,
    LineTable,
    ResourceLists,
)
from gpa_lsp.code.binary.opcodes import Opcode, describe_mnemonic
from gpa_lsp.code.control_flow.model import FlowGraph
from gpa_lsp.foundation.distinct import find_distinct
from gpa_lsp.foundation.locations import InlineChain, SourceLine
from gpa_lsp.foundation.ownership import choose_frame, find_library
from gpa_lsp.foundation.records import ColumnRecord, SharedFacts
from gpa_lsp.gpu.arch.model import Architecture
from gpa_lsp.profile.model import Device, Launch, Module, PlaceSamples

# Name of the pseudo-function that holds samples of code the module does not contain (the driver's printf, system calls)
OUTSIDE_MODULE = "<outside this module>"


# Counters of :mod:`gpa_lsp.kernel.place` that make estimates from code alone, of requests and branches, unnecessary
REQUEST_COUNTERS = ("global_sectors", "shared_wavefronts", "thread_executions_true")

# Counters taken in several passes can exceed 100 % of a peak by a little; what is far above it is damaged or made up
_MOST_PERCENT = 200.0


class FunctionSamples(ColumnRecord, frozen=True, kw_only=True):
    """Samples of one function section, summed over launches, one row per instruction."""

    name: str  # mangled name of the section's function, or :data:`OUTSIDE_MODULE`
    function: Function | None  # its metadata and code; None for code the profile does not hold
    instructions: Instructions | None  # decoded; None without a disassembler or without code
    graph: FlowGraph | None  # its blocks, loops and calls; None without instructions
    control: ControlCodes | None  # scheduling bits; None without code. Known without a disassembler.
    lines: LineTable | None  # its line table; None when it has none
    # int32[n] into ``lines.chains``; -1 without a line, as in local functions that have no rows of their own
    chain_index: npt.NDArray[np.int32]
    routine_index: npt.NDArray[np.int32]  # int32[n], 0 for the section's own function, i + 1 for its i-th local one
    # int64[n]: every instruction of the section, or, without code, the sampled and executed offsets (from the function's load address; absolute
    # addresses for :data:`OUTSIDE_MODULE`)
    pc_offsets: npt.NDArray[np.int64]
    all_samples: npt.NDArray[np.int64]  # int64[n, k], by instruction and reason
    # int64[n, k], the subset without issue; None when a launch with samples does not tell them from the others
    latency_samples: npt.NDArray[np.int64] | None
    # int64[n], warp-level executions; -1 where the counter was not collected. Of an aggregate those of a mean launch, and so are its counters; beside
    # other launches they are left out.
    executions: npt.NDArray[np.int64]
    # name of :mod:`gpa_lsp.kernel.place` → int64[n], summed over launches; -1 where an instruction has no value (memory counters list memory
    # instructions only). Counters that were not collected at all are missing.
    counters: Mapping[str, npt.NDArray[np.int64]] = field(default_factory=dict)
    # where sampled launches come from several places, the samples of each; they add up to ``all_samples``
    places: tuple[PlaceSamples, ...] = ()

    @property
    def total_samples(self) -> int:
        """All samples in the function."""
        return int(self.all_samples.sum())


class KernelRows(SharedFacts):
    """The n rows of a kernel: the instructions of its f functions, one after the other, in address order within each.

    Columns are joined on first use and cached; they are read-only.
    """

    def __init__(self, kernel_name: str, functions: tuple[FunctionSamples, ...], reasons: tuple[str, ...]) -> None:
        self.kernel_name = kernel_name  # mangled
        self.functions = functions  # the kernel first
        self.reasons = reasons  # the k stall reasons
        sizes = [len(function.pc_offsets) for function in functions]
        # int64[f + 1], first row of each function, and n
        self.first_rows: npt.NDArray[np.int64] = np.cumsum([0, *sizes]).astype(np.int64)
        # int32[n] into ``functions``
        self.function_index: npt.NDArray[np.int32] = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)

    def __len__(self) -> int:
        return len(self.function_index)

    @cached_property
    def pc_offsets(self) -> npt.NDArray[np.int64]:
        """int64[n], as in :class:`FunctionSamples`."""
        return _join([function.pc_offsets for function in self.functions], np.int64)

    @cached_property
    def all_samples(self) -> npt.NDArray[np.int64]:
        """int64[n, k], by row and stall reason."""
        return self._join_samples([function.all_samples for function in self.functions])

    @cached_property
    def latency_samples(self) -> npt.NDArray[np.int64] | None:
        """int64[n, k], the subset without issue; None when some function does not tell them from the others."""
        parts = [one.latency_samples for one in self.functions if one.latency_samples is not None]
        return self._join_samples(parts) if len(parts) == len(self.functions) else None

    @cached_property
    def places(self) -> tuple[PlaceSamples, ...]:
        """Samples of each place that launched, where sampled launches come from several places."""
        parts: dict[tuple[str, ...], list[PlaceSamples]] = {}
        for function, first in zip(self.functions, self.first_rows.tolist(), strict=False):
            for one in function.places:
                parts.setdefault(one.call_stack, []).append(replace(one, rows=one.rows + first))
        if len(parts) < 2:
            return ()
        return tuple(
            PlaceSamples(
                call_stack=stack,
                rows=np.concatenate([one.rows for one in found]),
                all_samples=np.concatenate([one.all_samples for one in found]),
            )
            for stack, found in parts.items()
        )

    @cached_property
    def executions(self) -> npt.NDArray[np.int64]:
        """int64[n], warp-level executions over all launches; -1 where not collected."""
        return _join([function.executions for function in self.functions], np.int64)

    @cached_property
    def counters(self) -> Mapping[str, npt.NDArray[np.int64]]:
        """Name of :mod:`gpa_lsp.kernel.place` → int64[n], summed over launches; -1 where a row has none. Only those that were collected."""
        names = dict.fromkeys(name for function in self.functions for name in function.counters)
        nothing = [np.full(len(function.pc_offsets), -1, dtype=np.int64) for function in self.functions]
        return {
            name: _join(
                [one.counters.get(name, empty) for one, empty in zip(self.functions, nothing, strict=True)], np.int64
            )
            for name in names
        }

    @cached_property
    def mnemonics(self) -> tuple[str, ...]:
        """Distinct opcodes with modifiers."""
        disassembled = (one.instructions.mnemonics for one in self.functions if one.instructions is not None)
        return tuple(dict.fromkeys(mnemonic for mnemonics in disassembled for mnemonic in mnemonics))

    @cached_property
    def opcodes(self) -> tuple[Opcode, ...]:
        """Facts about each of ``mnemonics``."""
        return tuple(map(describe_mnemonic, self.mnemonics))

    @cached_property
    def mnemonic_index(self) -> npt.NDArray[np.int32]:
        """int32[n] into ``mnemonics``; -1 without a disassembly."""
        number_of = {mnemonic: number for number, mnemonic in enumerate(self.mnemonics)}
        return self._join_instructions(
            lambda one: np.array([number_of[name] for name in one.mnemonics], dtype=np.int32)[one.mnemonic_index],
            -1,
            np.int32,
        )

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """n disassembled instructions; empty ones without a disassembly. A call that a relocation directs names its callee."""
        return tuple(text for function in self.functions for text in _list_texts(function))

    @cached_property
    def chains(self) -> tuple[InlineChain, ...]:
        """Distinct inline chains of the rows."""
        return tuple(self._numbered_chains[0])

    @cached_property
    def chain_index(self) -> npt.NDArray[np.int32]:
        """int32[n] into ``chains``; -1 without a line."""
        return self._numbered_chains[1]

    @cached_property
    def control(self) -> ControlCodes:
        """Scheduling bits, uint8[n] each; zeros, and no barriers, where they are unknown (``has_control``)."""

        def column(read: Callable[[ControlCodes], npt.NDArray[np.uint8]], missing: int) -> npt.NDArray[np.uint8]:
            return _join(
                [
                    np.full(len(one.pc_offsets), missing, np.uint8) if one.control is None else read(one.control)
                    for one in self.functions
                ],
                np.uint8,
            )

        return ControlCodes(
            stall_cycles=column(lambda codes: codes.stall_cycles, 0),
            yield_flag=column(lambda codes: codes.yield_flag, 0),
            write_barrier=column(lambda codes: codes.write_barrier, NO_BARRIER),
            read_barrier=column(lambda codes: codes.read_barrier, NO_BARRIER),
            wait_mask=column(lambda codes: codes.wait_mask, 0),
            reuse=column(lambda codes: codes.reuse, 0),
        )

    @cached_property
    def has_control(self) -> npt.NDArray[np.bool_]:
        """bool[n], scheduling bits are known."""
        return np.array([one.control is not None for one in self.functions], dtype=np.bool_)[self.function_index]

    @cached_property
    def block_numbers(self) -> npt.NDArray[np.int32]:
        """int32[n], the block of each row, counted through all functions; -1 without a flow graph."""
        numbers, before = np.full(len(self), -1, dtype=np.int32), 0
        for function, first in zip(self.functions, self.first_rows.tolist(), strict=False):
            if function.graph is not None:
                blocks = function.graph.block_of_instruction
                numbers[first : first + len(blocks)] = blocks + np.int32(before)
                before += function.graph.block_count
        return numbers

    @cached_property
    def reads(self) -> ResourceLists:
        """Resources read, by row; nothing without a disassembly."""
        return self._join_lists(lambda instructions: instructions.reads)

    @cached_property
    def writes(self) -> ResourceLists:
        """Resources written, by row; nothing without a disassembly."""
        return self._join_lists(lambda instructions: instructions.writes)

    @cached_property
    def guard(self) -> npt.NDArray[np.int16]:
        """int16[n], resource number of the guard predicate; -1 when unguarded."""
        return self._join_instructions(lambda instructions: instructions.guard, -1, np.int16)

    @cached_property
    def guard_negated(self) -> npt.NDArray[np.bool_]:
        """bool[n], the guard is negated."""
        return self._join_instructions(lambda instructions: instructions.guard_negated, False, np.bool_)

    @cached_property
    def flow(self) -> npt.NDArray[np.uint8]:
        """uint8[n] of :class:`~gpa_lsp.code.binary.model.Flow`."""
        return self._join_instructions(lambda instructions: instructions.flow, Flow.NONE, np.uint8)

    @cached_property
    def target_row(self) -> npt.NDArray[np.int32]:
        """int32[n], row of the branch, call or reconvergence target in the same function; -1 when none or elsewhere."""
        own = self._join_instructions(_find_targets, -1, np.int32)
        return np.where(own < 0, -1, own + self.first_rows[self.function_index]).astype(np.int32)

    def function_of(self, row: int) -> FunctionSamples:
        """The function a row is in."""
        return self.functions[int(self.function_index[row])]

    def index_of(self, row: int) -> int:
        """The instruction number of a row in its function."""
        return row - int(self.first_rows[self.function_index[row]])

    @property
    def has_code(self) -> bool:
        """Whether any function could be disassembled."""
        return any(function.instructions is not None for function in self.functions)

    def mnemonic(self, row: int) -> str:
        """Opcode with modifiers; empty without a disassembly."""
        return self._mnemonic_of[row]

    def opcode(self, row: int) -> Opcode:
        """Facts of the row's opcode; an unknown one without a disassembly."""
        return self._opcode_of[row]

    def chain(self, row: int) -> InlineChain | None:
        """The row's inline chain, innermost first; None without a line."""
        return self._chain_of[row]

    def place(self, row: int) -> SourceLine | None:
        """The source line by which a row is named (:func:`~gpa_lsp.foundation.ownership.choose_frame`); None without a line."""
        chain = self.chain(row)
        return None if chain is None else choose_frame(chain).source_line

    @cached_property
    def own_lines(self) -> npt.NDArray[np.int64]:
        """int64[n], the number of the line by which each row is named; a row without a line has a number of its own."""
        return number_lines(self.chains, self.chain_index)

    def find_heaviest(self, rows: npt.NDArray[np.int64], weights: npt.NDArray[Any]) -> int:
        """The row of most weight on the line of most weight: copies that unrolling made of a line are one line.

        Args:
            rows: int64[m], not empty.
            weights: of each of them.
        """
        lines = np.unique(self.own_lines[rows], return_inverse=True)[1].reshape(-1)
        sums = np.bincount(lines, weights=weights)
        inside = np.flatnonzero(sums[lines] == sums.max())
        return int(rows[inside[int(np.argmax(np.asarray(weights)[inside]))]])

    @property
    def counts_requests(self) -> bool:
        """Whether all of :data:`REQUEST_COUNTERS` were collected."""
        return all(name in self.counters for name in REQUEST_COUNTERS)

    def counter(self, name: str) -> npt.NDArray[np.int64] | None:
        """int64[n] of a counter, -1 where a row has none; None when it was not collected."""
        return self.counters.get(name)

    def reason_index(self, reason: str) -> int | None:
        """Column of a stall reason; None when the kernel has no sample of it."""
        return self.reasons.index(reason) if reason in self.reasons else None

    def count_reason(self, reason: str) -> int:
        """Samples of one stall reason in the whole kernel."""
        index = self.reason_index(reason)
        return 0 if index is None else int(self.all_samples[:, index].sum())

    def spread_by_mnemonic(self, number_of: Callable[[str], int], unknown: int = -1) -> npt.NDArray[np.int64]:
        """int64[n]: a number of each row's opcode with modifiers.

        Args:
            number_of: asked once per distinct mnemonic.
            unknown: for rows without a disassembly.
        """
        numbers = np.array([*map(number_of, self.mnemonics), unknown], dtype=np.int64)  # the last one is that of -1
        spread: npt.NDArray[np.int64] = numbers[self.mnemonic_index]
        return spread

    def mark(self, rows: Iterable[int]) -> npt.NDArray[np.bool_]:
        """bool[n], the given rows marked."""
        marks = np.zeros(len(self), dtype=np.bool_)
        marks[list(rows)] = True
        return marks

    def mark_by_opcode(self, is_wanted: Callable[[Opcode], bool]) -> npt.NDArray[np.bool_]:
        """bool[n]: rows whose opcode is wanted, asked once per distinct mnemonic; none without a disassembly."""
        wanted = np.array([*map(is_wanted, self.opcodes), False], dtype=np.bool_)  # the last one is that of -1
        marks: npt.NDArray[np.bool_] = wanted[self.mnemonic_index]
        return marks

    @cached_property
    def _mnemonic_of(self) -> list[str]:
        return list(map((*self.mnemonics, "").__getitem__, self.mnemonic_index.tolist()))

    @cached_property
    def _opcode_of(self) -> list[Opcode]:
        opcodes = (*self.opcodes, _UNKNOWN_OPCODE)
        return list(map(opcodes.__getitem__, self.mnemonic_index.tolist()))

    @cached_property
    def _chain_of(self) -> list[InlineChain | None]:
        chains = (*self.chains, None)  # the last one is that of -1
        return list(map(chains.__getitem__, self.chain_index.tolist()))

    @cached_property
    def _numbered_chains(self) -> tuple[Mapping[InlineChain, int], npt.NDArray[np.int32]]:
        """Each chain's number over the whole kernel, and the numbers of the rows."""
        numbers: dict[InlineChain, int] = {}
        return numbers, _join([_number_chains(function, numbers) for function in self.functions], np.int32)

    def _join_samples(self, parts: list[npt.NDArray[np.int64]]) -> npt.NDArray[np.int64]:
        return _join(parts or [np.zeros((0, len(self.reasons)), dtype=np.int64)], np.int64)

    def _join_instructions(
        self, read: Callable[[Instructions], npt.NDArray[Any]], missing: int, kind: type[np.generic]
    ) -> npt.NDArray[Any]:
        return _join(
            [
                np.full(len(one.pc_offsets), missing, kind) if one.instructions is None else read(one.instructions)
                for one in self.functions
            ],
            kind,
        )

    def _join_lists(self, read: Callable[[Instructions], ResourceLists]) -> ResourceLists:
        counts = self._join_instructions(lambda instructions: np.diff(read(instructions).starts), 0, np.int32)
        starts = np.concatenate([np.zeros(1, dtype=np.int32), np.cumsum(counts)]).astype(np.int32)
        numbers = [read(one.instructions).numbers for one in self.functions if one.instructions is not None]
        return ResourceLists(starts=starts, numbers=_join(numbers, np.int16))


class Kernel(Struct, frozen=True, kw_only=True, dict=True, weakref=True):
    """All launches of one kernel in one profile, joined with its code."""

    mangled_name: str  # linkage name
    name: str  # the most readable name the profile has
    profile_path: Path | None  # the profile's file; None for bytes from elsewhere
    module: Module | None  # the loaded image it is in; None when the profile has none
    cubin: Cubin | None  # the decoded image; None when there is none or it cannot be read
    device: Device  # the GPU
    architecture: Architecture | None  # its table; None when the compute capability is unknown or has no table
    launches: tuple[Launch, ...]  # in profile order, failed ones included
    reasons: tuple[str, ...]  # the k stall reasons, sorted; the union over launches
    # the kernel first, then device functions by name, then :data:`OUTSIDE_MODULE` if anything was sampled there
    functions: tuple[FunctionSamples, ...]
    # where launches differ in configuration or host path (:mod:`gpa_lsp.kernel.scatter`), the kernel as the launches of each context show it,
    # on the same rows: the heaviest contexts, most time first. Empty where all launches are of one.
    contexts: tuple["Kernel", ...] = ()

    @property
    def has_mixed_launches(self) -> bool:
        """Whether there are aggregates beside other launches: then means stand beside single numbers and must not be added up."""
        return len(self.launches) > 1 and any(launch.aggregate is not None for launch in self.launches)

    @property
    def is_split(self) -> bool:
        """Whether latency samples are told from the others."""
        return all(function.latency_samples is not None for function in self.functions)

    @cached_property
    def rows(self) -> KernelRows:
        """The rows of all functions."""
        return KernelRows(self.mangled_name, self.functions, self.reasons)

    @cached_property
    def library(self) -> str:
        """Library it belongs to; empty for the user's own and for one of which nothing is known."""
        files = frozenset(frame.file for chain in self.rows.chains for frame in chain if frame.line)
        return find_library(demangle(self.name), files)

    @cached_property
    def longest_launch(self) -> Launch | None:
        """The longest launch that has numbers, of the heaviest launch context; of equally long ones that with most samples. None without any."""
        if self.contexts:
            return self.contexts[0].longest_launch
        return max((one for one in self.launches if one.failure is None), key=_measure_launch, default=None)

    def metric(self, *names: str) -> float | None:
        """The first of these aggregates that the longest launch has; None when it has none of them, or none with a value that can be."""
        for name in names:
            if name not in self._metrics:
                self._metrics[name] = (
                    None if self.longest_launch is None else _read_plausible(self.longest_launch, name)
                )
            if self._metrics[name] is not None:
                return self._metrics[name]
        return None

    @cached_property
    def _metrics(self) -> dict[str, float | None]:
        """Aggregates that were asked for."""
        return {}

    @property
    def total_samples(self) -> int:
        """All samples of all launches."""
        return sum(function.total_samples for function in self.functions)


def _read_plausible(launch: Launch, name: str) -> float | None:
    value = launch.read_number(name)
    most = _MOST_PERCENT if "pct_of_peak" in name else inf
    return value if value is not None and 0 <= value <= most else None


def _measure_launch(launch: Launch) -> tuple[float, int]:
    """Duration, and samples where that is the same."""
    samples = 0 if launch.samples is None else launch.samples.total_samples
    return launch.read_number("gpu__time_duration.sum") or 0.0, samples


_UNKNOWN_OPCODE = Opcode(name="", description="", is_known=False)


def _join(parts: Sequence[npt.NDArray[Any]], kind: type[np.generic]) -> npt.NDArray[Any]:
    """Columns one after the other; a single one is not copied."""
    joined = parts[0] if len(parts) == 1 else np.concatenate([*parts]) if parts else np.zeros(0, dtype=kind)
    return joined.astype(kind, copy=False)


def _list_texts(function: FunctionSamples) -> Iterable[str]:
    if function.instructions is None:
        return ("",) * len(function.pc_offsets)
    if function.function is None or function.graph is None:
        return function.instructions.texts
    texts = list(function.instructions.texts)
    for site in function.graph.calls:
        if site.symbol is not None:  # the section's bytes do not hold the callee's address
            texts[site.instruction] = f"{texts[site.instruction].rpartition(' ')[0]} `({site.symbol})"
    return texts


def _number_chains(function: FunctionSamples, numbers: dict[InlineChain, int]) -> npt.NDArray[np.int32]:
    """Each row's chain, numbered over the whole kernel; -1 without a line."""
    if function.lines is None:
        return np.full(len(function.pc_offsets), -1, dtype=np.int32)
    own = function.chain_index
    renumbered = np.full(len(function.lines.chains) + 1, -1, dtype=np.int32)
    for index in find_distinct(own[own >= 0]).tolist():
        renumbered[index] = numbers.setdefault(function.lines.chains[index], len(numbers))
    return renumbered[own]


def _find_targets(instructions: Instructions) -> npt.NDArray[np.int32]:
    """Instruction numbers of targets; -1 for none, and for damaged ones that are no instruction."""
    index, rest = np.divmod(instructions.target, INSTRUCTION_BYTES)
    is_row = (instructions.target >= 0) & (rest == 0) & (index < len(instructions))
    return np.where(is_row, index, -1).astype(np.int32)


def number_lines(chains: Sequence[InlineChain], chain_index: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
    """int64[n], the number of the line by which each instruction is named; one without a line has a number of its own.

    Args:
        chains: inline chains.
        chain_index: int32[n] into them; -1 without a line.
    """
    numbers: dict[SourceLine, int] = {}
    places = [choose_frame(chain).source_line for chain in chains]
    of_chain = [numbers.setdefault(place, len(numbers)) if place.line > 0 else -1 for place in places]
    found = np.array([*of_chain, -1], dtype=np.int64)[chain_index]
    return np.where(found < 0, len(numbers) + np.arange(len(found)), found)
