"""Def-use pairs of single instructions: what one waits for, who waits for it, and what became of its own samples."""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gpa_lsp.diagnosis.blame.model import BlameCategory, BlameEdges, Dependency
from gpa_lsp.foundation.distinct import find_distinct
from gpa_lsp.report.model import KernelReport

MOST_PAIRS = 200  # Of one instruction, the heaviest ones: lists for people, not sums


class InstructionPair(Struct, frozen=True, kw_only=True):
    """What an instruction waits for in one other for one reason, or what waits for it there."""

    row: int  # the other instruction
    reason: str  # stall reason
    category: BlameCategory  # what kind of cause it is
    dependency: Dependency  # how the use depends on the def
    samples: float  # blamed on the def
    # the use waits for this def alone; otherwise the samples were shared out among several by convention
    is_separable: bool
    resource: int | None  # resource number that connects the two; None when none does
    distance_cycles: int | None  # between the two, encoded cycles; None when unknown
    distance_instructions: int | None  # instructions between the two; None when unknown


class OtherInstruction(Struct, frozen=True, kw_only=True):
    """One other instruction, for all reasons together."""

    row: int  # which
    samples: float  # of all pairs with it
    heaviest: InstructionPair  # the pair with most of them


def list_causes(kernel: KernelReport, row: int) -> tuple[InstructionPair, ...]:
    """What an instruction waits for, most samples first; nothing where nothing was blamed."""
    if kernel.blame is None:
        return ()
    edges = kernel.blame.edges
    start, end = np.searchsorted(edges.use_row, (row, row + 1)).tolist()
    numbers = np.arange(start, end)[edges.is_moved[start:end]]
    return _make_pairs(kernel, edges, numbers, edges.def_row)


def list_victims(kernel: KernelReport, row: int) -> tuple[InstructionPair, ...]:
    """Who waits for an instruction, most samples first; nothing where nothing was blamed."""
    if kernel.blame is None:
        return ()
    edges = kernel.blame.edges
    numbers = np.flatnonzero(edges.def_row == row)
    return _make_pairs(kernel, edges, numbers[edges.use_row[numbers] != row], edges.use_row)


def join_by_instruction(pairs: Iterable[InstructionPair]) -> tuple[OtherInstruction, ...]:
    """The other instructions of some pairs, most samples first.

    Args:
        pairs: most samples first.
    """
    sums: dict[int, float] = {}
    heaviest: dict[int, InstructionPair] = {}
    for pair in pairs:
        sums[pair.row] = sums.get(pair.row, 0.0) + pair.samples
        heaviest.setdefault(pair.row, pair)
    ranked = sorted(sums, key=lambda row: (-sums[row], row))
    return tuple(OtherInstruction(row=row, samples=sums[row], heaviest=heaviest[row]) for row in ranked)


def list_own(kernel: KernelReport, row: int) -> tuple[tuple[str, float], ...]:
    """Reasons for which samples of an instruction are its own matter, issuing among them, with those samples, most first."""
    if kernel.blame is None:
        return ()
    edges = kernel.blame.edges
    start, end = np.searchsorted(edges.use_row, (row, row + 1)).tolist()
    own = np.arange(start, end)[~edges.is_moved[start:end]]
    sums = np.bincount(edges.reason[own], weights=edges.all_samples[own], minlength=1)
    order = np.flatnonzero(sums)[np.argsort(-sums[np.flatnonzero(sums)], kind="stable")]
    return tuple((kernel.instructions.reasons[reason], float(sums[reason])) for reason in order.tolist())


def count_unattributed(kernel: KernelReport, row: int) -> float:
    """Samples of an instruction that nobody is blamed for."""
    if kernel.blame is None:
        return 0.0
    lost = kernel.blame.unattributed
    return float(lost.all_samples[lost.row == row].sum())


def _make_pairs(
    kernel: KernelReport, edges: BlameEdges, numbers: npt.NDArray[np.int64], others: npt.NDArray[np.int32]
) -> tuple[InstructionPair, ...]:
    """Pairs of some edges, no more than :data:`MOST_PAIRS`; zero samples are no pair."""
    numbers = numbers[edges.all_samples[numbers] > 0]
    order = numbers[np.lexsort((others[numbers], -edges.all_samples[numbers]))]
    return tuple(_make_pair(kernel, edges, number, int(others[number])) for number in order[:MOST_PAIRS].tolist())


def _make_pair(kernel: KernelReport, edges: BlameEdges, number: int, other: int) -> InstructionPair:
    resource, cycles = int(edges.resource[number]), int(edges.distance_cycles[number])
    instructions = int(edges.distance_instructions[number])
    return InstructionPair(
        row=other,
        reason=kernel.instructions.reasons[int(edges.reason[number])],
        category=BlameCategory(int(edges.category[number])),
        dependency=Dependency(int(edges.dependency[number])),
        samples=float(edges.all_samples[number]),
        is_separable=_is_alone(edges, number),
        resource=None if resource < 0 else resource,
        distance_cycles=None if cycles < 0 else cycles,
        distance_instructions=None if instructions < 0 else instructions,
    )


def _is_alone(edges: BlameEdges, number: int) -> bool:
    """Whether an edge's group has one def only; a group is of one use, and edges are in the order of their uses."""
    use = int(edges.use_row[number])
    start, end = np.searchsorted(edges.use_row, (use, use + 1)).tolist()
    together = edges.group[start:end] == edges.group[number]
    return len(find_distinct(edges.def_row[start:end][together])) == 1
