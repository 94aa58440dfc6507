"""Per-instruction columns, summed by source line: :class:`LineIndex`, ranking, and marks with the heaviest instruction.

Everything is a column operation: a kernel of 100,000 instructions takes milliseconds. Only the distinct inline chains are walked one by one.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import field
from msgspec.structs import replace

from gpa_lsp.diagnosis.analyses.answers import MOST_MARKS, LineMark
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.foundation.locations import Frame, InlineChain, SourceLine, shorten_paths
from gpa_lsp.foundation.numbers import Quantity
from gpa_lsp.foundation.ownership import choose_frame
from gpa_lsp.foundation.prose import Code, Place, Sentence, list_of, percent, say
from gpa_lsp.foundation.records import ColumnRecord, remembered

Column = npt.NDArray[np.float64] | npt.NDArray[np.int64]  # One number per instruction of the kernel


class LineIndex(ColumnRecord, frozen=True, kw_only=True):
    """The n instructions of a kernel, by the m places they belong to. Every instruction belongs to one."""

    line_of: npt.NDArray[np.int32]  # int32[n] into ``places``
    # function by function, in the order of the line table's chains; None for all instructions of a function that have no line
    places: tuple[SourceLine | None, ...]
    functions: tuple[str, ...]  # of each place the mangled name of the section its first instruction is in
    # file → its shortest name that no other file of the places has; a file that is missing is shown as compiled
    shown_files: Mapping[str, str] = field(default_factory=dict)

    def name_line(self, line: int) -> Sentence:
        """A place as sentences name it: ``line 12 of k.cu``; the function of code without lines."""
        place = self.places[line]
        if place is None:
            return say("{function}", function=Code(text=self.functions[line]))
        return say("{place}", place=self.make_place(place.file, place.line))

    def write_line(self, line: int) -> str:
        """A place as tables have it."""
        return str(self.places[line] or self.functions[line])

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
    """Index a kernel's instructions by the line of the compiled function, through which code of other functions was inlined."""
    return _index(subject, lambda chain: chain[-1])


def _index(subject: Subject, choose: Callable[[InlineChain], Frame]) -> LineIndex:
    """The places of one frame of each chain."""
    numbers: dict[SourceLine | str, int] = {}
    functions: list[str] = []
    parts: list[npt.NDArray[np.int32]] = []
    for function in subject.kernel.functions:
        chains = () if function.lines is None else function.lines.chains
        used = np.zeros(len(chains) + 1, dtype=np.bool_)  # the last entry is that of chain -1: no line
        used[function.chain_index] = True
        chosen = np.flatnonzero(used)
        frames = [choose(chains[chain]) for chain in chosen.tolist() if chain < len(chains)]
        keys = [frame.source_line if frame.line > 0 else function.name for frame in frames]
        keys += [function.name] * (len(chosen) - len(keys))
        table = np.zeros(len(chains) + 1, dtype=np.int32)
        table[chosen] = [numbers.setdefault(key, len(numbers)) for key in keys]
        functions += [function.name] * (len(numbers) - len(functions))
        parts.append(table[function.chain_index])
    places = tuple(key if isinstance(key, SourceLine) else None for key in numbers)
    files = dict.fromkeys(place.file for place in places if place is not None)
    return LineIndex(
        line_of=np.concatenate(parts), places=places, functions=tuple(functions), shown_files=shorten_paths(files)
    )


def rank_lines(sums: npt.NDArray[np.float64], most: int = MOST_MARKS) -> list[int]:
    """The places with the largest sums, largest first; those without any are left out.

    >>> rank_lines(np.array([3.0, 0.0, 7.0, 3.0]), most=2)
    [2, 0]
    """
    order = np.argsort(-sums, kind="stable")[:most]
    return [int(line) for line in order if sums[line] > 0]


def sum_by_place(places: npt.NDArray[Any], column: Column) -> list[tuple[int, float]]:
    """Sum a column by place: the row with most of each place and the sum, most first; places without any are left out.

    ``places``: int[n]; ``column``: number[n], none negative.
    """
    chosen = np.flatnonzero(column > 0)
    if not len(chosen):
        return []
    order = chosen[np.lexsort((chosen, -column[chosen], places[chosen]))]
    _, firsts = np.unique(places[order], return_index=True)
    sums = np.add.reduceat(column[order].astype(np.float64), firsts)
    leading = order[firsts]
    ranks = np.lexsort((leading, -sums))
    return list(zip(leading[ranks].tolist(), sums[ranks].tolist(), strict=True))


def mark_rows(
    subject: Subject,
    column: Column,
    *,
    measure: str,
    quantity: Quantity,
    describe: Callable[[int], Sentence],
    value_of: Callable[[int, float], float] = lambda _row, value: value,
    index: LineIndex | None = None,
    whole: float | None = None,
    least_ratio: float = 0.001,
    most: int = MOST_MARKS,
) -> tuple[LineMark, ...]:
    """Marks on the places with the largest sums of a column, each at the row with most of it, by which it is described and valued.

    Args:
        index: of the places; None for one per source line, and per instruction where there is no line.
        whole: what shares are of; None for the sum of the column.
    """
    whole = float(column.sum()) if whole is None else whole
    marks: list[LineMark] = []
    for row, value in sum_by_place(subject.rows.own_lines if index is None else index.line_of, column)[:most]:
        if value < least_ratio * whole:
            break
        place = subject.rows.place(row) if index is None else index.places[int(index.line_of[row])]
        marks.append(
            LineMark(
                measure=measure,
                value=value_of(row, value),
                quantity=quantity,
                share_ratio=min(1.0, value / whole),
                text=describe(row),
                file=None if place is None else place.file,
                line=None if place is None else place.line,
                function=subject.rows.function_of(row).name,
                pc_offset=int(subject.rows.pc_offsets[row]),
            )
        )
    return tuple(marks)


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
    """Marks on the places of an index, described by the number of each; ``most``: no more than :data:`MOST_MARKS`."""
    return mark_rows(
        subject,
        column,
        measure=measure,
        quantity=quantity,
        describe=lambda row: describe(int(index.line_of[row])),
        index=index,
        least_ratio=0.0,
        most=min(most, MOST_MARKS),
    )


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
    names = [[None if place is None else place.file for place in index.places] for index in (inner, outer)]
    files = {name: number for number, name in enumerate((*names[0], *names[1]))}
    of_inner, of_outer = (np.array([files[name] for name in of_index]) for of_index in names)
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


def sum_waits(subject: Subject, categories: tuple[int, ...] | None = None) -> npt.NDArray[np.float64]:
    """Samples each instruction causes.

    Returns float64[n], samples of the instructions stalled on it, its own at itself included. Without a blame, the samples taken at the instruction
    itself, for any reason. ``categories``: numbers of :class:`~gpa_lsp.diagnosis.blame.model.BlameCategory` that count; None for all.
    """
    if subject.blame is None:
        own: npt.NDArray[np.float64] = subject.rows.all_samples.sum(axis=1).astype(np.float64)
        return own
    edges = subject.edges
    chosen = np.ones(len(edges), dtype=np.bool_) if categories is None else np.isin(edges.category, categories)
    rows = len(subject.rows)
    waits = np.bincount(edges.def_row[chosen], weights=edges.all_samples[chosen], minlength=rows)
    return waits.astype(np.float64)
