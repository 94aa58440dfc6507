"""Waiting for constants: operands that miss the constant cache, and constants indexed by each thread."""

import re
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from gpa_lsp.code.binary.model import ResourceKind
from gpa_lsp.code.binary.opcodes import MemorySpace
from gpa_lsp.code.binary.uses import parse_operand
from gpa_lsp.diagnosis.advice.blamed_stalls import build_regions, count_samples, describe_causes
from gpa_lsp.diagnosis.advice.matches import EliminationMatch
from gpa_lsp.diagnosis.advice.model import Hotspot
from gpa_lsp.diagnosis.advice.naming import describe_place, describe_scope
from gpa_lsp.diagnosis.advice.optimizers import Found, Optimizer
from gpa_lsp.diagnosis.advice.residency import count_waves
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.diagnosis.blame.model import BlameCategory
from gpa_lsp.foundation.distinct import find_distinct
from gpa_lsp.foundation.prose import Code, Sentence, capitalize, count, percent, say
from gpa_lsp.kernel.dataflow.accesses import count_turns
from gpa_lsp.kernel.scopes import Scope

_CATEGORIES = (BlameCategory.CONSTANT_MISS, BlameCategory.EXECUTION_CONSTANT, BlameCategory.MEMORY_CONSTANT)
_CONSTANT = re.compile(r"c(?P<by_handle>x)?\[(?P<bank>[^\]]+)\](?P<index>\[[^\]]*\])")
_BANKS = {"0x0": say("kernel parameters"), "0x3": say("{qualifier} variables", qualifier=Code(text="__constant__"))}
_OTHER_BANK = say("compiler constants")
_LEAST_TURNS = 1.5  # A loop with fewer iterations is code that runs once, and fetches its constants once


def match(subject: Subject) -> Found:
    """Stalls for constants.

    Matched: stalls of constant operands that missed (``imc_miss``), and stalls blamed on instructions that load constants: all of them in loops
    that turn and where each thread has an index of its own, elsewhere the part 1 − 1 / waves, because the first blocks on an SM miss in
    any case.
    Approximation: a load from shared memory or a register instead is taken to be free.

    Source: stall reasons of Nsight Compute; that constant memory serves one address a step is in the CUDA C++ Programming Guide.
    """
    every = subject.edges
    edges = np.flatnonzero(np.isin(every.category, _CATEGORIES))
    if not len(edges):
        return say("no warp is stalled on a constant")
    words = _Words(subject)
    weights = words.weigh(every.def_row[edges])
    regions = build_regions(subject, edges, weights, write_hint=words.write_hint, write_note=words.write_note)
    if not regions:
        waiting = count_samples(subject, edges)
        return say(
            "{samples} stalled on the kernel's first constants, as in every launch",
            samples=count(waiting, "sample"),
        )
    misses = float(every.all_samples[edges][every.category[edges] == BlameCategory.CONSTANT_MISS].sum())
    loads = float(every.all_samples[edges].sum()) - misses
    return EliminationMatch(
        work={"constant": 0.0},
        regions=regions,
        hint=words.write_remedy(regions[0].hotspots[0].def_row),
        caveats=(say("The first use of a constant on an SM always misses."),),
        reasons=(
            say(
                "{misses} stalled on operands that missed, {loads} on loads of constants",
                misses=count(misses, "sample"),
                loads=count(loads),
            ),
            say(
                "outside loops {part} of them count, since the first blocks on an SM always miss",
                part=percent(words.recurring) if words.recurring else "none",
            ),
        ),
    )


class _Words:
    """Words about the constants of a kernel."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self.recurring = 1.0 - 1.0 / max(_count_waves(subject), 1.0)

    def weigh(self, rows: npt.NDArray[np.int32]) -> npt.NDArray[np.float64]:
        """float64[m]: the part of each pair that could go, by the rows of the defs."""
        weights = {
            row: 1.0 if self._is_repeated(row) or self._is_indexed_by_thread(row) else self.recurring
            for row in find_distinct(rows).tolist()
        }
        return np.array([weights[row] for row in rows.tolist()], dtype=np.float64)

    def write_note(self, def_row: int, _use_row: int) -> Sentence:
        """Name the constants of a def, and their addressing."""
        bank = self._find_bank(def_row)
        return say("{bank}, indexed per thread", bank=bank) if self._is_indexed_by_thread(def_row) else bank

    def write_hint(self, scope: Scope, hotspots: Sequence[Hotspot]) -> Sentence:
        """The constants that a region is stalled on most."""
        return describe_causes(hotspots, lambda row: self._write_sentence(scope, row))

    def _write_sentence(self, scope: Scope, row: int) -> Sentence:
        place, bank = capitalize(describe_place(self._subject, row)), self._find_bank(row)
        if self._is_indexed_by_thread(row):
            template = "{place} indexes {bank} per thread: each distinct address in a warp takes a step of its own."
            return say(template, place=place, bank=bank)
        if not self._is_repeated(row):
            template = "{place} uses {bank} once in {scope}: warps are stalled on the first fetch."
        elif self._is_load(row):
            template = "{place} reloads {bank} in every iteration of {scope}: keep them in registers."
        else:
            template = (
                "{place} uses {bank} in every iteration of {scope}, whose constants do not all fit the constant cache."
            )
        return say(template, place=place, bank=bank, scope=describe_scope(self._subject, scope))

    def write_remedy(self, row: int) -> Sentence:
        """Write the remedy for the constant with most stalls."""
        if self._is_indexed_by_thread(row):
            return say(
                "Move a table that threads index differently to shared memory or the read-only path ({qualifiers}, {intrinsic}); constant memory "
                "serves one address per warp at a time.",
                qualifiers=Code(text="const __restrict__"),
                intrinsic=Code(text="__ldg"),
            )
        if not self._is_repeated(row):
            return say(
                "Let each block do more (a grid-stride loop), so that fewer blocks start with a cold constant cache, or pass fewer parameters."
            )
        if self._is_load(row):
            return say(
                "Copy what the loop needs (parameters, {block}, {grid}, constants) to variables before the loop.",
                block=Code(text="blockDim"),
                grid=Code(text="gridDim"),
            )
        return say(
            "Keep the hot loop's constants few and adjacent, or copy them to registers or shared memory before it."
        )

    def _is_repeated(self, row: int) -> bool:
        """Whether a warp executes a row several times: it is in a loop, and that loop or one around it has several counted iterations."""
        function, index = self._subject.rows.function_of(row), self._subject.rows.index_of(row)
        graph = function.graph
        if graph is None:
            return False
        loops = graph.loops_around(int(graph.block_of_instruction[index]))
        return any(count_turns(function, graph, loop, index) >= _LEAST_TURNS for loop in loops)

    def _is_load(self, row: int) -> bool:
        """The constant is loaded to a register, not an operand of its user."""
        return self._subject.rows.opcode(row).memory is MemorySpace.CONSTANT

    def _find_constant(self, row: int) -> re.Match[str] | None:
        return _CONSTANT.search(self._subject.rows.texts[row])

    def _find_bank(self, row: int) -> Sentence:
        found = self._find_constant(row)
        return _OTHER_BANK if found is None or found["by_handle"] else _BANKS.get(found["bank"], _OTHER_BANK)

    def _is_indexed_by_thread(self, row: int) -> bool:
        """Whether the index of a constant is in a register that every thread has of its own."""
        found = self._find_constant(row)
        registers = () if found is None else parse_operand(found["index"]).groups
        return any(group.kind is ResourceKind.REGISTER for group in registers)


def _count_waves(subject: Subject) -> float:
    """Waves of blocks; where the profile does not say, as many as there are at least (every SM full of warps); 0 when that is unknown, too."""
    measured = count_waves(subject)
    launch, architecture = subject.launch, subject.kernel.architecture
    if measured is not None:
        return measured
    if launch is None or architecture is None or not subject.sm_count:
        return 0.0
    resident = subject.sm_count * architecture.occupancy.max_warps_per_sm.value
    return launch.blocks * launch.warps_per_block / resident


OPTIMIZER = Optimizer(
    name="constant_cache_misses",
    title="Avoid constant cache misses",
    group="constants",
    find=match,
)
