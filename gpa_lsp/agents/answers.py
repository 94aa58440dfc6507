"""Answers for agents: sentences with units, sample counts and origin, of at most two kilobytes, and how to ask for the rest; of reports
below a folder, each read when it is asked for.
"""

import hashlib
import json
import os
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from gpa_lsp.diagnosis.advice.model import UNPRICED, Advice
from gpa_lsp.document.advice_screen import build_rows
from gpa_lsp.document.advice_view import build_piece
from gpa_lsp.document.advice_words import (
    describe_cause,
    describe_gain,
    describe_limit,
    describe_limit_briefly,
    describe_matched,
    describe_suggestion,
    find_first_suggestion,
)
from gpa_lsp.document.blocks import Block
from gpa_lsp.document.comparison_view import build_comparison
from gpa_lsp.document.places import InstructionPlaces, PlaceNames
from gpa_lsp.document.prediction_view import build_prediction
from gpa_lsp.document.sampling_words import describe_time, label_samples
from gpa_lsp.document.terminal import write_plain
from gpa_lsp.execution.compiler.model import CompiledUnit
from gpa_lsp.execution.prediction.predict import predict_code
from gpa_lsp.foundation.errors import InputError, ProblemSeverity
from gpa_lsp.foundation.locations import SourceLine, is_path_end, write_place
from gpa_lsp.foundation.numbers import format_count, format_count_of, format_duration_ns, format_percent
from gpa_lsp.foundation.visible_text import make_one_line
from gpa_lsp.kernel.names import list_named, shorten_name
from gpa_lsp.profile.read import list_suffixes
from gpa_lsp.report.compare import compare_reports
from gpa_lsp.report.model import KernelReport, Report
from gpa_lsp.report.pairs import LinePair, build_pair_index
from gpa_lsp.report.pipeline import load
from gpa_lsp.report.source_paths import SourceLocator

_MOST_LOOKED_AT = 20_000  # Folder entries: a search ends soon in any folder

_MOST_REPORTS = 50
_MOST_KEPT = 4  # Reports in memory; others are read again, which the user's cache makes quick

_ID_CHARS = 6


class ShelvedKernel(Struct, frozen=True, kw_only=True):
    """A kernel of a report."""

    id: str  # for further questions; the same as long as the report lies where it lies
    path: Path  # of the report
    report: Report  # it is in
    kernel: KernelReport  # itself


class Shelf:
    """Reports and sources below one folder. Nothing outside of it is read, links included.

    Args:
        folder: where the agent works.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = Path(os.path.realpath(folder))
        self.locator = SourceLocator([self.folder], [], max_files=_MOST_LOOKED_AT)
        self._read: OrderedDict[tuple[Path, int, int], Report] = OrderedDict()

    def find_file(self, name: str) -> Path:
        """A file or folder that somebody named.

        Raises:
            InputError: it is not below the folder, or not there.
        """
        if "\0" in name:
            raise InputError("a name with a null character names no file", remedy="name a file below the folder")
        path = Path(os.path.realpath(self.folder / name))
        if not path.is_relative_to(self.folder):
            raise InputError(f"{name} is not below {self.folder.name}/", remedy="name a file below the folder")
        if not os.path.exists(path):  # noqa: PTH110 - unlike a path's own question it takes names that no file can have
            raise InputError(f"{name} is not there", remedy="list_kernels lists the reports there are")
        return path

    def show(self, path: Path) -> str:
        """A path as an agent names it."""
        return path.relative_to(self.folder).as_posix() if path.is_relative_to(self.folder) else path.name

    def list_reports(self, inside: str | None = None) -> list[Path]:
        """Reports below the folder or one of its own, the newest first; at most fifty.

        Raises:
            InputError: there is no such file or folder here.
        """
        start = self.folder if inside is None else self.find_file(inside)
        if start.is_file():
            return [start]
        found = sorted(self._search(start), key=lambda one: (-one[1], one[0]))
        return [path for path, _ in found[:_MOST_REPORTS]]

    def read(self, path: Path) -> Report:
        """A report, analysed."""
        status = path.stat()
        key = path, status.st_size, status.st_mtime_ns
        if key not in self._read:
            self._read[key] = load([path], locator=self.locator)
            while len(self._read) > _MOST_KEPT:
                self._read.popitem(last=False)
        self._read.move_to_end(key)
        return self._read[key]

    def expect(self, path: Path) -> Report:
        """A report with kernels.

        Raises:
            InputError: it cannot be read, or has none.
        """
        report = self.read(path)
        if not report.kernels:
            why = next((one for one in report.problems if one.severity is ProblemSeverity.ERROR), None)
            message = "it has no kernel" if why is None else why.message
            raise InputError(f"{self.show(path)}: {message}", remedy=why.remedy if why is not None else None)
        return report

    def list_kernels(self, path: Path) -> Iterator[ShelvedKernel]:
        """List the kernels of a report, the one that took longest first."""
        report = self.read(path)
        for kernel in report.kernels:
            name = f"{self.show(path)}\0{kernel.mangled_name}\0{kernel.device.name}"
            digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:_ID_CHARS]
            yield ShelvedKernel(id=f"k{digest}", path=path, report=report, kernel=kernel)

    def find_kernel(self, wanted: str | None, inside: str | None = None) -> ShelvedKernel:
        """The kernel of an id, or of a name: then of the newest report that has one, the one that took longest.

        Args:
            wanted: id, name or part of a name; None for the kernel that took longest in the newest report.

        Raises:
            InputError: there is none.
        """
        paths = self.list_reports(inside)
        for path in paths:
            found = list(self.list_kernels(path))
            if wanted is not None:
                named = [one for one in found if one.id == wanted]
                found = named or list_named(wanted, found, lambda one: (one.kernel.mangled_name, one.kernel.name))
            if found:
                return found[0]
        if not paths:
            raise InputError("no report lies here", remedy="record one: gpa-lsp profile -o profile.ncu-rep -- ./app")
        for path in paths:
            self.expect(path)  # says why one of them has none
        raise InputError(
            "the reports have no kernel" if wanted is None else f"no kernel has the id or name {wanted!r}",
            remedy="list_kernels lists them",
        )

    def _search(self, start: Path) -> Iterator[tuple[Path, int]]:
        suffixes, looked_at = list_suffixes(), 0
        for parent, folders, names in os.walk(start):
            folders[:] = [name for name in folders if not name.startswith(".") and name != "node_modules"]
            for name in names:
                looked_at += 1
                if looked_at > _MOST_LOOKED_AT:
                    return
                path = Path(parent, name)
                if (
                    name.endswith(suffixes)
                    and path.is_file()
                    and Path(os.path.realpath(path)).is_relative_to(self.folder)
                ):
                    yield path, path.stat().st_mtime_ns


MOST_BYTES = 2048  # Of an answer. Whoever reads many of them pays for every word.

_MOST_LINE_BYTES = 480
_MOST_NUMBER_BYTES = 40
_FOOT_BYTES = 150
_TAIL_BYTES = 160  # Of the last line, without the call in it
_MOST_PAIRS = 4
_MOST_REASONS = 4
_LEAST_PAIR_SHARE = 0.005

MEASURED = "measured"
SIMULATED = "simulated"
EMULATED = "emulated and predicted, nothing measured"


def cut_line(text: str, most_bytes: int = _MOST_LINE_BYTES) -> str:
    """One visible line of at most so many bytes.

    >>> cut_line("a long story", 8)
    'a lon…'
    """
    line = make_one_line(text)
    written = line.encode("utf-8", "replace")
    if len(written) <= most_bytes:
        return line
    return written[: most_bytes - len("…".encode())].decode("utf-8", "ignore") + "…"


def write_call(tool: str, **arguments: str | int | None) -> str:
    """A call as an agent would make it, without its closing bracket; what is None is left out.

    >>> write_call("explain_line", file='a "b".cu', line=3, kernel=None)
    'explain_line(file="a \\\\"b\\\\".cu", line=3'
    """
    given = ", ".join(
        f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in arguments.items() if value is not None
    )
    return f"{tool}({given}"


def fit(head: Sequence[str], rows: Iterable[str], start: int, ask: str, *, foot: str = "") -> str:
    """Join as many rows as fit into :data:`MOST_BYTES`, and how to ask for those that do not.

    Args:
        start: the first row that is wanted, 0-based.
        ask: the call that gave this answer, see :func:`write_call`.

    >>> print(fit(["numbers"], map(str, range(1000)), 990, "count("))
    numbers
    990
    991
    992
    993
    994
    995
    996
    997
    998
    999
    """
    every = [cut_line(row) for row in rows]
    lines = [cut_line(line) for line in head]
    if start > len(every) or start < 0:
        raise InputError(
            f"there are {format_count_of(len(every), 'row')}, and none is number {cut_line(str(start), _MOST_NUMBER_BYTES)}",
            remedy="give a smaller start" if start > 0 else "rows are counted from 0",
        )
    more = make_one_line(ask) if len(ask.encode("utf-8", "replace")) <= _MOST_LINE_BYTES else "the same call with ("
    room = MOST_BYTES - _TAIL_BYTES - len(more.encode()) - sum(len(line.encode()) + 1 for line in lines)
    taken = start
    while taken < len(every) and room >= len(every[taken].encode()) + 1:
        room -= len(every[taken].encode()) + 1
        lines.append(every[taken])
        taken += 1
    if taken < len(every):
        comma = "" if more.endswith("(") else ", "
        lines.append(f"… {format_count(len(every) - taken)} more: {more}{comma}start={taken})")
    elif foot:
        lines.append(cut_line(foot, _FOOT_BYTES))
    return "\n".join(lines)


class Answers:
    """Questions that agents may ask.

    Args:
        folder: reports and sources below it are read, nothing else.
    """

    def __init__(self, folder: Path) -> None:
        self._shelf = Shelf(folder)
        self._places = PlaceNames(self._shelf.locator, self._shelf.folder)

    def list_kernels(self, report: str | None = None, start: int = 0) -> str:
        """The kernels of the reports below the folder: id, time, what limits them, best suggestion.

        Args:
            report: a report or folder; None for all.
        """
        paths = self._shelf.list_reports(report)
        if paths and not any(self._shelf.read(path).kernels for path in paths):
            self._shelf.expect(paths[0])
        rows = [row for path in paths for row in self._list_rows(path)]
        if not paths:
            return "no report lies here; record one: gpa-lsp profile -o profile.ncu-rep -- ./app"
        ask = write_call("list_kernels", report=report)
        head = [
            f"{format_count_of(len(paths), 'report')}, {MEASURED} where it does not say simulated; id, time, limiter, best suggestion:"
        ]
        return fit(head, rows, start, ask, foot='ask advise(kernel="ID")')

    def advise(self, kernel: str | None = None, suggestion: str | None = None, start: int = 0) -> str:
        """Describe what limits a kernel, and what to change, best first.

        Args:
            kernel: id or name; None for the one that took longest in the newest report.
        """
        found = self._shelf.find_kernel(kernel)
        one = found.kernel
        head = [self._head(found)]
        every = () if one.advice is None else one.advice.ranked
        if suggestion is None:
            rows = build_rows(one, self._places).rows
            others = [f"{row.label}: {row.place} {row.text} {row.code}" for row in rows if row.label in _LABELS]
            said = [*others, *(self._describe_suggestion(piece) for piece in every)]
            foot = f'ask advise(kernel="{found.id}", suggestion="NAME"), explain_line(file, line)' if every else ""
            return fit(head, said, start, write_call("advise", kernel=found.id), foot=foot)
        piece = next((piece for piece in every if piece.optimizer == suggestion), None)
        if piece is None:
            names = ", ".join(piece.optimizer for piece in every)
            raise InputError(
                f"{suggestion!r} is no suggestion for it", remedy=f"there are {names}" if names else "there is none"
            )
        ask = write_call("advise", kernel=found.id, suggestion=suggestion)
        return fit(head, _list_lines([build_piece(piece, every, one, self._places)]), start, ask)

    def explain_line(self, file: str, line: int, kernel: str | None = None, start: int = 0) -> str:
        """Describe what a source line is stalled on, and what it stalls, in every kernel it was compiled into.

        Args:
            line: as it was when it was measured, 1-based.
            kernel: id or name; None for all kernels of the newest report that has the line.
        """
        found = [self._shelf.find_kernel(kernel)] if kernel is not None else self._find_with_line(file, line)
        rows = [row for one in found for row in self._explain(one, file, line)]
        if not rows:
            raise InputError(
                f"no sampled instruction is of {write_place(file, line)}",
                remedy="check the line: numbers are those of the measured file",
            )
        origin = _name_origin(one.kernel for one in found)
        ask = write_call("explain_line", file=file, line=line, kernel=kernel)
        return fit([f"{write_place(file, line)}, {origin}"], rows, start, ask)

    def compare(self, before: str, after: str, kernel: str | None = None, start: int = 0) -> str:
        """Describe what changed between two reports: time, limiter, counters, which advice was taken.

        Args:
            kernel: name; None for all.
        """
        reports = [self._choose(self._shelf.expect(self._shelf.find_file(name)), kernel) for name in (before, after)]
        comparison = compare_reports(reports[0], reports[1], accept=lambda pair: pair.is_only)
        if not comparison.kernels:
            names = (sorted({shorten_name(one.name) for one in report.kernels}) for report in reports)
            held = "; ".join(
                f"{file}: {', '.join(every) or 'none'}" for file, every in zip((before, after), names, strict=True)
            )
            raise InputError("no kernel is in both reports", remedy=f"there are {held}")
        rows = _list_lines(build_comparison(comparison, self._places))
        rows[:0] = [f"{replace(one, path=None)}" for report in reports for one in report.problems[:_MOST_REASONS]]
        origins = [_name_origin(one.kernels) for one in reports]
        return fit(
            [f"{before} ({origins[0]}) → {after} ({origins[1]})"],
            rows,
            start,
            write_call("compare", before=before, after=after, kernel=kernel),
        )

    def predict(self, source: str, kernel: str | None = None, start: int = 0) -> str:
        """Predict a CUDA source on its described launches: emulated, with no GPU; nothing of the program's host code runs.

        Args:
            kernel: name; None for all.
        """
        prediction = predict_code(self._shelf.find_file(source), kernel=kernel)
        lost = [replace(one, path=None) for one in prediction.problems if one.severity is ProblemSeverity.ERROR]
        lines = _list_lines(build_prediction(prediction, self._shelf.folder))
        if not prediction.kernels:
            reasons = [*_list_compiler_errors(prediction.statics.unit), *map(str, lost), *lines]
            why = "; ".join(reasons[:_MOST_REASONS]) or "no kernel is in it"
            raise InputError(f"nothing is predicted of {source}: {why}")
        rows = [*(f"error: {one}" for one in lost), *lines]
        return fit([f"{source}, {EMULATED}"], rows, start, write_call("predict", source=source, kernel=kernel))

    def sass(self, kernel: str | None = None, file: str | None = None, line: int | None = None, start: int = 0) -> str:
        """The machine instructions of a kernel, with samples; those of one source line, or all.

        Args:
            kernel: id or name; None for the one that took longest in the newest report.
            line: only instructions of this source line, 1-based.
        """
        found = self._shelf.find_kernel(kernel)
        rows = list(self._list_instructions(found.kernel, file, line))
        ask = write_call("sass", kernel=found.id, file=file, line=line)
        head = [self._head(found), "offset, samples (share) and their main stall reason, instruction, place:"]
        return fit(head, rows, start, ask)

    def _list_rows(self, path: Path) -> Iterator[str]:
        report = self._shelf.read(path)
        for problem in report.problems[:2]:
            yield f"{self._shelf.show(path)}: {replace(problem, path=None)}"
        for one in self._shelf.list_kernels(path):
            kernel = one.kernel
            best = find_first_suggestion(kernel)
            parts = [
                f"{one.id} {kernel.mark(shorten_name(kernel.name))}",
                describe_time(kernel, kernel.duration_ns),
                format_count_of(kernel.total_samples, "sample"),
                describe_limit_briefly(kernel),
                "" if best is None else f"{best.optimizer} {describe_gain(best)}",
                self._shelf.show(path),
            ]
            yield " · ".join(part for part in parts if part)

    def _head(self, found: ShelvedKernel) -> str:
        kernel = found.kernel
        return (
            f"{found.id} {kernel.mark(shorten_name(kernel.name))}: {format_duration_ns(kernel.duration_ns)} on "
            f"{kernel.device.name or 'an unknown GPU'}, "
            f"{format_count_of(kernel.total_samples, 'sample')}, {_name_origin([kernel])} in {self._shelf.show(found.path)}"
        )

    @staticmethod
    def _describe_suggestion(advice: Advice) -> str:
        gain = describe_gain(advice) or "gain unknown"
        basis = "; ".join(filter(None, ("" if advice.optimizer in UNPRICED else "estimated", describe_matched(advice))))
        return f"{advice.optimizer}: {gain} {f'({basis}) ' if basis else ''}{describe_suggestion(advice)}"

    def _find_with_line(self, file: str, line: int) -> list[ShelvedKernel]:
        for path in self._shelf.list_reports():
            found = [one for one in self._shelf.list_kernels(path) if self._find_places(one.kernel, file, line)]
            if found:
                return found
        return []

    def _explain(self, found: ShelvedKernel, file: str, line: int) -> Iterator[str]:
        kernel = found.kernel
        index = build_pair_index(kernel)
        if index is None:
            return
        for place in self._find_places(kernel, file, line):
            blame = index.measure_line(place)
            taken = blame.waiting_samples + blame.own_samples + blame.unattributed_samples
            yield (
                f"{found.id} {shorten_name(kernel.name)}: {_share(kernel, taken)} taken here; of these "
                f"{_share(kernel, blame.waiting_samples)} are stalled on other instructions, {_share(kernel, blame.own_samples)} are its own, "
                f"{_share(kernel, blame.unattributed_samples)} unattributed; it stalls others by {_share(kernel, blame.causing_samples)}"
            )
            for verb, pairs in (("stalled on", index.list_waits(place)), ("stalls", index.list_waiters(place))):
                for pair in pairs[:_MOST_PAIRS]:
                    if pair.samples >= _LEAST_PAIR_SHARE * kernel.total_samples:
                        yield self._describe_pair(kernel, verb, pair)
        yield f"limiter: {describe_limit(kernel)}"

    def _describe_pair(self, kernel: KernelReport, verb: str, pair: LinePair) -> str:
        row = pair.def_row if verb == "stalled on" else pair.use_row
        place = (
            "code without lines"
            if pair.place is None
            else self._places.show_line(kernel, pair.place.file, pair.place.line)
        )
        code = None if pair.place is None else self._places.read_line(kernel, pair.place.file, pair.place.line)
        text = kernel.instructions.texts[row]
        return (
            f"{verb} {place} {code.strip() if code else ''} [{text}]: {_share(kernel, pair.samples)}, {pair.reason}, "
            f"{describe_cause(pair.category)}"
        )

    def _list_instructions(self, kernel: KernelReport, file: str | None, line: int | None) -> Iterator[str]:
        columns, places = kernel.instructions, InstructionPlaces(kernel, self._places)
        totals = columns.all_samples.sum(axis=1)
        wanted = None if line is None else set(self._find_places(kernel, file, line))
        for row in range(len(columns)):
            chain = int(columns.chain_index[row])
            if wanted is not None and (
                chain < 0 or not any(frame.source_line in wanted for frame in columns.chains[chain])
            ):
                continue
            count = int(totals[row])
            label = label_samples(columns.reasons, columns.all_samples[row], kernel.total_samples)
            samples = f"{format_count_of(count, 'sample')}: {label}" if count else "–"
            yield f"{places.show_offset(row)} {samples} | {columns.texts[row]} | {places.show(row)[0]}"

    def _find_places(self, kernel: KernelReport, file: str | None, line: int) -> list[SourceLine]:
        """Lines of a number in files that somebody named, as compiled or as they are called here."""
        found = {frame.source_line for chain in kernel.instructions.chains for frame in chain if frame.line == line}
        if file is not None:
            named = {
                one
                for one in {place.file for place in found}
                if is_path_end(one, file) or is_path_end(self._places.show_file(kernel, one), file)
            }
            found = {place for place in found if place.file in named}
        return sorted(found, key=lambda place: place.file)

    @staticmethod
    def _choose(report: Report, kernel: str | None) -> Report:
        if kernel is None:
            return report
        found = list_named(kernel, report.kernels, lambda one: (one.mangled_name, one.name))
        return Report(problems=report.problems, kernels=tuple(found))


def _list_compiler_errors(unit: CompiledUnit) -> list[str]:
    return [
        f"{'' if one.line is None else f'line {one.line}: '}{one.text}"
        for one in unit.messages
        if one.severity is ProblemSeverity.ERROR
    ]


_LABELS = frozenset({"limit", "cause", "No advice", "small"})


def _list_lines(blocks: Sequence[Block]) -> list[str]:
    """Blocks as lines of text, without empty ones."""
    return [line for line in write_plain(blocks).splitlines() if line.strip()]


def _name_origin(kernels: Iterable[KernelReport]) -> str:
    """Origin of the numbers of kernels."""
    return " and ".join(sorted({SIMULATED if kernel.is_simulated else MEASURED for kernel in kernels})) or MEASURED


def _share(kernel: KernelReport, samples: float) -> str:
    return f"{format_count_of(round(samples), 'sample')} ({format_percent(samples / max(1, kernel.total_samples))})"
