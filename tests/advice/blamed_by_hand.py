"""Subjects whose blame a test writes down itself, so that what an optimizer makes of it does not depend on any blamer."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from gpa_lsp.code.binary.opcodes import describe_mnemonic
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.diagnosis.blame.categories import find_category
from gpa_lsp.diagnosis.blame.model import Dependency
from gpa_lsp.kernel.model import Kernel
from tests.advice.subjects import build_edges, make_blame
from tests.rows.written import write_kernel

Causes = Mapping[tuple[int, str], Sequence[int]]
"""(Sampled row, reason) → the rows to blame; several share the samples evenly, behind one scoreboard."""

_AT_BARRIERS = ("barrier", "membar", "drain")


def write_subject(text: str, causes: Causes, **kernel: Any) -> Subject:
    """A kernel in the notation of :mod:`tests.rows.written`, blamed as told; samples nobody is named for are their own cause."""
    return blame_by_hand(write_kernel(text, **kernel), causes)


def blame_by_hand(kernel: Kernel, causes: Causes) -> Subject:
    """The subject of a kernel whose blame is given."""
    edges: list[dict[str, Any]] = []
    first = groups = 0
    for function in kernel.functions:
        for local, samples in enumerate(function.all_samples.tolist()):
            for column, count in enumerate(samples):
                if count == 0:
                    continue
                row = first + local
                latency = int(function.latency_samples[local, column])
                defs = causes.get((row, kernel.reasons[column]), (row,))
                groups += 1
                for def_row in defs:
                    share = 1 / len(defs)
                    edges.append(
                        _make_edge(
                            kernel, row, def_row, column, samples=count * share, latency=latency * share, group=groups
                        )
                    )
        first += len(function.pc_offsets)
    return Subject(kernel, make_blame(kernel, build_edges(edges)))


def forget_code(subject: Subject) -> Subject:
    """The same subject as it is where the code cannot be disassembled."""
    functions = tuple(replace(function, instructions=None, graph=None) for function in subject.rows.functions)
    return Subject(replace(subject.kernel, functions=functions), subject.blame)


def _make_edge(
    kernel: Kernel, use_row: int, def_row: int, column: int, *, samples: float, latency: float, group: int
) -> dict[str, Any]:
    reason = kernel.reasons[column]
    dependency = Dependency.READ_AFTER_WRITE
    if reason in _AT_BARRIERS:
        dependency = Dependency.SYNCHRONISATION
    elif use_row == def_row:
        dependency = Dependency.ITSELF
    opcode = describe_mnemonic(_find_mnemonic(kernel, def_row))
    return {
        "use_row": use_row,
        "def_row": def_row,
        "reason": column,
        "category": find_category(opcode, dependency, reason),
        "dependency": dependency,
        "resource": -1,
        "group": group,
        "all_samples": samples,
        "latency_samples": latency,
        "distance_cycles": 0 if use_row == def_row else 10,
        "distance_instructions": 0 if use_row == def_row else abs(use_row - def_row),
    }


def _find_mnemonic(kernel: Kernel, row: int) -> str:
    for function in kernel.functions:
        if row < len(function.pc_offsets):
            return function.instructions.mnemonics[int(function.instructions.mnemonic_index[row])]
        row -= len(function.pc_offsets)
    raise AssertionError(f"no row {row}")
