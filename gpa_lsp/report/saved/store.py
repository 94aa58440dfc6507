"""Reports as JSON files: written as they go, read back with every value checked."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NoReturn, TextIO

from msgspec.structs import replace

from gpa_lsp import __version__
from gpa_lsp.diagnosis.advice.model import KernelAdvice
from gpa_lsp.diagnosis.analyses.model import Limiter
from gpa_lsp.foundation.errors import InputError, Problem, UnsupportedInputError
from gpa_lsp.foundation.files import atomic_write, read_bounded
from gpa_lsp.foundation.json_records import read_with
from gpa_lsp.foundation.json_values import Lines, SentenceText, Writing
from gpa_lsp.foundation.numbers import format_bytes
from gpa_lsp.foundation.prose import Part
from gpa_lsp.report.model import KernelReport, Report
from gpa_lsp.report.saved import SCHEMA_NAME, SCHEMA_NAMES
from gpa_lsp.report.saved.report_records import REPORT, Generator, SavedFinding, SavedReport

MAX_REPORT_BYTES = 512 << 20  # Larger files are refused; parsed JSON takes several times its size in memory

_REMEDY = "write the report again with gpa-lsp report --format json"


def write_report(
    report: Report,
    target: Path | TextIO,
    *,
    indent: int | None = None,
    with_sources: bool = True,
    is_expanded: bool = False,
    findings: Iterable[SavedFinding] | None = None,
) -> None:
    """Write a report as JSON, in ASCII, row by row: no second copy of it is held in memory.

    Args:
        report: what to write. NaN and infinities become null.
        target: an open text stream, or a file, which is replaced as a whole when all is written.
        indent: spaces per level; None writes one row per line without further white space.
        with_sources: include the embedded sources.
        is_expanded: write files, functions and inline chains wherever they are named, not as positions in tables.
        findings: to add; None leaves the property out. Nothing reads them back.

    Raises:
        OSError: the target cannot be written.
    """
    if not with_sources:
        report = replace(report, kernels=tuple(replace(kernel, embedded_sources={}) for kernel in report.kernels))
    chunks = _Layout(indent).list_chunks(_list_members(report, Writing(is_expanded=is_expanded), findings))
    if not isinstance(target, Path):
        target.writelines(chunks)
    else:
        with atomic_write(target, encoding="ascii") as stream:
            stream.writelines(chunks)


def read_report(path: Path) -> Report:
    """Read a report back, of any version and with or without tables.

    Raises:
        InputError: the file is no report, or breaks the schema; the place is a JSON pointer.
        UnsupportedInputError: a report of another version.
    """
    document = _parse(path)
    version = document.get("schema") if isinstance(document, dict) else None
    if isinstance(version, str) and version not in SCHEMA_NAMES:
        known = ", ".join(map(repr, SCHEMA_NAMES))
        message = f"is a report of format {version[:40]!r}; this version reads {known}"
        raise UnsupportedInputError(message, path=path, place="/schema", remedy=_REMEDY)
    saved: SavedReport = read_with(REPORT.find(SavedReport), document, path=path, remedy=_REMEDY)
    return Report(problems=saved.problems, kernels=tuple(map(_complete, saved.kernels)))


def _complete(kernel: KernelReport) -> KernelReport:
    """A kernel with the verdicts on its advice, which reports of earlier versions leave to be decided."""
    contexts = tuple(replace(one, advice=_decide(one.advice, one.limiter)) for one in kernel.contexts)
    return replace(kernel, advice=_decide(kernel.advice, kernel.limiter), contexts=contexts)


def _decide(advice: KernelAdvice | None, limiter: Limiter | None) -> KernelAdvice | None:
    if advice is None or advice.refusals is not None:
        return advice
    from gpa_lsp.diagnosis.advice.advise import decide  # it imports every optimizer

    return decide(advice, limiter)


def _list_members(report: Report, to: Writing, findings: Iterable[SavedFinding] | None) -> Iterator[tuple[str, Any]]:
    """The properties of a :class:`SavedReport`, whose rows are written as they are asked for."""
    yield "schema", SCHEMA_NAME
    yield "generator", REPORT.find(Generator).write(Generator(name="gpa-lsp", version=__version__), to)
    yield "problems", REPORT.find(tuple[Problem, ...]).write(report.problems, to)
    if findings is not None:
        yield "findings", REPORT.find(tuple[SavedFinding, ...]).write(tuple(findings), to)
    yield "kernels", Lines((_write_kernel(kernel, to) for kernel in report.kernels), are_open=True)
    if not to.is_expanded:
        sentences = REPORT.find(tuple[Part, ...]).write_many([sentence.parts for sentence in to.sentences], to)
        tables = {name: Lines(to.tables.get(name, ())) for name in ("files", "functions", "frames", "chains")}
        yield "tables", {**tables, SentenceText.table: Lines(sentences)}


def _write_kernel(kernel: KernelReport, to: Writing) -> Any:
    to.kernel = kernel
    return REPORT.find(KernelReport).write(kernel, to)


class _Layout:
    """Commas, line breaks and indents of so many spaces; without one every row of a long array still gets its own line, for diff and grep."""

    def __init__(self, indent: int | None) -> None:
        self._indent = indent
        self._separators = (",", ":") if indent is None else (",", ": ")
        self._encode = json.JSONEncoder(indent=indent, separators=self._separators, allow_nan=False).encode

    def list_chunks(self, members: Iterable[tuple[str, Any]]) -> Iterator[str]:
        """A whole document."""
        yield from self._list_members(members, 0)
        yield "\n"

    def _list_members(self, members: Iterable[tuple[str, Any]], level: int) -> Iterator[str]:
        opening = "{"
        for key, value in members:
            yield opening + self._break_line(level + 1) + json.dumps(key) + self._separators[1]
            if isinstance(value, Lines):
                yield from self._list_rows(value, level + 1)
            elif isinstance(value, list) and value and isinstance(value[0], dict):
                yield from self._list_rows(Lines(value), level + 1)
            elif isinstance(value, dict) and any(isinstance(part, Lines) for part in value.values()):
                yield from self._list_members(value.items(), level + 1)
            else:
                yield self._encode_line(value, level + 1)
            opening = ","
        yield self._break_line(level) + "}"

    def _list_rows(self, lines: Lines, level: int) -> Iterator[str]:
        opening, line_break = "[", self._break_line(level + 1)
        for row in lines.rows:
            if lines.are_open:
                yield opening + line_break
                yield from self._list_members(row.items(), level + 1)
            else:
                yield opening + line_break + self._encode_line(row, level + 1)
            opening = ","
        yield "[]" if opening == "[" else self._break_line(level) + "]"

    def _encode_line(self, value: Any, level: int) -> str:
        text = self._encode(value)
        return text if self._indent is None else text.replace("\n", self._break_line(level))

    def _break_line(self, level: int) -> str:
        return "\n" if self._indent is None else "\n" + " " * (self._indent * level)


def _parse(path: Path) -> Any:
    try:
        if path.stat().st_size > MAX_REPORT_BYTES:
            message = f"is larger than {format_bytes(MAX_REPORT_BYTES)}, too large for a report"
            raise InputError(message, path=path, remedy="write it again without sources or for fewer kernels")
        data = read_bounded(path, MAX_REPORT_BYTES)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", path=path, remedy="check the path") from error
    try:
        return json.loads(data, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        raise InputError(
            f"is not JSON: {error.msg}", path=path, place=f"line {error.lineno}", remedy=_REMEDY
        ) from error
    except UnicodeDecodeError as error:
        raise InputError("is not UTF-8 text", path=path, place=f"offset {error.start:#x}", remedy=_REMEDY) from error
    except (RecursionError, ValueError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise InputError(f"is not a report: {reason}", path=path, remedy=_REMEDY) from error


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")
