"""For programs: what the command line and the editors know, as Python objects.

What is named in ``__all__`` here, with the attributes that the classes it returns document, stays as it is between minor versions.

>>> from gpa_lsp import api
>>> report = api.load("fixtures/example.gpa-profile.json")
>>> kernel = api.find_kernel(report, "short_def_use")
>>> kernel.total_samples, api.advise(kernel)[0].optimizer
(8526, 'loop_unrolling')
>>> graph = api.def_use_graph(kernel)
>>> cause, victim, heaviest = max(graph.edges(data=True), key=lambda edge: edge[2]["samples"])
>>> graph.nodes[cause]["text"], graph.nodes[victim]["text"], next(iter(heaviest["by_reason"]))
('LDG.E.CONSTANT R0, [R4.64]', 'FFMA R0, R7, 0.5, R0', 'long_scoreboard')
"""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from gpa_lsp.diagnosis.advice.model import Advice
from gpa_lsp.diagnosis.blame import DEFAULT_BLAMER
from gpa_lsp.foundation.errors import GpaError, InputError
from gpa_lsp.kernel.names import list_named
from gpa_lsp.report import pipeline
from gpa_lsp.report.def_use_graph import build_def_use_graph, cut_around
from gpa_lsp.report.model import KernelReport, Report
from gpa_lsp.report.source_paths import SourceLocator

if TYPE_CHECKING:
    import networkx as nx

__all__ = [
    "Advice",
    "GpaError",
    "InputError",
    "KernelReport",
    "Report",
    "advise",
    "def_use_graph",
    "find_kernel",
    "kernels",
    "load",
]

_MOST_FILES = 50_000
_LISTED = 10


def load(
    *paths: str | os.PathLike[str],
    sources: Iterable[str | os.PathLike[str]] = (".",),
    mappings: Mapping[str, str] | None = None,
    mode: str = DEFAULT_BLAMER,
) -> Report:
    """Read and analyse profiles, or reports that were saved as JSON.

    Args:
        paths: files, or folders in which profiles are looked for.
        sources: folders in which sources are looked for, for advice that names expressions.
        mappings: path prefix as compiled → folder here.
        mode: ``paper`` finds causes and gives advice as GPA was published.

    Returns:
        One report of all. A file that cannot be used, or a part of one, is an entry of ``report.problems``; the others are read.

    >>> load("no such file").problems[0].message
    'the file cannot be read (No such file or directory)'
    """
    locator = SourceLocator(
        [Path(folder).absolute() for folder in sources], list((mappings or {}).items()), max_files=_MOST_FILES
    )
    return pipeline.load([Path(path) for path in paths], locator=locator, mode=mode)


def kernels(report: Report, name: str | None = None) -> tuple[KernelReport, ...]:
    """The kernels of a report, those that took longest first.

    Args:
        report: of :func:`load`.
        name: readable, short or mangled, or else a part of a name; None for all.
    """
    if name is None:
        return report.kernels
    return tuple(list_named(name, report.kernels, lambda one: (one.mangled_name, one.name)))


def find_kernel(report: Report, name: str) -> KernelReport:
    """The one kernel of a name; of several that are meant, the one that took longest.

    Raises:
        InputError: there is none.
    """
    found = kernels(report, name)
    if not found:
        names = ", ".join(list(dict.fromkeys(kernel.name for kernel in report.kernels))[:_LISTED])
        raise InputError(
            f"no kernel is named {name!r}", remedy=f"there are {names}" if names else "the report has none"
        )
    return found[0]


def advise(kernel: KernelReport) -> tuple[Advice, ...]:
    """What to change, best first; empty where nothing is known that helps.

    Each has ``optimizer`` (its name), ``title``, ``hint``, ``caveats`` and ``speedup`` with ``estimate``, ``low`` and ``high`` (time before /
    time after). They are alternatives: gains are not added or multiplied.
    """
    return () if kernel.advice is None else kernel.advice.advice


def def_use_graph(
    kernel: KernelReport, *, around: Iterable[tuple[str | None, int]] = (), steps: int = 2
) -> "nx.DiGraph[int]":
    """Which instruction makes which wait, as :func:`gpa_lsp.report.def_use_graph.build_def_use_graph` describes it.

    Args:
        kernel: of a report.
        around: source lines (file or an end of its path, None for every file; 1-based line) to cut the graph to; none for the whole graph.
        steps: edges that are followed from those lines.

    Raises:
        InputError: nothing was blamed in the kernel, or no instruction is of those lines.
    """
    graph, lines = build_def_use_graph(kernel), tuple(around)
    return cut_around(graph, lines, steps) if lines else graph
