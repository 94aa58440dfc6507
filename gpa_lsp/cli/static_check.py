"""``gpa-lsp check SOURCE.cu``: static findings of sources."""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gpa_lsp.cli.inputs import EXIT_BAD_INPUT, EXIT_FOUND, judge_problems, name_places
from gpa_lsp.cli.outputs import write_answer
from gpa_lsp.cli.predictions import assume_launches, list_line_waits
from gpa_lsp.cli.terminal import Terminal
from gpa_lsp.execution.prediction.input_kinds import SUFFIXES
from gpa_lsp.foundation.errors import GpaError, InputError, ProblemSeverity

if TYPE_CHECKING:
    from gpa_lsp.diagnosis.advice.static_model import StaticFinding
    from gpa_lsp.execution.prediction.static_source import SourceStatics
    from gpa_lsp.kernel.line_waits import LineWait


def are_sources(paths: Sequence[Path]) -> bool:
    """Whether paths are sources to compile.

    Raises:
        InputError: some are and others are not.
    """
    sources = [path for path in paths if path.suffix.lower() in SUFFIXES]
    if sources and len(sources) < len(paths):
        raise InputError(
            "sources and profiles cannot be checked together", path=sources[0], remedy="check them separately"
        )
    return bool(sources)


def check_sources(arguments: argparse.Namespace, terminal: Terminal) -> int:
    """Compile the sources of a command line and print static findings; return the exit code."""
    from gpa_lsp.execution.prediction.static_source import (
        examine_source,  # these bring numpy, which --help does without
    )

    sources: list[SourceStatics] = []
    has_failed = False
    for path in arguments.paths:
        try:
            sources.append(examine_source(path, compute_capability=arguments.arch, kernel=arguments.kernel))
        except GpaError as error:
            terminal.complain(str(error))
            has_failed = True
    found = [finding for source in sources for kernel in source.kernels for finding in kernel.findings]
    findings = sorted(found, key=lambda one: (one.file or "", one.line or 0, -one.weight))
    waits = _simulate(sources, arguments, terminal) if arguments.stalls else None
    _print(sources, findings, waits, arguments, terminal)
    if arguments.kernel is not None and not has_failed and not any(source.kernels for source in sources):
        raise InputError(
            f"no kernel of the sources is named {arguments.kernel!r}", remedy="leave out --kernel to see all"
        )
    if has_failed or any(source.unit.has_failed for source in sources):
        return EXIT_BAD_INPUT
    code = judge_problems(problem for source in sources for problem in source.problems)
    costly = any(one.severity is not ProblemSeverity.NOTE for source in sources for one in source.problems)
    is_failing = ("finding" in arguments.fail_on and findings) or ("problem" in arguments.fail_on and costly)
    return code or (EXIT_FOUND if is_failing else 0)


def _simulate(
    sources: "Sequence[SourceStatics]", arguments: argparse.Namespace, terminal: Terminal
) -> "dict[str, tuple[LineWait, ...]]":
    """Stalled lines of kernels with findings, by simulating their launches; prints which cannot be simulated."""
    from gpa_lsp.execution.prediction.simulation import DEFAULT_SIMULATION

    found: dict[str, tuple[LineWait, ...]] = {}
    for source in sources:
        if not any(kernel.findings for kernel in source.kernels):
            continue
        one = argparse.Namespace(
            source=source.path,
            kernel=arguments.kernel,
            arch=arguments.arch or source.unit.compute_capability,
            launches=None,
            sizes="",
        )
        try:
            found |= list_line_waits(one, DEFAULT_SIMULATION, terminal, assume_launches(one, terminal))
        except GpaError as error:
            terminal.complain(f"stalls unknown: {error}")
    return found


def _print(
    sources: "Sequence[SourceStatics]",
    findings: "Sequence[StaticFinding]",
    waits: "Mapping[str, Sequence[LineWait]] | None",
    arguments: argparse.Namespace,
    terminal: Terminal,
) -> None:
    from gpa_lsp.document.static_view import build_static, list_static_notices, make_static_json

    places = name_places(arguments)
    write_answer(
        arguments,
        terminal,
        text=lambda: build_static(sources, findings, places, waits),
        json=lambda: make_static_json(sources, waits),
        notices=lambda: list_static_notices(sources, findings, waits),
        places=places,
        is_listing=True,
    )
