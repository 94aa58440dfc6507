"""The samples of a kernel by line and by what Starlight's Table 1 would count them as. Every sample counts once."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gpa_lsp.code.binary.opcodes import describe_mnemonic
from gpa_lsp.diagnosis.analyses.facts import KernelFacts
from gpa_lsp.diagnosis.analyses.line_sums import index_lines
from gpa_lsp.diagnosis.analyses.starlight.suggestions import Bottleneck, Part, WaiterKind, classify_waiter, find_target
from gpa_lsp.foundation.locations import SourceLine
from gpa_lsp.foundation.ownership import choose_frame
from gpa_lsp.foundation.prose import Sentence, say
from gpa_lsp.foundation.records import ColumnRecord

_LONGEST_NAME = 40  # Characters of a mangled name that are written

_TARGETS: tuple[Bottleneck | Part, ...] = (*Part, *Bottleneck)
_KINDS = tuple(WaiterKind)


class LineSamples(Struct, frozen=True, kw_only=True):
    """The samples of one source line, or of one instruction that has none."""

    line: SourceLine | None  # None for an instruction without a line
    place: Sentence  # the same in words; for an instruction without a line its offset, and its function where that is not the kernel
    function: str  # mangled name of the section of its instruction with most samples
    pc_offset: int  # that instruction, bytes from the section's start
    operations: int  # N_op
    stalls: dict[Bottleneck, int]  # N by row of Table 1; rows without a sample are missing
    unattributed: int  # stalls that no row is about

    @property
    def all_stalls(self) -> int:
        """N_stall."""
        return self.unattributed + sum(self.stalls.values())

    @property
    def samples(self) -> int:
        """N_op + N_stall."""
        return self.operations + self.all_stalls


class LineCounts(ColumnRecord, frozen=True, kw_only=True):
    """The samples of a kernel, by line and target; m lines."""

    counts: npt.NDArray[np.int64]  # int64[m, t], samples by line and target (parts, then the rows of Table 1)
    hottest: npt.NDArray[np.int64]  # int64[m], the row of each line's instruction with most samples
    lines: tuple[SourceLine | None, ...]  # of each row in ``hottest``; None for an instruction without one
    _facts: KernelFacts

    def __len__(self) -> int:
        return len(self.lines)

    @property
    def total(self) -> int:
        """T: all samples of the kernel."""
        return int(self.counts.sum())

    def count(self, target: Bottleneck | Part) -> int:
        """Samples of all lines that count as something."""
        return int(self.counts[:, _TARGETS.index(target)].sum())

    def describe(self, number: int) -> LineSamples:
        """One line."""
        by_target = dict(zip(_TARGETS, self.counts[number].tolist(), strict=True))
        row = int(self.hottest[number])
        function = self._facts.rows.function_of(row)
        pc_offset = int(function.pc_offsets[self._facts.rows.index_of(row)])
        is_own = function is self._facts.kernel.functions[0]
        return LineSamples(
            line=self.lines[number],
            place=self._name_place(self.lines[number], pc_offset, "" if is_own else function.name),
            function=function.name,
            pc_offset=pc_offset,
            operations=by_target[Part.OPERATION],
            stalls={one: by_target[one] for one in Bottleneck if by_target[one]},
            unattributed=by_target[Part.NONE],
        )

    def _name_place(self, line: SourceLine | None, pc_offset: int, function: str) -> Sentence:
        if line is not None:
            return say("{place}", place=index_lines(self._facts).make_place(line.file, line.line))
        of = f" of {function[:_LONGEST_NAME]}" if function else ""
        return say("instruction {offset}{of}", offset=f"{pc_offset:#x}", of=of)

    def find_heavy(self, bottleneck: Bottleneck, least: float) -> Iterator[LineSamples]:
        """Lines with at least so many stalls of one row of Table 1."""
        for number in np.flatnonzero(self.counts[:, _TARGETS.index(bottleneck)] >= max(least, 1)).tolist():
            yield self.describe(number)


def count_lines(facts: KernelFacts) -> LineCounts:
    """The samples of a kernel by line (by instruction where there is no line); all of them are there."""
    samples = facts.rows.all_samples
    rows = np.flatnonzero(samples.sum(axis=1)) if samples.size else np.zeros(0, dtype=np.int64)
    names, places = _find_lines(facts, rows)
    keys, first, group = np.unique(places, return_index=True, return_inverse=True)
    by_row = _count_targets(facts, rows)
    counts = np.zeros((len(keys), len(_TARGETS)), dtype=np.int64)
    np.add.at(counts, group, by_row)
    # Ascending samples within each line, so that the last one written is the hottest.
    hottest = rows[first]
    order = np.argsort(by_row.sum(axis=1), kind="stable")
    hottest[group[order]] = rows[order]
    lines = tuple(names[key] if key < len(names) else None for key in keys.tolist())
    return LineCounts(counts=counts, hottest=hottest, lines=lines, _facts=facts)


def _count_targets(facts: KernelFacts, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """int64[m, t]: samples of each row by target."""
    counted = np.zeros((len(rows), len(_TARGETS)), dtype=np.int64)
    if not len(rows):
        return counted
    unknown = _KINDS.index(WaiterKind.UNKNOWN)
    kinds = facts.rows.spread_by_mnemonic(_number_kind, unknown)[rows]
    taken = facts.rows.all_samples[rows]
    for number, kind in enumerate(_KINDS):
        at = kinds == number
        for column, reason in enumerate(facts.kernel.reasons):
            counted[at, _TARGETS.index(find_target(reason, kind))] += taken[at, column]
    return counted


def _number_kind(mnemonic: str) -> int:
    return _KINDS.index(classify_waiter(describe_mnemonic(mnemonic)))


def _find_lines(
    facts: KernelFacts, rows: npt.NDArray[np.int64]
) -> tuple[tuple[SourceLine, ...], npt.NDArray[np.int64]]:
    """The kernel's lines, and int64[m]: for each row the number of its line (innermost frame), or a number of its own beyond them."""
    numbers: dict[SourceLine, int] = {}
    lines = [choose_frame(chain).source_line for chain in facts.rows.chains]
    by_chain = [numbers.setdefault(line, len(numbers)) if line.line > 0 else -1 for line in lines]
    # The last entry stands for "no line", which index -1 finds.
    found = np.array([*by_chain, -1], dtype=np.int64)[facts.rows.chain_index[rows]]
    return tuple(numbers), np.where(found < 0, len(numbers) + rows, found)
