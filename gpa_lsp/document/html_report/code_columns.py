"""Code of a kernel for the page: its sources' texts as they were when the profile was taken, its instructions as columns for the page's script."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct, field

from gpa_lsp.document.control_words import describe_controls
from gpa_lsp.document.kernel_view import show_loop_lines
from gpa_lsp.document.places import PlaceNames
from gpa_lsp.foundation.files import read_bounded
from gpa_lsp.foundation.numbers import format_count, format_count_of, format_percent, format_share
from gpa_lsp.foundation.prose import Place
from gpa_lsp.kernel.names import demangle, shorten_name
from gpa_lsp.profile.stall_reasons import describe_stall_reason
from gpa_lsp.report.line_map import split_lines
from gpa_lsp.report.measured_files import Doubt, find_doubt
from gpa_lsp.report.model import InstructionColumns, KernelReport
from gpa_lsp.report.source_paths import SourceLocator, fits_lines

_MAX_SOURCE_BYTES = 16 << 20

ABSENT = "The profile does not hold this file (ncu --import-source yes), and it was not found on the machine that wrote this page."
CHANGED = "The file is not what the kernel was compiled from: its length or its lines differ."
UNVERIFIED = "Unverified: the file has been saved since the kernel was measured, so lines may have moved."
UNWANTED = "This page was written without the texts of sources."
UNREADABLE = "The file could not be read."


class SourceTexts:
    """Reader of source texts: those embedded in a profile first, then files of this machine, where there is a locator."""

    def __init__(self, locator: SourceLocator | None, *, is_wanted: bool = True) -> None:
        self._locator = locator
        self._is_wanted = is_wanted
        self._split: dict[str, Sequence[str]] = {}
        self._read: dict[Path, Sequence[str]] = {}

    def read(self, kernel: KernelReport, file: str) -> tuple[Sequence[str] | None, str]:
        """Lines of a file, or None, and a sentence why they are missing or may have changed; the sentence is empty where they are verified."""
        if not self._is_wanted:
            return None, UNWANTED
        embedded = kernel.embedded_sources.get(file)
        if embedded is not None:
            if embedded not in self._split:
                self._split[embedded] = split_lines(embedded)
            return self._split[embedded], ""
        path = None if self._locator is None else self._locator.locate(file, chains=kernel.instructions.chains)
        if path is None:
            return None, ABSENT
        return self._read_here(path, kernel, file)

    def read_line(self, kernel: KernelReport, file: str | None, line: int | None) -> str:
        """One line without surrounding white space, to be quoted; empty where it is unknown or may have changed."""
        if file is None or not line:
            return ""
        lines, doubt = self.read(kernel, file)
        return lines[line - 1].strip() if lines is not None and not doubt and 0 < line <= len(lines) else ""

    def _holds(self, kernel: KernelReport, file: str, lines: Sequence[str]) -> bool:
        """Whether a file whose size was not recorded can be what was compiled."""
        return self._locator is None or self._locator.may_hold(file, lines, kernel.instructions.chains)

    def _read_here(self, path: Path, kernel: KernelReport, file: str) -> tuple[Sequence[str] | None, str]:
        """Lines of a local file: None where its length differs, doubtful where it was saved since the measurement."""
        try:
            found = path.stat()
            if found.st_size > _MAX_SOURCE_BYTES:
                return None, UNREADABLE
            doubt = find_doubt(found, (kernel.measured_unix_s or 0) * 1_000_000_000, kernel.source_sizes.get(file))
            if doubt is Doubt.OTHER_LENGTH:
                return None, CHANGED
            lines = self._read.get(path)
            if lines is None:
                lines = self._read[path] = split_lines(read_bounded(path, _MAX_SOURCE_BYTES).decode("utf-8", "replace"))
        except OSError:
            return None, UNREADABLE
        if doubt is None:
            is_it = file in kernel.source_sizes or self._holds(kernel, file, lines)
            return (lines, "") if is_it else (None, CHANGED)
        measured = [row.line for row in kernel.lines if row.file == file and row.line]
        return (lines, UNVERIFIED) if fits_lines(lines, measured) else (None, CHANGED)


_LEAST_REASON_RATIO = 0.15
_NO_TEXT = "(not disassembled)"


class KernelAddresses(Struct, kw_only=True):
    """URL fragments of one kernel's places. Files are numbered as they are met, so that no path stands in an address."""

    kernel: int  # number of the kernel in the report
    files: dict[str, int] = field(default_factory=dict)  # path as compiled → its number
    coded_files: frozenset[str] = frozenset()  # those the page can show

    @property
    def whole(self) -> str:
        """Fragment of the kernel's section."""
        return f"#k{self.kernel}"

    def part(self, name: str) -> str:
        """Fragment of a part of the section: ``advice``, ``code``.

        >>> KernelAddresses(kernel=3).part("advice")
        '#k3/advice'
        """
        return f"{self.whole}/{name}"

    def number_file(self, file: str) -> int:
        """Number of a file; new files get the next one."""
        return self.files.setdefault(file, len(self.files))

    def line(self, file: str | None, line: int | None) -> str:
        """Fragment of a source line; empty for code without one.

        >>> KernelAddresses(kernel=3).line("k.cu", 8)
        '#k3/line/0/8'
        """
        return f"{self.whole}/line/{self.number_file(file)}/{line}" if file is not None and line else ""

    def place(self, place: Place) -> str:
        """Fragment of a line named by a sentence; empty for a file without code of this kernel."""
        return self.line(place.file, place.line) if place.file in self.coded_files else ""

    def link(self, at: Place | int) -> str:
        """Fragment of a line, or of an instruction by its row."""
        return self.row(at) if isinstance(at, int) else self.place(at)

    def row(self, row: int) -> str:
        """Fragment of an instruction, by its row in the report's columns."""
        return f"{self.whole}/row/{row}"


class TextPool:
    """Distinct texts in the order they were met; the first is the empty one.

    >>> pool = TextPool()
    >>> pool.add_all(["a", "", "a"]), pool.texts
    ([1, 0, 1], ['', 'a'])
    """

    def __init__(self) -> None:
        self.texts: list[str] = [""]
        self._numbers: dict[str, int] = {"": 0}

    def add(self, text: str) -> int:
        """The number of a text."""
        number = self._numbers.setdefault(text, len(self.texts))
        if number == len(self.texts):
            self.texts.append(text)
        return number

    def add_all(self, texts: Iterable[str]) -> list[int]:
        """The numbers of texts."""
        return [self.add(text) for text in texts]


def build_code(kernel: KernelReport, addresses: KernelAddresses, pool: TextPool, most_rows: int) -> dict[str, Any]:
    """Rows of the SASS listing, headings between them, and inline chains that tie them to lines."""
    columns = kernel.instructions
    samples = columns.all_samples.sum(axis=1)
    rows = choose_rows(samples, most_rows)
    total = kernel.total_samples or 1
    shares = {count: format_percent(count / total) if count else "" for count in set(samples[rows].tolist())}
    controls = describe_controls(columns)
    reasons = name_row_reasons(columns)
    kept = rows.tolist()
    return {
        "rows": None if len(rows) == len(columns) else kept,
        "offset": [f"{offset:x}" for offset in columns.pc_offsets[rows].tolist()],
        "text": pool.add_all(columns.texts[row] or _NO_TEXT for row in kept),
        "samples": samples[rows].tolist(),
        "share": pool.add_all(shares[count] for count in samples[rows].tolist()),
        "executed": pool.add_all(
            format_count(count) if count >= 0 else "" for count in columns.executions[rows].tolist()
        ),
        "reasons": pool.add_all(reasons[row] for row in kept),
        "control": pool.add_all(controls[row] for row in kept),
        "depth": columns.loop_depths[rows].tolist(),
        "chain": columns.chain_index[rows].tolist(),
        "function": columns.function_index[rows].tolist(),
        "functions": list(columns.functions),
        "chains": _flatten_chains(columns, addresses, rows),
        "heads": [*_head_functions(kernel), *_head_loops(kernel)],
        "leftOut": describe_left_out(len(columns) - len(rows)),
    }


def describe_left_out(count: int) -> str:
    """Number of instructions left out of the page, and the command that prints them; empty for none.

    >>> describe_left_out(12000)
    '12,000 instructions with the fewest samples are not shown; gpa-lsp report sass prints all of them.'
    """
    if not count:
        return ""
    return f"{format_count_of(count, 'instruction')} with the fewest samples are not shown; gpa-lsp report sass prints all of them."


def name_row_reasons(columns: InstructionColumns) -> list[str]:
    """Each row's one or two stall reasons with most samples, ``long_scoreboard 81 %``; empty without stalls.

    The percentages are of the row's own samples.
    """
    stalls = np.flatnonzero([describe_stall_reason(reason).is_stall for reason in columns.reasons])
    totals = columns.all_samples.sum(axis=1)
    named = [""] * len(columns)
    if not len(stalls):
        return named
    counts: npt.NDArray[np.int64] = columns.all_samples[:, stalls]
    order = np.argsort(-counts, axis=1, kind="stable")[:, :2]
    known: dict[tuple[tuple[int, float], ...], str] = {}
    for row in np.flatnonzero(counts.sum(axis=1)).tolist():
        whole = int(totals[row])
        parts = [(int(stalls[one]), int(counts[row, one]) / whole) for one in order[row].tolist()]
        key = tuple(
            part for place, part in enumerate(parts) if part[1] > 0 and (place == 0 or part[1] >= _LEAST_REASON_RATIO)
        )
        if key not in known:
            known[key] = ", ".join(f"{columns.reasons[reason]} {format_percent(ratio)}" for reason, ratio in key)
        named[row] = known[key]
    return named


def _flatten_chains(
    columns: InstructionColumns, addresses: KernelAddresses, rows: npt.NDArray[np.int64]
) -> list[list[int]]:
    """Each inline chain as ``[file, line, file, line, …]``, innermost first; empty for chains of rows that are left out."""
    used = set(columns.chain_index[rows].tolist())
    return [
        [number for frame in chain for number in (addresses.number_file(frame.file), frame.line)]
        if position in used
        else []
        for position, chain in enumerate(columns.chains)
    ]


def _head_functions(kernel: KernelReport) -> list[list[Any]]:
    """``[row, "function", text]`` where a function starts."""
    places = _index_rows(kernel.instructions)
    heads = []
    for function in kernel.functions:
        row = places.get((function.section or function.mangled_name, function.start_offset))
        if row is None:
            row = next((at for (name, _), at in places.items() if name == function.section), None)
        if row is None:
            continue
        facts = [shorten_name(demangle(function.name), 100), function.role.words]
        if function.samples:
            facts.append(format_share(kernel.share_of(function.samples)))
        if function.instruction_count:
            facts.append(format_count_of(function.instruction_count, "instruction"))
        if function.registers is not None:
            facts.append(format_count_of(function.registers, "register"))
        heads.append([row, "function", " · ".join(facts)])
    return heads


def _head_loops(kernel: KernelReport) -> list[list[Any]]:
    """``[row, "loop", text]`` where a loop starts, outer loops first."""
    places = _index_rows(kernel.instructions)
    names = PlaceNames()
    heads = []
    for loop in sorted(kernel.loops, key=lambda one: one.depth):
        row = places.get((loop.function, loop.header_pc_offset))
        if row is None:
            continue
        facts = [f"loop, depth {loop.depth}", show_loop_lines(kernel, loop, names).rpartition("/")[2]]
        if loop.samples:
            facts.append(format_share(kernel.share_of(loop.samples)))
        heads.append([row, "loop", " · ".join(fact for fact in facts if fact)])
    return heads


def _index_rows(columns: InstructionColumns) -> dict[tuple[str, int], int]:
    """(section, offset) → row."""
    functions = [columns.functions[number] for number in columns.function_index.tolist()]
    return {place: row for row, place in enumerate(zip(functions, columns.pc_offsets.tolist(), strict=True))}


BLOCK_ROWS = 64  # Rows that are kept or left out together, so that what is shown can be read

MOST_ROWS = 20_000  # Of one kernel

MOST_ROWS_OF_PAGE = 200_000  # Of all kernels: about 5 MB


def choose_rows(samples: npt.NDArray[np.int64], most: int) -> npt.NDArray[np.int64]:
    """The rows to show of *samples*, int64[n]: all of them, or the blocks with most samples; of blocks with equally many the first.

    int64[m], ascending, m at most *most* rounded up to whole blocks.

    >>> choose_rows(np.array([0] * 64 + [9] + [0] * 63 + [1] * 64), 128).tolist() == list(range(64, 192))
    True
    """
    count = len(samples)
    if count <= most:
        return np.arange(count, dtype=np.int64)
    blocks = -(-count // BLOCK_ROWS)
    sums = np.bincount(np.arange(count) // BLOCK_ROWS, weights=samples, minlength=blocks)
    kept = np.sort(np.argsort(-sums, kind="stable")[: -(-most // BLOCK_ROWS)])
    rows = (kept[:, None] * BLOCK_ROWS + np.arange(BLOCK_ROWS)).reshape(-1)
    return rows[rows < count].astype(np.int64)


def share_rows(counts: list[int], most: int = MOST_ROWS_OF_PAGE) -> list[int]:
    """Numbers of rows shown per kernel within the page's limit: small kernels whole, large ones equally many.

    >>> share_rows([100, 5000, 9000], most=6100)
    [100, 3000, 3000]
    """
    limits = [0] * len(counts)
    left, waiting = most, len(counts)
    for number in sorted(range(len(counts)), key=lambda one: counts[one]):
        fair = max(BLOCK_ROWS, left // waiting)
        limits[number] = min(counts[number], fair, MOST_ROWS)
        left = max(0, left - limits[number])
        waiting -= 1
    return limits
