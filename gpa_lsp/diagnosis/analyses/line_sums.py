"""Per-instruction columns, summed by source line: :class:`LineIndex`, ranking, and marks with the heaviest instruction.

Everything is a column operation: a kernel of 100,000 instructions takes milliseconds. Only the distinct inline chains are walked one by one.
"""

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt
from msgspec import Struct, field
from msgspec.structs import replace

from gpa_lsp.diagnosis.analyses.answers import MOST_MARKS, LineMark
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.foundation.locations import Frame, InlineChain, shorten_paths
from gpa_lsp.foundation.numbers import Quantity
from gpa_lsp.foundation.ownership import choose_frame
from gpa_lsp.foundation.prose import Code, Place, Sentence, list_of, percent, say
from gpa_lsp.foundation.records import ColumnRecord, remembered

Column = npt.NDArray[np.float64] | npt.NDArray[np.int64]  # One number per instruction of the kernel


class LinePlace(Struct, frozen=True, kw_only=True):
    """A source line, or all instructions of a function that have none."""

    file: str | None  # as compiled; None for code without lines
    line: int | None  # 1-based; None for code without lines
    function: str  # mangled name of the section its first instruction is in

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.file is not None else self.function


class LineIndex(ColumnRecord, frozen=True, kw_only=True):
    """The n instructions of a kernel, by the m places they belong to. Every instruction belongs to one."""

    line_of: npt.NDArray[np.int32]  # int32[n] into ``places``
    places: tuple[LinePlace, ...]  # function by function, in the order of the line table's chains
    # file → its shortest name that no other file of the places has; a file that is missing is shown as compiled
    shown_files: Mapping[str, str] = field(default_factory=dict)

    def name_line(self, line: int) -> Sentence:
        """A place as sentences name it: ``line 12 of k.cu``; the function of code without lines."""
        place = self.places[line]
        if place.file is None or place.line is None:
            return say("{function}", function=Code(text=place.function))
        return say("{place}", place=self.make_place(place.file, place.line))

    def make_place(self, file: str, line: int) -> Place:
        """A source line, with its file as sentences name it."""
        return Place(file=file, line=line, shown_file=self.shown_files.get(file, file))

    def list_heaviest(self, sums: npt.NDArray[np.float64], most: int) -> Sentence:
        """The places with the largest sums and their shares: ``line 12 of k.cu (60 %) and line 9 of k.cu (30 %)``."""
        total = max(float(sums.sum()), 1.0)
        return list_of(
            say("{line} ({share})", line=self.name_line(line), share=percent(float(sums[line]) / total))
            for line in rank_lines(sums, most)
        )

    def sum_by_line(self, column: Column) -> npt.NDArray[np.float64]:
        """float64[m], the sum of a column by place; whole numbers below 2**53 add up exactly."""
        sums: npt.NDArray[np.float64] = np.bincount(self.line_of, weights=column, minlength=len(self.places)).astype(
            float
        )
        return sums

    def find_heaviest(self, column: Column) -> npt.NDArray[np.int64]:
        """int64[m], the instruction with the largest value of each place, the first of equals; -1 where no value is above zero."""
        rows = np.flatnonzero(column > 0)
        order = rows[np.lexsort((rows, -column[rows], self.line_of[rows]))]
        lines, firsts = np.unique(self.line_of[order], return_index=True)
        heaviest = np.full(len(self.places), -1, dtype=np.int64)
        heaviest[lines] = order[firsts]
        return heaviest


@remembered
def index_lines(subject: Subject) -> LineIndex:
    """The places of a kernel's instructions: the line each was written on or, where that is a library's, the user's line it was inlined into.

    A row whose line the compiler left out (no chain, or line 0) belongs to its function.
    """
    return _index(subject, choose_frame)


@remembered
def index_outermost_lines(subject: Subject) -> LineIndex:
    """The same by the line of the function that was compiled, where the kernel's own code asked for what was inlined."""
    return _index(subject, lambda chain: chain[-1])


def _index(subject: Subject, choose: Callable[[InlineChain], Frame]) -> LineIndex:
    """The places of one frame of each chain."""
    numbers: dict[tuple[str | None, int | str], int] = {}
    functions: list[str] = []
    parts: list[npt.NDArray[np.int32]] = []
    for function in subject.kernel.functions:
        chains = () if function.lines is None else function.lines.chains
        nowhere = (None, function.name)
        used = np.zeros(len(chains) + 1, dtype=np.bool_)  # the last entry is that of chain -1: no line
        used[function.chain_index] = True
        chosen = np.flatnonzero(used)
        frames = [choose(chains[chain]) for chain in chosen.tolist() if chain < len(chains)]
        keys = [(frame.file, frame.line) if frame.line > 0 else nowhere for frame in frames]
        keys += [nowhere] * (len(chosen) - len(keys))
        table = np.zeros(len(chains) + 1, dtype=np.int32)
        table[chosen] = [numbers.setdefault(key, len(numbers)) for key in keys]
        functions += [function.name] * (len(numbers) - len(functions))
        parts.append(table[function.chain_index])
    places = tuple(
        LinePlace(file=file, line=line if isinstance(line, int) else None, function=function)
        for (file, line), function in zip(numbers, functions, strict=True)
    )
    files = dict.fromkeys(place.file for place in places if place.file is not None)
    return LineIndex(line_of=np.concatenate(parts), places=places, shown_files=shorten_paths(files))


def rank_lines(sums: npt.NDArray[np.float64], most: int = MOST_MARKS) -> list[int]:
    """The places with the largest sums, largest first; those without any are left out.

    >>> rank_lines(np.array([3.0, 0.0, 7.0, 3.0]), most=2)
    [2, 0]
    """
    order = np.argsort(-sums, kind="stable")[:most]
    return [int(line) for line in order if sums[line] > 0]


def mark_lines(
    subject: Subject,
    index: LineIndex,
    column: Column,
    *,
    measure: str,
    quantity: Quantity,
    describe: Callable[[int], Sentence],
    most: int = MOST_MARKS,
) -> tuple[LineMark, ...]:
    """Marks on the places with the largest sums of a column.

    ``most``: marks at most; never more than :data:`MOST_MARKS`.
    """
    sums = index.sum_by_line(column)
    total = float(sums.sum())
    heaviest = index.find_heaviest(column)
    marks = []
    for line in rank_lines(sums, min(most, MOST_MARKS)):
        row, place = int(heaviest[line]), index.places[line]
        function = subject.rows.function_of(row)
        marks.append(
            LineMark(
                measure=measure,
                value=float(sums[line]),
                quantity=quantity,
                share_ratio=float(sums[line]) / total,
                text=describe(line),
                file=place.file,
                line=place.line,
                function=function.name,
                pc_offset=int(function.pc_offsets[subject.rows.index_of(row)]),
            )
        )
    return tuple(marks)


def mark_with_callers(
    subject: Subject,
    inner: LineIndex,
    column: Column,
    *,
    measure: str,
    describe: Callable[[int], Sentence],
    most: int = MOST_MARKS,
) -> tuple[LineMark, ...]:
    """Marks on innermost lines with a count, and on the lines of the compiled function through which code of other files was inlined.

    A reader of the kernel's own file sees there what happens in headers and libraries. The measure of these is told apart, because the same
    instructions count in both.

    Args:
        inner: innermost lines.
        most: marks of each kind at most.
    """
    outer, quantity = index_outermost_lines(subject), Quantity.COUNT
    marks = mark_lines(subject, inner, column, measure=measure, quantity=quantity, describe=describe, most=most)
    files = {place.file: number for number, place in enumerate((*inner.places, *outer.places))}
    of_inner, of_outer = (np.array([files[place.file] for place in index.places]) for index in (inner, outer))
    part = np.where(of_inner[inner.line_of] != of_outer[outer.line_of], column, 0)
    total, partial = float(np.sum(column)), float(np.sum(part))
    if partial == 0:
        return marks
    heaviest = outer.find_heaviest(part)
    callers = mark_lines(
        subject,
        outer,
        part,
        measure=f"{measure}, in inlined code",
        quantity=quantity,
        describe=lambda line: say("most of it at {line}", line=inner.name_line(int(inner.line_of[heaviest[line]]))),
        most=most,
    )
    return (*marks, *(replace(one, share_ratio=(one.share_ratio or 0.0) * partial / total) for one in callers))


def count_waits(subject: Subject, categories: tuple[int, ...] | None = None) -> npt.NDArray[np.float64]:
    """Samples each instruction causes.

    Returns float64[n], samples of the instructions stalled on it, its own at itself included. Without a blame, the samples taken at the instruction
    itself, whatever their reason. ``categories``: numbers of :class:`~gpa_lsp.diagnosis.blame.model.BlameCategory` that count; None for all.
    """
    if subject.blame is None:
        own: npt.NDArray[np.float64] = subject.rows.all_samples.sum(axis=1).astype(np.float64)
        return own
    edges = subject.edges
    chosen = np.ones(len(edges), dtype=np.bool_) if categories is None else np.isin(edges.category, categories)
    rows = len(subject.rows)
    waits = np.bincount(edges.def_row[chosen], weights=edges.all_samples[chosen], minlength=rows)
    return waits.astype(np.float64)
