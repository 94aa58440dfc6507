"""Classes of work (:class:`WorkClass`) and pipes of instructions, by the facts of their opcodes."""

from collections.abc import Mapping
from enum import StrEnum
from functools import cache, lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
from msgspec import Struct, convert

from gpa_lsp.code.binary.model import Flow
from gpa_lsp.code.binary.opcodes import Access, MemorySpace, Opcode, Pipe, describe_mnemonic
from gpa_lsp.code.binary.sass import split_operands
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.foundation.toml_tables import read_own_table
from gpa_lsp.gpu.arch.hazards import find_longest_entry
from gpa_lsp.gpu.arch.model import Architecture


class WorkClass(StrEnum):
    """A kind of work; the values are names for people."""

    FP32 = "FP32"
    FP64 = "FP64"
    FP16 = "FP16"
    TENSOR = "tensor"
    SPECIAL = "special functions"
    INTEGER = "integer and logic"
    ADDRESS = "address arithmetic"
    CONVERSION = "conversions"
    GLOBAL = "global memory"
    SHARED = "shared memory"
    LOCAL = "local memory"
    CONSTANT = "constant memory"
    TEXTURE = "textures and surfaces"
    ATOMIC = "atomics"
    EXCHANGE = "exchange between lanes"
    MOVE = "moves and predicates"
    UNIFORM = "uniform datapath"
    CONTROL = "control flow"
    BARRIER = "barriers and fences"
    OTHER = "other"


CLASSES = tuple(WorkClass)  # In the order of their numbers in a column

# What a numeric kernel is there for
ARITHMETIC = (WorkClass.FP32, WorkClass.FP64, WorkClass.FP16, WorkClass.TENSOR, WorkClass.SPECIAL)

MEMORY = (
    WorkClass.GLOBAL,
    WorkClass.SHARED,
    WorkClass.LOCAL,
    WorkClass.CONSTANT,
    WorkClass.TEXTURE,
    WorkClass.ATOMIC,
)

_SPACES = {
    MemorySpace.GLOBAL: WorkClass.GLOBAL,
    MemorySpace.GENERIC: WorkClass.GLOBAL,
    MemorySpace.SHARED: WorkClass.SHARED,
    MemorySpace.LOCAL: WorkClass.LOCAL,
    MemorySpace.CONSTANT: WorkClass.CONSTANT,
    MemorySpace.TEXTURE: WorkClass.TEXTURE,
    MemorySpace.SURFACE: WorkClass.TEXTURE,
    MemorySpace.TENSOR: WorkClass.TENSOR,
    MemorySpace.WARP: WorkClass.EXCHANGE,
}
_PIPES = {
    Pipe.FP64: WorkClass.FP64,
    Pipe.FP16: WorkClass.FP16,
    Pipe.TENSOR: WorkClass.TENSOR,
    Pipe.UNIFORM: WorkClass.UNIFORM,
    Pipe.TEXTURE: WorkClass.TEXTURE,
    Pipe.CONTROL: WorkClass.CONTROL,
}
# Arithmetic that compilers use to load a constant: ``HFMA2 R1, -RZ, RZ, 0, 0``
_OF_CONSTANTS = (WorkClass.FP32, WorkClass.FP16, WorkClass.INTEGER, WorkClass.ADDRESS)


@lru_cache(maxsize=8192)
def classify_mnemonic(mnemonic: str) -> WorkClass:
    """The class of an opcode with its modifiers.

    >>> [classify_mnemonic(one).name for one in ("FFMA", "IMAD.MOV.U32", "IMAD.WIDE", "LDG.E.64", "ATOMS.ADD", "BRA.U", "UIADD3", "FROB")]
    ['FP32', 'MOVE', 'ADDRESS', 'GLOBAL', 'ATOMIC', 'CONTROL', 'UNIFORM', 'OTHER']
    """
    named = find_longest_entry(_read_entries(), mnemonic)
    return named if named is not None else _classify_opcode(describe_mnemonic(mnemonic))


def classify_rows(subject: Subject) -> npt.NDArray[np.int64]:
    """int64[n], the number in :data:`CLASSES` of each instruction; -1 where nothing is disassembled.

    Arithmetic that reads no register but perhaps its guard loads a constant, and counts as a move.
    """
    number_of = {one: number for number, one in enumerate(CLASSES)}
    column = subject.rows.spread_by_mnemonic(lambda name: number_of[classify_mnemonic(name)])
    loads_constant = [number_of[one] for one in _OF_CONSTANTS]
    reads = np.diff(subject.rows.reads.starts) - (subject.rows.guard >= 0)
    column[(reads == 0) & np.isin(column, loads_constant)] = number_of[WorkClass.MOVE]
    return column


def count_classes(classes: npt.NDArray[np.int64], executions: npt.NDArray[np.int64]) -> dict[WorkClass, int]:
    """Executed warp instructions by class, those of unknown code left out; every class is there."""
    known = classes >= 0
    counts = np.bincount(classes[known], weights=executions[known], minlength=len(CLASSES))
    return {one: int(count) for one, count in zip(CLASSES, counts, strict=True)}


def _classify_opcode(opcode: Opcode) -> WorkClass:
    """Class of an opcode by its facts, the most telling first."""
    if opcode.access in (Access.ATOMIC, Access.REDUCTION):
        return WorkClass.ATOMIC
    if opcode.pipe is Pipe.UNIFORM:
        return WorkClass.UNIFORM
    if opcode.memory in _SPACES:
        return _SPACES[opcode.memory]
    if opcode.synchronises is not None:
        return WorkClass.BARRIER
    if opcode.flow is not Flow.NONE:
        return WorkClass.CONTROL
    return _PIPES.get(opcode.pipe, WorkClass.OTHER) if opcode.pipe is not None else WorkClass.OTHER


@cache
def _read_entries() -> dict[str, WorkClass]:
    table: dict[str, list[str]] = read_own_table(Path(__file__).with_name("work_classes.toml"))
    return {entry: WorkClass[name.upper()] for name, entries in table.items() for entry in entries}


_SPECIAL = "S2R"
_PERCENT = 100.0
_NAMES = {Pipe.TEXTURE: "tex", Pipe.CONTROL: "cbu"}  # Pipes whose name here is not that of the opcode table


class PipeFacts(Struct, frozen=True, kw_only=True):
    """One pipe."""

    name: str  # e.g. ``alu``.
    title: str  # for people
    says: str  # what it executes
    counters: tuple[str, ...]  # metrics with its use in percent, best first
    rates: Mapping[str, float]  # architecture → warp instructions per cycle and SM
    throughput: str = ""  # the figure of the architecture's table that holds the rate instead, per sub-partition; empty where ``rates`` do
    assumed: tuple[str, ...]  # architectures whose rate was not measured
    remedy: str  # what helps when it is busy

    def find_rate(self, architecture: Architecture) -> float | None:
        """Warp instructions per cycle and SM; None when unknown."""
        if not self.throughput:
            return self.rates.get(architecture.name)
        figure = getattr(architecture.throughput, self.throughput).value
        return None if figure is None else float(figure) * architecture.sm.sub_partitions_per_sm.value


class _OpcodePipe(Struct, frozen=True, kw_only=True):
    """Opcodes that a pipe executes."""

    pipe: str
    of: tuple[str, ...]  # opcodes with their leading modifiers
    architectures: tuple[str, ...] = ()  # on these alone; empty for all


class PipeUse(Struct, frozen=True, kw_only=True):
    """Utilization of a pipe."""

    pipe: PipeFacts  # which
    # executed warp instructions, over all launches; None for a pipe that only its counter knows
    instructions: int | None
    counted_ratio: float | None  # its use by its counter, of the longest launch, 0..1; None when not collected
    # instructions over rate, SMs and active cycles, 0..1; None without a rate or cycles. Instructions that hold a pipe for more than one slot make it
    # less than what is counted.
    computed_ratio: float | None

    @property
    def use_ratio(self) -> float | None:
        """Counted use, else computed use."""
        return self.counted_ratio if self.counted_ratio is not None else self.computed_ratio


class _PipeTable(Struct, frozen=True, kw_only=True):
    """``pipes.toml``."""

    pipes: tuple[PipeFacts, ...]
    opcodes: tuple[_OpcodePipe, ...]
    special_registers: dict[str, tuple[str, ...]]  # pipe → registers that S2R reads through it


@cache
def _read_table() -> _PipeTable:
    return convert(read_own_table(Path(__file__).with_name("pipes.toml")), _PipeTable)


def list_pipes() -> tuple[PipeFacts, ...]:
    """All pipes, in the order of their numbers in a column."""
    return _read_table().pipes


@lru_cache(maxsize=8192)
def find_pipe(mnemonic: str, architecture: str) -> str:
    """The pipe of an opcode on an architecture; ``none`` for what no pipe is known to execute.

    >>> find_pipe("VIADD", "sm_90"), find_pipe("HFMA2.MMA", "sm_80"), find_pipe("HFMA2", "sm_86"), find_pipe("BRA", "sm_70")
    ('fma', 'tensor', 'fma', 'cbu')
    """
    named = find_longest_entry(_read_opcodes(architecture), mnemonic)
    if named is not None:
        return named
    pipe = describe_mnemonic(mnemonic).pipe
    return "none" if pipe is None else _NAMES.get(pipe, pipe.value)


def assign_pipes(subject: Subject, architecture: str) -> npt.NDArray[np.int64]:
    """int64[n], the number in :func:`list_pipes` of each instruction; -1 where nothing is disassembled."""
    number_of = {pipe.name: number for number, pipe in enumerate(list_pipes())}
    column = subject.rows.spread_by_mnemonic(lambda name: number_of[find_pipe(name, architecture)])
    other_pipes = {
        register: number_of[name]
        for name, registers in _read_table().special_registers.items()
        for register in registers
    }
    for row in np.flatnonzero(subject.rows.spread_by_mnemonic(_SPECIAL.__eq__, unknown=0)).tolist():
        register = split_operands(subject.rows.texts[row].rpartition(f"{_SPECIAL} ")[2])[-1]
        column[row] = other_pipes.get(register, column[row])
    return column


def measure_pipes(subject: Subject, executions: npt.NDArray[np.int64] | None) -> tuple[PipeUse, ...]:
    """Every pipe that executed something or has a counter that says so, busiest first.

    ``executions``: int64[n], warp-level; None when not collected.
    """
    architecture = subject.architecture
    counts: npt.NDArray[np.int64] | None = None
    if architecture is not None and executions is not None:
        pipes = assign_pipes(subject, architecture.name)
        known = pipes >= 0
        counts = np.bincount(pipes[known], weights=executions[known], minlength=len(list_pipes())).astype(np.int64)
    cycles = count_active_cycles(subject)
    uses = []
    for number, pipe in enumerate(list_pipes()):
        # No opcode is assigned to the heavy half of FMA.
        instructions = None if counts is None or pipe.name == "fmaheavy" else int(counts[number])
        percent = subject.metric(*pipe.counters)
        rate = None if architecture is None else pipe.find_rate(architecture)
        computed = instructions / (rate * cycles) if instructions is not None and rate and cycles else None
        use = PipeUse(
            pipe=pipe,
            instructions=instructions,
            counted_ratio=None if percent is None else percent / _PERCENT,
            computed_ratio=computed,
        )
        if instructions or use.use_ratio:
            uses.append(use)
    return tuple(sorted(uses, key=lambda use: -(use.use_ratio or 0.0)))


def count_active_cycles(subject: Subject) -> float | None:
    """Cycles in which SMs had work, over all SMs and launches; None when a launch does not tell, or aggregates stand beside other launches."""
    if subject.kernel.has_mixed_launches:
        return None
    sm_count = subject.kernel.device.sm_count
    cycles = [launch.read_number("sm__cycles_active.avg") for launch in subject.runs]
    if sm_count is None or not cycles or None in cycles:
        return None
    return sm_count * sum(one for one in cycles if one is not None)


@cache
def _read_opcodes(architecture: str) -> Mapping[str, str]:
    """Entry → pipe, on one architecture."""
    return {
        entry: group.pipe
        for group in _read_table().opcodes
        if not group.architectures or architecture in group.architectures
        for entry in group.of
    }
