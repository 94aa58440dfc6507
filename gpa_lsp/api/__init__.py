"""Reports, advice and predictions as Python objects, as the command line and the editors tell them.

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
from typing import TYPE_CHECKING, Any

from gpa_lsp.diagnosis.advice.model import Advice
from gpa_lsp.diagnosis.blame import DEFAULT_BLAMER
from gpa_lsp.foundation.errors import GpaError, InputError
from gpa_lsp.kernel.names import list_named
from gpa_lsp.report import pipeline
from gpa_lsp.report.model import KernelReport, Report
from gpa_lsp.report.pairs import build_def_use_graph, cut_around
from gpa_lsp.report.source_paths import SourceLocator

if TYPE_CHECKING:
    import networkx as nx

    from gpa_lsp.execution.volumes.model import VolumePrediction

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
    "predict",
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
    """Suggestions, best first; empty where nothing is known that helps.

    Each has ``optimizer`` (its name), ``title``, ``hint``, ``caveats`` and ``speedup`` with ``estimate``, ``low`` and ``high`` (time before /
    time after). They are alternatives: gains are not added or multiplied.
    """
    return () if kernel.advice is None else kernel.advice.advice


def def_use_graph(
    kernel: KernelReport, *, around: Iterable[tuple[str | None, int]] = (), steps: int = 2
) -> "nx.DiGraph[int]":
    """Edges from instructions to those that stall on them, as :func:`gpa_lsp.report.pairs.build_def_use_graph` describes it.

    Args:
        kernel: of a report.
        around: source lines (file or an end of its path, None for every file; 1-based line) to cut the graph to; none for the whole graph.
        steps: edges that are followed from those lines.

    Raises:
        InputError: nothing was blamed in the kernel, or no instruction is of those lines.
    """
    graph, lines = build_def_use_graph(kernel), tuple(around)
    return cut_around(graph, lines, steps) if lines else graph


def predict(
    expressions: Mapping[str, Mapping[str, Any]] | str | os.PathLike[str],
    launch: Mapping[str, Any] | None,
    gpu: str | os.PathLike[str],
    *,
    mode: str = "corrected",
) -> "VolumePrediction":
    """Bytes that a kernel moves through each level of memory, its limiter and its time, from its addresses alone.

    Args:
        expressions: name of each field → ``element_bytes``, ``loads`` and ``stores`` (indexes in elements, such as ``"tidx + tidy * 512"``, or
            ``[x, y, z]`` with ``extents``), perhaps ``base_bytes``. Or a file that says all of it and the launch.
        launch: ``block``, ``threads`` (or ``grid``) and ``registers``, perhaps ``fold``, ``shared_bytes``, ``flops``, ``precision``, ``constants``
            and ``kernel``, as :mod:`gpa_lsp.execution.volumes.written_expressions` describes them; None for a file's.
        gpu: a name, or a ``.toml`` file that describes one.
        mode: ``corrected``, or ``paper`` for the model as it was published.

    Returns:
        With ``volumes`` (bytes per update by level and cause, and the sums ``l2_load``, ``dram_load`` and ``dram_store``), ``bounds`` (what each
        limiter allows, lowest first), ``limiter``, ``updates_per_s``, ``duration_ns`` and ``notes``.

    Raises:
        InputError: an expression is not affine, a key is missing or means nothing, or no GPU has the name.
        ValueError: there is no such mode.

    >>> axpy = {"x": {"element_bytes": 8, "loads": ["tidx"]}, "y": {"element_bytes": 8, "loads": ["tidx"], "stores": ["tidx"]}}
    >>> found = predict(axpy, {"block": 256, "threads": 1 << 24, "registers": 16, "flops": 2}, "A100 SXM4 40GB")
    >>> found.volumes.dram_load, found.volumes.dram_store, found.limiter.value, round(found.duration_ns / 1e3)
    (16.0, 8.0, 'DRAM', 300)
    """
    # Each brings numpy and the tables of all GPUs, which programs that only read reports do without.
    from gpa_lsp.execution.prediction.predict import predict_expressions
    from gpa_lsp.execution.volumes.model import VolumeMode
    from gpa_lsp.execution.volumes.written_expressions import build_expressions, read_expressions

    if isinstance(expressions, Mapping):
        written = build_expressions(expressions, launch or {})
    elif launch is None:
        written = read_expressions(Path(expressions))
    else:
        raise InputError("a file describes its launch itself", path=Path(expressions), remedy="give None as the launch")
    return predict_expressions(written, machine=os.fspath(gpu), mode=VolumeMode(mode)).volumes
