"""What is stalled on what, as links of the page: between instructions and between lines; and the marks of the analyses."""

import numpy as np

from gpa_lsp.basis.locations import SourceLine
from gpa_lsp.basis.numbers import format_count_of, format_percent
from gpa_lsp.binary.model import name_resource
from gpa_lsp.blame.model import BlameCategory
from gpa_lsp.render.advice_words import describe_cause
from gpa_lsp.render.answer_text import describe_mark
from gpa_lsp.render.html_report.addresses import KernelAddresses
from gpa_lsp.render.html_report.pool import TextPool
from gpa_lsp.report.model import KernelReport
from gpa_lsp.report.pairs import LinePair, build_pair_index

_MOST_EDGES = 2_000
_MOST_LINES = 100
_MOST_PAIRS = 4
_LEAST_RATIO = 0.003
"""Of the kernel's samples; smaller pairs are noise."""


def link_rows(kernel: KernelReport, pool: TextPool) -> list[list[int]]:
    """``[use row, def row, words]``, heaviest first."""
    if kernel.blame is None or not kernel.total_samples:
        return []
    edges = kernel.blame.edges
    heavy = np.flatnonzero(edges.is_moved & (edges.all_samples >= _LEAST_RATIO * kernel.total_samples))
    heavy = heavy[np.argsort(-edges.all_samples[heavy], kind="stable")][:_MOST_EDGES]
    links = []
    for edge in heavy.tolist():
        reason = kernel.instructions.reasons[int(edges.reason[edge])]
        facts = [f"{reason}, {describe_cause(BlameCategory(int(edges.category[edge])))}"]
        if edges.resource[edge] >= 0:
            facts.append(f"in {name_resource(int(edges.resource[edge]))}")
        if edges.distance_cycles[edge] >= 0:
            facts.append(f"{format_count_of(int(edges.distance_cycles[edge]), 'cycle')} apart")
        share = format_percent(float(edges.all_samples[edge]) / kernel.total_samples)
        links.append([int(edges.use_row[edge]), int(edges.def_row[edge]), pool.add(f"{share} {', '.join(facts)}")])
    return links


def link_lines(kernel: KernelReport, addresses: KernelAddresses, pool: TextPool) -> list[list[int]]:
    """``[file, line, 1 where it is stalled and 0 where it is the cause, other file, other line, words]``; the file is -1 for code without lines."""
    index = build_pair_index(kernel)
    if index is None or not kernel.total_samples:
        return []
    least = _LEAST_RATIO * kernel.total_samples
    hot = [row.source_line for row in kernel.lines[:_MOST_LINES] if row.source_line and row.inclusive_samples >= least]
    waits = {place: index.list_waits(place)[:_MOST_PAIRS] for place in hot}
    blamed = [pair.place for pairs in waits.values() for pair in pairs if pair.place and pair.samples >= least]
    links: list[list[int]] = []
    for place in dict.fromkeys((*hot, *blamed)):  # a line that causes stalls may have no samples of its own
        own = _address(place, addresses)
        for is_wait, pairs in ((1, waits.get(place, ())), (0, index.list_waiters(place)[:_MOST_PAIRS])):
            for pair in (one for one in pairs if one.samples >= least):
                words = f"{format_percent(pair.samples / kernel.total_samples)} {_describe_pair(pair)}"
                links.append([*own, is_wait, *_address(pair.place, addresses), pool.add(words)])
    return links


def _describe_pair(pair: LinePair) -> str:
    return f"{pair.reason}, {describe_cause(pair.category)}"


def _address(place: SourceLine | None, addresses: KernelAddresses) -> tuple[int, int]:
    return (-1, 0) if place is None else (addresses.number_file(place.file), place.line)


def link_marks(kernel: KernelReport, addresses: KernelAddresses, pool: TextPool) -> list[list[int]]:
    """``[row or -1, file or -1, line, words]`` for what the analyses say of lines and instructions."""
    if kernel.analyses is None:
        return []
    columns = kernel.instructions
    functions = {name: number for number, name in enumerate(columns.functions)}
    rows = {
        place: row
        for row, place in enumerate(zip(columns.function_index.tolist(), columns.pc_offsets.tolist(), strict=True))
    }
    return [
        [
            rows.get((functions.get(mark.function, -1), mark.pc_offset), -1),
            -1 if mark.file is None else addresses.number_file(mark.file),
            mark.line or 0,
            pool.add(describe_mark(mark)),
        ]
        for answer in kernel.analyses.answers
        for mark in answer.marks
    ]
