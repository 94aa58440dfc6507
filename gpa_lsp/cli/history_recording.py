"""Recording profiles of a command line in the history, and the page of the history."""

import argparse
import copy
import time
from collections.abc import Mapping
from pathlib import Path

from gpa_lsp.cli.inputs import load_report, locate_sources
from gpa_lsp.cli.terminal import Terminal
from gpa_lsp.document.document_page import render_document_page
from gpa_lsp.document.html_report.changes_section import KernelPast, build_history_page
from gpa_lsp.document.places import show_path
from gpa_lsp.foundation.errors import Problem
from gpa_lsp.foundation.numbers import format_dim3
from gpa_lsp.report.history.model import KernelHistory, Run, RunFilter, TimeCourse
from gpa_lsp.report.history.past import build_courses, remember_kernels
from gpa_lsp.report.history.recording import describe_surroundings
from gpa_lsp.report.history.store import History
from gpa_lsp.report.kernel_lines import find_causes
from gpa_lsp.report.measured_files import find_files, read_measured_ns
from gpa_lsp.report.model import KernelReport, Report


def record_profiles(
    history: History, arguments: argparse.Namespace, terminal: Terminal
) -> tuple[tuple[KernelHistory, ...], tuple[Problem, ...]]:
    """Remember what the profiles of ``--record`` hold.

    Raises:
        InputError: ``--kernel`` names no kernel there is, or the history cannot be written.
    """
    found: list[KernelHistory] = []
    problems: list[Problem] = []
    for path in arguments.record:
        one = copy.copy(arguments)
        one.paths = [path]
        report = load_report(one, terminal)
        problems.extend(report.problems)
        for kernels in _group_by_profile(report).values():
            found.extend(_record(history, kernels, path, arguments))
    return tuple(found), tuple(problems)


def _group_by_profile(report: Report) -> Mapping[Path | None, list[KernelReport]]:
    groups: dict[Path | None, list[KernelReport]] = {}
    for kernel in report.kernels:
        groups.setdefault(kernel.profile_path, []).append(kernel)
    return groups


def _record(
    history: History, kernels: list[KernelReport], path: Path, arguments: argparse.Namespace
) -> list[KernelHistory]:
    modified_ns = _read_modified(kernels[0].profile_path) or _read_modified(path) or time.time_ns()
    locator = locate_sources(arguments)
    read_ns = time.time_ns()
    files = find_files(Report(problems=(), kernels=tuple(kernels)), locator, modified_ns, history.find_source)
    roots = [Path.cwd(), *(Path(target) for _, target in arguments.map)]
    described = [
        (
            kernel,
            describe_surroundings(
                kernel,
                files,
                find_causes(kernel),
                measured_ns=read_measured_ns(kernel, modified_ns),
                read_ns=read_ns,
                roots=roots,
            ),
        )
        for kernel in kernels
    ]
    return [found for found in remember_kernels(history, described) if found is not None]


def _read_modified(path: Path | None) -> int | None:
    try:
        return None if path is None else path.stat().st_mtime_ns
    except OSError:
        return None


def draw_history(history: History, wanted: RunFilter, most_runs: int | None, folder: Path) -> str:
    """HTML page of the matching kernels, with at most *most_runs* runs of each; None for all.

    Raises:
        InputError: the history cannot be read.
        MissingToolError: what draws charts is not installed.
    """
    kernels = [_describe(run, course, folder) for run, course in build_courses(history, wanted, most_runs)]
    return render_document_page(*build_history_page(kernels))


def _describe(newest: Run, course: TimeCourse, folder: Path) -> KernelPast:
    measurement = newest.measurement
    launch = measurement.launch
    facts = (
        measurement.key.device,
        "" if launch.grid is None else f"grid {format_dim3(launch.grid)}",
        "" if launch.block is None else f"block {format_dim3(launch.block)}",
        show_path(measurement.key.home, folder),
    )
    return KernelPast(name=measurement.name, facts=facts, course=course)
