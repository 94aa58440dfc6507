"""The source lines of a kernel as columns for the page's script: lines with code, and a few around them."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from gpa_lsp.basis.locations import SourceLine, shorten_paths
from gpa_lsp.basis.numbers import format_count_of, format_percent, format_share
from gpa_lsp.render.html_report.addresses import KernelAddresses
from gpa_lsp.render.html_report.pool import TextPool
from gpa_lsp.render.html_report.source_texts import SourceTexts
from gpa_lsp.render.kernel_tables import name_reasons
from gpa_lsp.report.model import KernelReport, LineRow

CONTEXT_LINES = 4
"""Shown before and after a line with code."""

MOST_LINES = 4_000
"""With code, of one kernel; those with most samples are kept."""

_LONGEST_LINE = 400
"""Characters; what is longer was written by a program."""

_CALLED_SHOWN_FROM = 0.005


def build_sources(
    kernel: KernelReport, addresses: KernelAddresses, pool: TextPool, texts: SourceTexts
) -> list[dict[str, Any]]:
    """One entry per file, the one with most samples of its own first.

    Args:
        kernel: the kernel.
        addresses: numbers its files.
        pool: of texts.
        texts: reads sources.
    """
    columns = _SourceColumns(kernel, addresses, pool, texts)
    return columns.build()


class _SourceColumns:
    def __init__(self, kernel: KernelReport, addresses: KernelAddresses, pool: TextPool, texts: SourceTexts) -> None:
        self._kernel = kernel
        self._addresses = addresses
        self._pool = pool
        self._texts = texts
        self._rows = {place: row for row in kernel.lines if (place := row.source_line) is not None and place.line}

    def build(self) -> list[dict[str, Any]]:
        """One entry per file."""
        frames = {frame for chain in self._kernel.instructions.chains for frame in chain if frame.line}
        coded = {frame.source_line for frame in frames}
        every = sorted(coded | self._rows.keys(), key=self._rank)
        by_file: dict[str, list[int]] = {}
        for place in every[:MOST_LINES]:
            by_file.setdefault(place.file, []).append(place.line)
        names = shorten_paths(by_file)
        left_out = len(every) - len(every[:MOST_LINES])
        own = Counter[str]()
        for place, row in self._rows.items():
            own[place.file] += row.samples
        ordered = sorted(by_file, key=lambda file: -own[file])
        files = [self._build_file(file, sorted(by_file[file])) for file in ordered]
        return [{**file, "name": names[file["path"]], "leftOut": _describe_left_out(left_out)} for file in files]

    def _rank(self, place: SourceLine) -> tuple[float, str, int]:
        row = self._rows.get(place)
        weight = row.inclusive_samples + row.called_samples if row is not None else 0.0
        return (-weight, place.file, place.line)

    def _build_file(self, file: str, coded: Sequence[int]) -> dict[str, Any]:
        kernel, pool = self._kernel, self._pool
        known, why = self._texts.read(kernel, file)
        lines = list(coded) if known is None else _add_context(coded, len(known))
        found = [self._rows.get(SourceLine(file=file, line=line)) for line in lines]
        own = sum(row.samples for row in found if row is not None)
        has_code = set(coded)
        return {
            "number": self._addresses.number_file(file),
            "path": file,
            "share": format_percent(own / kernel.total_samples) if kernel.total_samples else "",
            "why": why,
            "line": lines,
            "text": None if known is None else pool.add_all(_read(known, line) for line in lines),
            "hasCode": [int(line in has_code) for line in lines],
            "samples": [0 if row is None else row.inclusive_samples for row in found],
            "shares": pool.add_all("" if row is None else _describe_share(kernel, row) for row in found),
            "own": pool.add_all("" if row is None else _describe_own(kernel, row) for row in found),
            "reasons": pool.add_all("" if row is None else name_reasons(row.inclusive_by_reason, 2) for row in found),
        }


def _add_context(coded: Sequence[int], count: int) -> list[int]:
    """Lines with code and those around them, ascending, none beyond the end of the text.

    >>> _add_context([6], 8)
    [2, 3, 4, 5, 6, 7, 8]
    """
    near = {other for line in coded for other in range(line - CONTEXT_LINES, line + CONTEXT_LINES + 1)}
    return sorted(line for line in near if 0 < line <= count) or list(coded)


def _describe_share(kernel: KernelReport, row: LineRow) -> str:
    return format_share(kernel.share_of(row.inclusive_samples)) if row.inclusive_samples else ""


def _describe_own(kernel: KernelReport, row: LineRow) -> str:
    """What of a line's samples is its own, and what the functions called from it add."""
    total = kernel.total_samples or 1
    parts = (
        [] if row.samples == row.inclusive_samples else [f"{format_percent(row.samples / total)} in the line itself"]
    )
    if row.called_samples / total >= _CALLED_SHOWN_FROM:
        parts.append(f"about {format_percent(row.called_samples / total)} more in functions it calls")
    return ", ".join(parts)


def _describe_left_out(count: int) -> str:
    return f"{format_count_of(count, 'line')} with the fewest samples are not shown, over all files." if count else ""


def _read(known: Sequence[str], line: int) -> str:
    text = known[line - 1] if line <= len(known) else ""
    return text if len(text) <= _LONGEST_LINE else text[: _LONGEST_LINE - 1] + "…"
