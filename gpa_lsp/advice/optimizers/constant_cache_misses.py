"""Waiting for constants: operands that miss the constant cache, and constants indexed by each thread."""

import re
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from gpa_lsp.advice.accesses import has_code
from gpa_lsp.advice.blamed_stalls import build_regions, find_edges
from gpa_lsp.advice.matches import EliminationMatch
from gpa_lsp.advice.model import Category, Hotspot, Scope, Silence, SilenceStage
from gpa_lsp.advice.optimizers import EliminationOptimizer
from gpa_lsp.advice.source_words import describe_line, describe_scope
from gpa_lsp.advice.subject import Subject
from gpa_lsp.binary.model import ResourceKind
from gpa_lsp.binary.operands import parse_operand
from gpa_lsp.blame.model import BlameCategory

_CATEGORIES = (BlameCategory.CONSTANT_MISS, BlameCategory.EXECUTION_CONSTANT, BlameCategory.MEMORY_CONSTANT)
_CONSTANT = re.compile(r"c(?P<by_handle>x)?\[(?P<bank>[^\]]+)\](?P<index>\[[^\]]*\])")
_BANKS = {"0x0": "kernel parameters", "0x3": "`__constant__` variables"}
_OTHER_BANK = "constants of the compiler"
_MOST_SENTENCES = 2


class ConstantCacheMisses(EliminationOptimizer):
    """Stalls for constants.

    Matched: all stalls of constant operands that missed (``imc_miss``), and all stalls blamed on instructions that load constants.
    Approximation: all of it is taken for avoidable; the first use of a constant on an SM always misses, and a load from shared memory instead
    waits too, if less.

    Source: stall reasons of Nsight Compute; that constant memory serves one address a step is in the CUDA C++ Programming Guide.
    """

    name: ClassVar[str] = "constant_cache_misses"
    title: ClassVar[str] = "Constants at hand"
    category: ClassVar[Category] = Category.CODE
    group: ClassVar[str] = "constants"

    def match(self, subject: Subject) -> EliminationMatch | Silence:
        """Find stalls for constants."""
        if not has_code(subject):
            return self.silent(SilenceStage.NO_CODE, "the code could not be disassembled")
        every = subject.blame.edges
        edges = find_edges(subject, np.ones(subject.row_count, dtype=np.bool_))
        edges = edges[np.isin(every.category[edges], _CATEGORIES)]
        words = _Words(subject)
        regions = build_regions(
            subject, edges, np.ones(len(edges)), write_hint=words.write_hint, write_note=words.write_note
        )
        if not regions:
            return self.silent(SilenceStage.NOT_MATCHED, "nothing waits for a constant")
        misses = float(every.all_samples[edges][every.category[edges] == BlameCategory.CONSTANT_MISS].sum())
        loads = float(every.all_samples[edges].sum()) - misses
        return EliminationMatch(
            regions=regions,
            hint=words.write_remedy(regions[0].hotspots[0].def_row),
            caveats=(
                "The first use of a constant on an SM misses whatever one does; longer-lived blocks pay that less often.",
            ),
            reasons=(f"{misses:,.0f} samples at operands that missed, {loads:,.0f} blamed on loads of constants",),
        )


class _Words:
    """What is said about constants."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject

    def write_note(self, def_row: int, _use_row: int) -> str:
        """Which constants, and how they are addressed."""
        bank = self._find_bank(def_row)
        return f"{bank}, indexed by each thread" if self._is_indexed_by_thread(def_row) else bank

    def write_hint(self, scope: Scope, hotspots: Sequence[Hotspot]) -> str:
        """The constants a region waits for most."""
        rows = list(dict.fromkeys(hotspot.def_row for hotspot in hotspots))[:_MOST_SENTENCES]
        return " ".join(self._write_sentence(scope, row) for row in rows)

    def _write_sentence(self, scope: Scope, row: int) -> str:
        line = describe_line(self._subject, row)
        line = f"{line[0].upper()}{line[1:]}"
        if self._is_indexed_by_thread(row):
            return f"{line} reads {self._find_bank(row)} at an index of each thread's own: every distinct address of a warp takes a step."
        where = describe_scope(self._subject, scope)
        if self._subject.scopes.loop_of(row) < 0:
            return f"{line} uses {self._find_bank(row)} once in {where}: warps wait for the first fetch."
        return f"{line} uses {self._find_bank(row)} in every turn of {where}, and the constant cache does not hold all the loop uses."

    def write_remedy(self, row: int) -> str:
        """What to do about the constant that is waited for most."""
        if self._is_indexed_by_thread(row):
            return (
                "Put a table that threads index differently into shared memory, or read it as global memory through the read-only path "
                "(`const __restrict__`, `__ldg`); constant memory is for values the whole warp reads at once."
            )
        if self._subject.scopes.loop_of(row) < 0:
            return "Let each block do more (a grid-stride loop), so that fewer of them begin with a cold constant cache; pass fewer parameters."
        return "Keep the constants of the hot loop few and close together, or copy them to registers or shared memory before it."

    def _find_constant(self, row: int) -> re.Match[str] | None:
        return _CONSTANT.search(self._subject.text(row))

    def _find_bank(self, row: int) -> str:
        found = self._find_constant(row)
        return _OTHER_BANK if found is None or found["by_handle"] else _BANKS.get(found["bank"], _OTHER_BANK)

    def _is_indexed_by_thread(self, row: int) -> bool:
        """Its index is in a register that every thread has of its own."""
        found = self._find_constant(row)
        registers = () if found is None else parse_operand(found["index"]).groups
        return any(group.kind is ResourceKind.REGISTER for group in registers)


OPTIMIZER = ConstantCacheMisses()
