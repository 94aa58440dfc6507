"""Differences between two kernels besides time and stalls: launch, code and counters.

Everything is read from the report, so that saved reports are compared as well as profiles.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from functools import lru_cache, partial

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gpa_lsp.code.binary.opcodes import Access, MemorySpace, describe_mnemonic
from gpa_lsp.code.binary.sass import read_mnemonic
from gpa_lsp.diagnosis.analyses.mix import WorkClass, classify_mnemonic
from gpa_lsp.diagnosis.analyses.model import LimiterKind
from gpa_lsp.foundation.numbers import Cell, Quantity, format_dim3
from gpa_lsp.report.model import KernelReport

_ACCESSED = frozenset({MemorySpace.GLOBAL, MemorySpace.GENERIC, MemorySpace.SHARED, MemorySpace.LOCAL})
_ARITHMETIC = (WorkClass.FP16, WorkClass.FP32, WorkClass.FP64, WorkClass.TENSOR)
_FARTHEST_USE = 256  # Instructions behind a load in which its first use is looked for
_MOST_INSTRUCTIONS = 20_000  # In larger kernels nobody looks for first uses
_REGISTER = re.compile(r"\bR(\d+)\b")


class Trait(StrEnum):
    """A property that a change can move; the value is its readable name."""

    GRID = "grid"
    BLOCK = "block"
    BLOCKS = "blocks"
    REGISTERS = "registers per thread"
    SHARED_BYTES = "shared memory per block"
    OCCUPANCY = "theoretical occupancy"
    ACHIEVED_OCCUPANCY = "achieved occupancy"
    BUILD = "build"
    CODE_SIZE = "instructions in the code"
    EXECUTED = "executed warp instructions"
    ITERATIONS = "loop iterations executed"
    REPEATS = "copies in the code"
    GLOBAL_ACCESSES = "global accesses"
    SHARED_ACCESSES = "shared accesses"
    LOCAL_ACCESSES = "local accesses"
    ATOMICS = "atomics"
    COPIES = "asynchronous copies"
    CONSTANT_LOADS = "loads of constants"
    BARRIERS = "barriers and fences"
    BARRIER_DENSITY = "barriers per thousand instructions"
    CALLS = "calls"
    TENSOR = "tensor instructions"
    FP64 = "FP64 instructions"
    SPECIAL = "special functions"
    CONVERSIONS = "conversions"
    ACCESSES_PER_ARITHMETIC = "memory accesses per arithmetic instruction"
    LOAD_DISTANCE = "instructions from a load to its first use"
    ACCESS_BYTES = "bytes per thread and access"
    GLOBAL_SECTORS = "sectors per global access"
    GLOBAL_EXCESS = "excess of global sectors"
    SHARED_WAVEFRONTS = "wavefronts per shared access"
    SHARED_MOVED = "wavefronts of shared memory"
    SHARED_EXCESS = "excess of shared wavefronts"
    LOCAL_SECTORS = "sectors of local memory"
    IDLE_LANES = "idle lanes"
    IDLE_SMS = "idle time of the SMs"
    UNFILLED_WAVES = "unfilled part of the waves"


# Of the others it is a count
_QUANTITIES: Mapping[Trait, Quantity] = {
    Trait.GRID: Quantity.TEXT,
    Trait.BLOCK: Quantity.TEXT,
    Trait.BUILD: Quantity.TEXT,
    Trait.SHARED_BYTES: Quantity.BYTES,
    Trait.OCCUPANCY: Quantity.RATIO,
    Trait.ACHIEVED_OCCUPANCY: Quantity.RATIO,
    Trait.ACCESSES_PER_ARITHMETIC: Quantity.NUMBER,
    Trait.LOAD_DISTANCE: Quantity.NUMBER,
    Trait.ACCESS_BYTES: Quantity.NUMBER,
    Trait.GLOBAL_SECTORS: Quantity.NUMBER,
    Trait.GLOBAL_EXCESS: Quantity.RATIO,
    Trait.SHARED_WAVEFRONTS: Quantity.NUMBER,
    Trait.SHARED_EXCESS: Quantity.RATIO,
    Trait.IDLE_LANES: Quantity.RATIO,
    Trait.IDLE_SMS: Quantity.RATIO,
    Trait.UNFILLED_WAVES: Quantity.RATIO,
    Trait.BARRIER_DENSITY: Quantity.NUMBER,
}

_CLASSES: Mapping[WorkClass, Trait] = {
    WorkClass.GLOBAL: Trait.GLOBAL_ACCESSES,
    WorkClass.SHARED: Trait.SHARED_ACCESSES,
    WorkClass.LOCAL: Trait.LOCAL_ACCESSES,
    WorkClass.ATOMIC: Trait.ATOMICS,
    WorkClass.CONSTANT: Trait.CONSTANT_LOADS,
    WorkClass.BARRIER: Trait.BARRIERS,
    WorkClass.TENSOR: Trait.TENSOR,
    WorkClass.FP64: Trait.FP64,
    WorkClass.SPECIAL: Trait.SPECIAL,
    WorkClass.CONVERSION: Trait.CONVERSIONS,
}

# Traits of instructions, which are counted as executed or, where nobody counted that, as they stand in the code
_COUNTED = frozenset(
    {
        *_CLASSES.values(),
        Trait.CALLS,
        Trait.COPIES,
        Trait.ACCESSES_PER_ARITHMETIC,
        Trait.BARRIER_DENSITY,
        Trait.LOAD_DISTANCE,
    }
)

_Values = dict[Trait, Cell]

Place = tuple[KernelReport, npt.NDArray[np.bool_]]  # A kernel, and which of its instructions


class Difference(Struct, frozen=True, kw_only=True):
    """A trait that is known of both kernels."""

    trait: Trait  # what
    before: Cell  # as large or as named before; never None
    after: Cell  # after; never None
    # instructions were counted as they stand in the code, because one of the two does not say how often they ran
    is_static: bool = False

    @property
    def quantity(self) -> Quantity:
        """Quantity of both values."""
        return _QUANTITIES.get(self.trait, Quantity.COUNT)

    @property
    def is_change(self) -> bool:
        """Whether the two differ by more than rounding."""
        old, new = self.before, self.after
        if isinstance(old, str) or isinstance(new, str) or old is None or new is None:
            return old != new
        return abs(new - old) > 1e-9 * max(abs(old), abs(new))

    @property
    def ratio(self) -> float | None:
        """Value after / before; None for names, and where there was nothing before."""
        old, new = self.before, self.after
        if isinstance(old, str) or isinstance(new, str) or not old or new is None:
            return None
        return new / old


def compare_traits(before: KernelReport, after: KernelReport) -> Mapping[Trait, Difference]:
    """All traits known of both, also unchanged ones, in the order of :class:`Trait`."""
    return _compare((before, partial(_measure, before)), (after, partial(_measure, after)))


def compare_traits_at(before: Place, after: Place, opcodes: frozenset[str]) -> Mapping[Trait, Difference]:
    """Traits of some instructions only, such as those of a few lines."""
    old, new = ((place[0], partial(_measure_code_at, place, opcodes)) for place in (before, after))
    return _compare(old, new)


_Side = tuple[
    KernelReport, Callable[[npt.NDArray[np.float64] | None], _Values]
]  # A kernel, and its traits by its executions


def _compare(before: _Side, after: _Side) -> Mapping[Trait, Difference]:
    weights = [read_executions(kernel) for kernel, _ in (before, after)]
    is_static = any(one is None for one in weights)
    old, new = (measure(None if is_static else one) for (_, measure), one in zip((before, after), weights, strict=True))
    return {
        trait: Difference(trait=trait, before=old[trait], after=new[trait], is_static=is_static and trait in _COUNTED)
        for trait in Trait
        if old.get(trait) is not None and new.get(trait) is not None
    }


def _measure_code_at(place: Place, opcodes: frozenset[str], executions: npt.NDArray[np.float64] | None) -> _Values:
    kernel, rows = place
    weights = rows * (np.ones(len(rows)) if executions is None else executions)
    found = _measure_code(kernel, weights)
    texts = kernel.instructions.texts
    copies = [row for row in np.flatnonzero(rows) if texts[row] and read_opcode(texts[row]) in opcodes]
    # Copies that execute less often by as much as there are more of them: unrolled. Fewer executions of them all: widened, or gone.
    executed = float(weights[copies].sum()) if executions is not None else None
    return {
        **found,
        Trait.CODE_SIZE: int(rows.sum()),
        Trait.EXECUTED: None if executions is None else float(weights.sum()),
        Trait.ITERATIONS: executed,
        Trait.REPEATS: len(copies),
    }


def read_opcode(text: str) -> str:
    """Read the mnemonic of an instruction without its modifiers."""
    return read_mnemonic(text).partition(".")[0]


def count_opcodes(kernel: KernelReport) -> Counter[str]:
    """Number of instructions per opcode, modifiers aside; empty where there is no disassembly."""
    return Counter(read_opcode(text) for text in kernel.instructions.texts if text)


def _measure(kernel: KernelReport, executions: npt.NDArray[np.float64] | None) -> _Values:
    return {
        **_measure_launch(kernel),
        **_measure_code(kernel, executions),
        **_measure_accesses(kernel),
    }


def _measure_launch(kernel: KernelReport) -> _Values:
    launch = kernel.configuration
    is_launched = launch.blocks > 0
    shared = (launch.shared_static_bytes, launch.shared_dynamic_bytes)
    bars = _read_bars(kernel, "occupancy")
    is_known = kernel.limiter is not None and kernel.limiter.kind is not LimiterKind.UNKNOWN
    is_debug = kernel.limiter is not None and kernel.limiter.kind is LimiterKind.BUILD
    return {
        Trait.GRID: format_dim3(launch.grid) if is_launched else None,
        Trait.BLOCK: format_dim3(launch.block) if is_launched and launch.block is not None else None,
        Trait.BLOCKS: launch.blocks or None,
        Trait.REGISTERS: launch.registers_per_thread,
        Trait.SHARED_BYTES: None if shared[0] is None or shared[1] is None else shared[0] + shared[1],
        Trait.OCCUPANCY: bars.get("theoretical"),
        Trait.ACHIEVED_OCCUPANCY: bars.get("achieved"),
        Trait.BUILD: ("without optimization" if is_debug else "optimized") if is_known else None,
    }


def _read_bars(kernel: KernelReport, analysis: str) -> Mapping[str, float]:
    answer = None if kernel.analyses is None else kernel.analyses.find(analysis)
    return {} if answer is None else {bar.label: bar.ratio for bar in answer.bars}


def read_executions(kernel: KernelReport) -> npt.NDArray[np.float64] | None:
    """Executions per launch, by row; None where they were not counted."""
    known = kernel.instructions.executions
    launches = [launch for launch in kernel.launches if launch.failure is None]
    if not bool((known > 0).any()) or (len(launches) > 1 and any(one.aggregate is not None for one in launches)):
        return None
    return np.maximum(known, 0) / max(len(launches), 1)


def _measure_code(kernel: KernelReport, executions: npt.NDArray[np.float64] | None) -> _Values:
    """Traits of the instructions, weighted by executions, or counted once each."""
    texts = kernel.instructions.texts
    if not any(texts):
        return {}
    weights = np.ones(len(texts)) if executions is None else executions
    sums: Counter[Trait] = Counter(dict.fromkeys(_CLASSES.values(), 0))
    sums.update({Trait.CALLS: 0, Trait.COPIES: 0})
    arithmetic = whole = 0.0
    for text, weight in zip(texts, weights.tolist(), strict=True):
        if not text:
            continue
        whole += weight
        kind, access, is_call = _classify(read_mnemonic(text))
        if kind in _CLASSES:
            sums[_CLASSES[kind]] += weight
        if kind in _ARITHMETIC:
            arithmetic += weight
        sums[Trait.COPIES] += weight if access is Access.COPY else 0
        sums[Trait.CALLS] += weight if is_call else 0
    loads = sums[Trait.GLOBAL_ACCESSES] + sums[Trait.SHARED_ACCESSES] + sums[Trait.LOCAL_ACCESSES]
    return {
        **sums,
        Trait.CODE_SIZE: sum(1 for text in texts if text),
        Trait.EXECUTED: None if executions is None else float(executions.sum()),
        Trait.ITERATIONS: None if executions is None else _count_iterations(kernel, executions),
        Trait.ACCESSES_PER_ARITHMETIC: loads / arithmetic if arithmetic else None,
        Trait.BARRIER_DENSITY: 1000 * sums[Trait.BARRIERS] / whole if whole else None,
        Trait.LOAD_DISTANCE: _measure_distance(kernel, weights),
    }


@lru_cache(maxsize=4096)
def _classify(mnemonic: str) -> tuple[WorkClass, Access | None, bool]:
    return classify_mnemonic(mnemonic), describe_mnemonic(mnemonic).access, mnemonic.partition(".")[0] == "CALL"


def _count_iterations(kernel: KernelReport, executions: npt.NDArray[np.float64]) -> float:
    """Warp executions of all loop headers."""
    columns = kernel.instructions
    index = {name: position for position, name in enumerate(columns.functions)}
    headers = {(index[loop.function], loop.header_pc_offset) for loop in kernel.loops if loop.function in index}
    places = zip(columns.function_index.tolist(), columns.pc_offsets.tolist(), strict=True)
    return float(sum(executions[row] for row, place in enumerate(places) if place in headers))


def _measure_distance(kernel: KernelReport, weights: npt.NDArray[np.float64]) -> float | None:
    """Mean number of instructions from a load to the first that reads it; None without loads."""
    columns = kernel.instructions
    if len(columns) > _MOST_INSTRUCTIONS:
        return None
    total = count = 0.0
    functions = columns.function_index.tolist()
    for row, text in enumerate(columns.texts):
        if not text or not weights[row] or not _is_load(read_mnemonic(text)):
            continue
        end = min(len(columns), row + _FARTHEST_USE)
        distance = _find_use(columns.texts[row:end], functions[row:end])
        if distance is not None:
            total += distance * weights[row]
            count += weights[row]
    return total / count if count else None


@lru_cache(maxsize=4096)
def _is_load(mnemonic: str) -> bool:
    opcode = describe_mnemonic(mnemonic)
    return opcode.access is Access.LOAD and opcode.memory in _ACCESSED


def _find_use(texts: tuple[str, ...], functions: list[int]) -> int | None:
    """Distance to the first use of the result of the first instruction; the search ends with the function."""
    result = _REGISTER.search(texts[0])
    if result is None:
        return None
    first = int(result[1])
    width = 4 if ".128" in texts[0] else 2 if ".64" in texts[0].partition("[")[0] else 1
    names = {str(first + offset) for offset in range(width)}
    for distance, (text, function) in enumerate(zip(texts, functions, strict=True)):
        if function != functions[0]:
            return None
        if distance and not names.isdisjoint(_REGISTER.findall(text)):
            return distance
    return None


def _measure_accesses(kernel: KernelReport) -> _Values:
    """Counters of memory and lanes, from the analyses."""
    found: _Values = {}
    moved = {row["memory"]: row for row in _read_table(kernel, "memory_access", "What is moved")}
    for name, per_access, excess in (
        ("global", Trait.GLOBAL_SECTORS, Trait.GLOBAL_EXCESS),
        ("shared", Trait.SHARED_WAVEFRONTS, Trait.SHARED_EXCESS),
    ):
        row = moved.get(name)
        if row is not None:
            total, accesses = row["moved"], row["accesses"]
            if isinstance(total, int | float) and isinstance(accesses, int | float) and accesses:
                found[per_access] = total / accesses
            found[excess] = row["share"]
    launches = max(sum(launch.failure is None for launch in kernel.launches), 1)
    for name, trait in (("local", Trait.LOCAL_SECTORS), ("shared", Trait.SHARED_MOVED)):
        total = moved[name]["moved"] if name in moved else 0
        if moved and isinstance(total, int | float):
            found[trait] = total / launches
    widths = list(_read_table(kernel, "memory_access", "Width of accesses"))
    found[Trait.ACCESS_BYTES] = _find_mean_width(widths)
    for trait, analysis, bar in (
        (Trait.IDLE_LANES, "divergence", "busy"),
        (Trait.IDLE_SMS, "load_balance", "SMs active"),
        (Trait.UNFILLED_WAVES, "load_balance", "waves filled"),
    ):
        used = _read_bars(kernel, analysis).get(bar)
        found[trait] = None if used is None else 1 - used
    return found


def _find_mean_width(rows: list[Mapping[str, Cell]]) -> float | None:
    known = [
        (float(row["per thread"]), float(row["share"]))
        for row in rows
        if isinstance(row["per thread"], int | float) and isinstance(row["share"], int | float)
    ]
    whole = sum(share for _, share in known)
    return sum(width * share for width, share in known) / whole if whole else None


def _read_table(kernel: KernelReport, analysis: str, title: str) -> Iterator[Mapping[str, Cell]]:
    answer = None if kernel.analyses is None else kernel.analyses.find(analysis)
    for table in () if answer is None else answer.tables:
        if table.title == title:
            names = [column.name for column in table.columns]
            yield from (dict(zip(names, row, strict=True)) for row in table.rows)
