"""The report by source line: what an editor asks for."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from gpa_lsp.report.model import KernelReport, LineRow, Report


@dataclass(frozen=True, slots=True, kw_only=True)
class LineEntry:
    """What one kernel says of one line."""

    kernel: KernelReport
    row: LineRow


@dataclass(frozen=True, slots=True, kw_only=True)
class LineIndex:
    """Entries by file as compiled and line, hottest kernel first on each line.

    Attributes:
        by_file: file → line → entries.
        kernels_by_file: file → kernels with samples in it, longest first.
    """

    by_file: Mapping[str, Mapping[int, tuple[LineEntry, ...]]]
    kernels_by_file: Mapping[str, tuple[KernelReport, ...]]

    def files(self) -> tuple[str, ...]:
        """Every file any kernel has samples in, sorted."""
        return tuple(sorted(self.by_file))

    def at(self, file: str, line: int) -> tuple[LineEntry, ...]:
        """What the kernels say of a line; empty when nothing."""
        return self.by_file.get(file, {}).get(line, ())

    def lines_of(self, file: str) -> Mapping[int, tuple[LineEntry, ...]]:
        """All lines of a file with samples; empty for an unknown file."""
        return self.by_file.get(file, {})

    def kernels_in(self, file: str) -> tuple[KernelReport, ...]:
        """Kernels with samples in a file, in report order."""
        return self.kernels_by_file.get(file, ())


def index_by_line(reports: Report | Iterable[Report]) -> LineIndex:
    """Index one report, or several, by source line."""
    several = (reports,) if isinstance(reports, Report) else tuple(reports)
    by_file: dict[str, dict[int, list[LineEntry]]] = {}
    kernels_by_file: dict[str, list[KernelReport]] = {}
    for report in several:
        for kernel in report.kernels:
            files = set()
            for row in kernel.lines:
                if row.file is None or row.line is None:
                    continue
                files.add(row.file)
                by_file.setdefault(row.file, {}).setdefault(row.line, []).append(LineEntry(kernel=kernel, row=row))
            for file in files:
                kernels_by_file.setdefault(file, []).append(kernel)
    return LineIndex(
        by_file={
            file: {line: tuple(sorted(entries, key=_heat)) for line, entries in sorted(lines.items())}
            for file, lines in by_file.items()
        },
        kernels_by_file={file: tuple(kernels) for file, kernels in kernels_by_file.items()},
    )


def _heat(entry: LineEntry) -> tuple[int, str]:
    return (-entry.row.inclusive_samples, entry.kernel.mangled_name)
