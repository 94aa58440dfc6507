"""Reports as JSON files: written as they go, read back with every value checked."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NoReturn, TextIO

from gpa_lsp import __version__
from gpa_lsp.errors import InputError, UnsupportedInputError
from gpa_lsp.report.json_advice import make_advice, make_silence, make_unit
from gpa_lsp.report.json_blame import make_blame_head, make_edges, make_unattributed_rows
from gpa_lsp.report.json_cursor import JsonCursor
from gpa_lsp.report.json_problem import make_problem, read_problem
from gpa_lsp.report.json_reading import read_kernel
from gpa_lsp.report.json_records import make_record
from gpa_lsp.report.json_rows import (
    make_function,
    make_instructions,
    make_kernel_head,
    make_launch,
    make_line,
    make_loop,
    make_sources,
)
from gpa_lsp.report.model import KernelReport, Report
from gpa_lsp.report.schema import SCHEMA_NAME
from gpa_lsp.whole_files import open_whole

MAX_REPORT_BYTES = 512 << 20
"""Larger files are refused; parsed JSON takes several times its size in memory."""

_SNIFFED_BYTES = 4096
_FORMAT_PREFIX = "gpa-lsp/report/"
_REMEDY = "write the report again with gpa-lsp report --format json"


def write_report(
    report: Report,
    target: Path | TextIO,
    *,
    indent: int | None = None,
    with_sources: bool = True,
    findings: Iterable[dict[str, Any]] | None = None,
) -> None:
    """Write a report as JSON, in ASCII, row by row: no second copy of it is held in memory.

    Args:
        report: what to write. NaN and infinities become null.
        target: an open text stream, or a file, which is replaced as a whole when all is written.
        indent: spaces per level; None writes one row per line without further white space.
        with_sources: include the embedded sources.
        findings: ``finding`` objects to add; None leaves the property out. Nothing reads them back.

    Raises:
        OSError: the target cannot be written.
    """
    chunks = _list_chunks(report, _Layout(indent), with_sources, findings)
    if not isinstance(target, Path):
        target.writelines(chunks)
    elif target.exists() and not target.is_file():
        with target.open("w", encoding="ascii") as stream:
            stream.writelines(chunks)
    else:
        with open_whole(target, encoding="ascii") as stream:
            stream.writelines(chunks)


def read_report(path: Path) -> Report:
    """Read a report back.

    Raises:
        InputError: the file is no report, or breaks the schema; the place is a JSON pointer.
        UnsupportedInputError: a report of another version.
    """
    root = JsonCursor(_parse(path), path=path, remedy=_REMEDY)
    version = root.at("schema").text()
    if version != SCHEMA_NAME:
        message = f"is a report of format {version[:40]!r}; this version reads {SCHEMA_NAME!r}"
        raise UnsupportedInputError(message, path=path, place="/schema", remedy=_REMEDY)
    return Report(
        problems=tuple(read_problem(at) for at in root.at("problems").items()),
        kernels=tuple(read_kernel(at) for at in root.at("kernels").items()),
    )


def is_saved_report(path: Path) -> bool:
    """Whether a file looks like a report of any version, from its first bytes; False when it cannot be read."""
    try:
        with path.open("rb") as stream:
            start = stream.read(_SNIFFED_BYTES).decode("ascii", errors="replace")
    except OSError:
        return False
    return start.lstrip().startswith("{") and f'"{_FORMAT_PREFIX}' in start


def _list_chunks(
    report: Report, layout: "_Layout", with_sources: bool, findings: Iterable[dict[str, Any]] | None
) -> Iterator[str]:
    head = {"schema": SCHEMA_NAME, "generator": {"name": "gpa-lsp", "version": __version__}}
    yield "{" + layout.members(head, 1)
    yield from layout.array("problems", (make_problem(problem) for problem in report.problems), 1)
    if findings is not None:
        yield from layout.array("findings", findings, 1)
    yield layout.separator(1) + layout.key("kernels") + "["
    for position, kernel in enumerate(report.kernels):
        yield ("," if position else "") + layout.break_line(2) + "{"
        yield from _list_kernel_chunks(kernel, layout, with_sources)
        yield layout.break_line(2) + "}"
    yield (layout.break_line(1) if report.kernels else "") + "]" + layout.break_line(0) + "}\n"


def _list_kernel_chunks(kernel: KernelReport, layout: "_Layout", with_sources: bool) -> Iterator[str]:
    yield layout.members(make_kernel_head(kernel), 3)
    yield from layout.array("launches", map(make_launch, kernel.launches), 3)
    yield from layout.array("functions", map(make_function, kernel.functions), 3)
    yield from layout.array("lines", (make_line(row, kernel) for row in kernel.lines), 3)
    yield from layout.array("loops", map(make_loop, kernel.loops), 3)
    yield from _list_advice_chunks(kernel, layout)
    analyses = None if kernel.analyses is None else make_record(kernel.analyses)
    yield layout.separator(3) + layout.key("analyses") + layout.value(analyses, 3)
    yield from layout.array("instructions", make_instructions(kernel.instructions), 3)
    yield from _list_blame_chunks(kernel, layout)
    sources = make_sources(kernel.embedded_sources) if with_sources else {}
    yield layout.separator(3) + layout.key("embedded_sources") + layout.value(sources, 3)


def _list_advice_chunks(kernel: KernelReport, layout: "_Layout") -> Iterator[str]:
    if kernel.advice is None:
        yield layout.separator(3) + layout.key("advice") + layout.value(None, 3)
        return
    rows = (make_advice(advice, kernel.instructions) for advice in kernel.advice.advice)
    yield from layout.array("advice", rows, 3)
    yield from layout.array("advice_silences", map(make_silence, kernel.advice.silences), 3)
    memory = {
        "words": kernel.advice.memory,
        "is_bandwidth_bound": kernel.advice.is_bandwidth_bound,
        "units": [make_unit(unit) for unit in kernel.advice.units],
    }
    yield layout.separator(3) + layout.key("advice_memory") + layout.value(memory, 3)


def _list_blame_chunks(kernel: KernelReport, layout: "_Layout") -> Iterator[str]:
    blame, reasons = kernel.blame, kernel.instructions.reasons
    if blame is None:
        yield layout.separator(3) + layout.key("blame") + layout.value(None, 3)
        return
    yield layout.separator(3) + layout.key("blame") + "{"
    yield layout.members(make_blame_head(blame, reasons), 4)
    yield from layout.array("unattributed_rows", make_unattributed_rows(blame.unattributed, reasons), 4)
    yield from layout.array("edges", make_edges(blame.edges, reasons), 4)
    yield layout.break_line(3) + "}"


class _Layout:
    """Commas, line breaks and indents. Without an indent every row of an array still gets a line of its own, for diff and grep."""

    def __init__(self, indent: int | None) -> None:
        self._indent = indent
        self._separators = (",", ":") if indent is None else (",", ": ")
        self._encode = json.JSONEncoder(indent=indent, separators=self._separators, allow_nan=False).encode

    def break_line(self, level: int) -> str:
        return "\n" if self._indent is None else "\n" + " " * (self._indent * level)

    def separator(self, level: int) -> str:
        return "," + self.break_line(level)

    def key(self, name: str) -> str:
        return json.dumps(name) + self._separators[1]

    def value(self, value: Any, level: int) -> str:
        text = self._encode(value)
        return text if self._indent is None else text.replace("\n", self.break_line(level))

    def members(self, values: dict[str, Any], level: int) -> str:
        rows = [self.key(name) + self.value(value, level) for name, value in values.items()]
        return self.break_line(level) + self.separator(level).join(rows)

    def array(self, name: str, rows: Iterable[Any], level: int) -> Iterator[str]:
        yield self.separator(level) + self.key(name) + "["
        is_empty = True
        for row in rows:
            yield ("" if is_empty else ",") + self.break_line(level + 1) + self.value(row, level + 1)
            is_empty = False
        yield ("" if is_empty else self.break_line(level)) + "]"


def _parse(path: Path) -> Any:
    try:
        if path.stat().st_size > MAX_REPORT_BYTES:
            message = f"is larger than {MAX_REPORT_BYTES >> 20} MiB, too large for a report"
            raise InputError(message, path=path, remedy="write it again without sources or for fewer kernels")
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", path=path, remedy="check the path") from error
    try:
        return json.loads(data, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        raise InputError(f"is no JSON: {error.msg}", path=path, place=f"line {error.lineno}", remedy=_REMEDY) from error
    except UnicodeDecodeError as error:
        raise InputError("is no UTF-8 text", path=path, place=f"offset {error.start:#x}", remedy=_REMEDY) from error
    except (RecursionError, ValueError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise InputError(f"is no report: {reason}", path=path, remedy=_REMEDY) from error


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")
