"""What kind of work an instruction does: :class:`WorkClass`, from the facts of its opcode."""

from enum import StrEnum
from functools import cache, lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
import tomli

from gpa_lsp.code.binary.model import Flow
from gpa_lsp.code.binary.opcodes import Access, MemorySpace, Opcode, Pipe, describe_mnemonic
from gpa_lsp.diagnosis.analyses.facts import KernelFacts
from gpa_lsp.gpu.arch.opcodes import find_longest_entry

_TABLE = "classes.toml"


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


def classify_rows(facts: KernelFacts) -> npt.NDArray[np.int64]:
    """int64[n], the number in :data:`CLASSES` of each instruction; -1 where nothing is disassembled.

    Arithmetic that reads no register but perhaps its guard loads a constant, and counts as a move.
    """
    number_of = {one: number for number, one in enumerate(CLASSES)}
    column = facts.rows.spread_by_mnemonic(lambda name: number_of[classify_mnemonic(name)])
    loads_constant = [number_of[one] for one in _OF_CONSTANTS]
    reads = np.diff(facts.rows.reads.starts) - (facts.rows.guard >= 0)
    column[(reads == 0) & np.isin(column, loads_constant)] = number_of[WorkClass.MOVE]
    return column


def count_classes(classes: npt.NDArray[np.int64], executions: npt.NDArray[np.int64]) -> dict[WorkClass, int]:
    """Executed warp instructions by class, those of unknown code left out; every class is there."""
    known = classes >= 0
    counts = np.bincount(classes[known], weights=executions[known], minlength=len(CLASSES))
    return {one: int(count) for one, count in zip(CLASSES, counts, strict=True)}


def _classify_opcode(opcode: Opcode) -> WorkClass:
    """What the facts of the opcode say, the most telling first."""
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
    text = Path(__file__).with_name(_TABLE).read_text(encoding="utf-8")
    table: dict[str, list[str]] = tomli.loads(text)
    return {entry: WorkClass[name.upper()] for name, entries in table.items() for entry in entries}
