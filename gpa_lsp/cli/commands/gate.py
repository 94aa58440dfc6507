"""``gpa-lsp gate``: whether a change keeps to the budgets of its project."""

import argparse
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

from gpa_lsp.cli.commands import Command, Purpose
from gpa_lsp.cli.gate_inputs import HISTORY, GateSide, load_remembered, load_side
from gpa_lsp.cli.inputs import EXIT_BAD_INPUT, EXIT_FOUND, add_filter_arguments, name_places
from gpa_lsp.cli.outputs import add_output_argument, refuse_standard_output, write_file
from gpa_lsp.cli.static_check import parse_architecture
from gpa_lsp.cli.terminal import Terminal
from gpa_lsp.foundation.errors import InputError, ProblemSeverity

if TYPE_CHECKING:
    from gpa_lsp.document.places import PlaceNames
    from gpa_lsp.report.gate.model import Budgets, GateResult

_SUMMARY_VARIABLE = "GITHUB_STEP_SUMMARY"


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    what = "a profile, a saved report, a folder of profiles, device code (cubin, object, program) or a .cu source"
    parser.add_argument("head", metavar="HEAD", nargs="+", type=Path, help=f"after the change: {what}")
    parser.add_argument(
        "--base",
        action="extend",
        metavar="BASE",
        nargs="+",
        required=True,
        type=Path,
        help=f"before it: the same, or the word {HISTORY!r} for the pinned or newest runs that are remembered here",
    )
    parser.add_argument(
        "--config",
        metavar="FILE",
        type=Path,
        help="the budgets: a pyproject.toml with [tool.gpa-lsp.gate], or another file with [gate] "
        "(default: .gpa-lsp.toml, else pyproject.toml of the current folder, else time +3 %%)",
    )
    add_filter_arguments(parser)
    parser.add_argument(
        "--arch",
        metavar="SM",
        type=parse_architecture,
        help="architecture to compile sources for, such as sm_86 (default: the newest of their compile command, else sm_80)",
    )
    parser.add_argument(
        "--format", choices=("text", "json", "github"), default="text", help="how to print (default: text)"
    )
    add_output_argument(parser, "also write what exceeds a budget to FILE, as SARIF", option="--sarif")
    add_output_argument(
        parser,
        f"also write a summary to FILE, as Markdown (default: append it to ${_SUMMARY_VARIABLE} where that is set)",
        option="--summary",
    )


def _run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    for path in (arguments.sarif, arguments.summary):
        refuse_standard_output(path, "what is written beside the answer")
    from gpa_lsp.report.gate.judge import judge_kernels  # loads numpy, which --help and --version do without

    budgets = _read_budgets(arguments)
    head = load_side(arguments.head, arguments, terminal)
    is_remembered = [str(path) for path in arguments.base] == [HISTORY]
    base = load_remembered(head.kernels) if is_remembered else load_side(arguments.base, arguments, terminal)
    result = judge_kernels(base.kernels, head.kernels, budgets)
    places = name_places(arguments)
    for side in (base, head):
        for problem in side.problems:
            if problem.severity is ProblemSeverity.ERROR:
                terminal.complain(str(problem))
    _write_files(result, head, places, arguments)
    terminal.print_safely(lambda: _print(result, places, arguments, terminal))
    if not result.is_judged and not result.has_failed:
        terminal.complain("gpa-lsp: nothing could be judged: name budgets whose figures are known before and after")
    if base.has_failed or head.has_failed or not (result.is_judged or result.has_failed):
        return EXIT_BAD_INPUT
    return EXIT_FOUND if result.has_failed else 0


def _read_budgets(arguments: argparse.Namespace) -> "Budgets":
    from gpa_lsp.report.gate.budgets import DEFAULT_BUDGETS, find_configuration, read_budgets

    path = arguments.config or find_configuration(Path.cwd())
    return DEFAULT_BUDGETS if path is None else read_budgets(path)


def _write_files(result: "GateResult", head: GateSide, places: "PlaceNames", arguments: argparse.Namespace) -> None:
    """Raises:
    InputError: a file cannot be written.
    """
    if arguments.sarif is not None:
        from gpa_lsp.document.gate_sarif import build_gate_sarif
        from gpa_lsp.report.model import Report

        log = build_gate_sarif(result, Report(problems=head.problems, kernels=()), places, Path.cwd())
        write_file(json.dumps(log, indent=2) + "\n", arguments.sarif)
    given = os.environ.get(_SUMMARY_VARIABLE)
    if arguments.summary is None and not given:
        return
    from gpa_lsp.document.gate_markdown import render_gate_summary

    summary = render_gate_summary(result, places)
    if arguments.summary is not None:
        write_file(summary, arguments.summary)
        return
    path = Path(given or "")
    try:
        with path.open("a", encoding="utf-8", errors="backslashreplace") as stream:
            stream.write(summary)
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror or error}", path=path, remedy="give --summary") from error


def _print(result: "GateResult", places: "PlaceNames", arguments: argparse.Namespace, terminal: Terminal) -> None:
    """Each format's renderer is loaded only when it is asked for."""
    from gpa_lsp.document.gate_text import make_gate_document, render_gate, render_gate_github

    if arguments.format == "json":
        terminal.write_text(json.dumps(make_gate_document(result, places), indent=2) + "\n")
    elif arguments.format == "github":
        terminal.write_text("".join(line + "\n" for line in render_gate_github(result, places)))
    else:
        terminal.write_lines(render_gate(result, places, terminal.width if terminal.is_interactive else None))


COMMAND = Command(
    summary="compare with a base under the budgets of a project, for CI",
    description=(
        "Compare kernels with a base, and end with 1 where one exceeds a budget: time, executed instructions, registers, occupancy, spills, local "
        "accesses or sectors; without a configuration time by more than 3 % and the noise. Figures are measured, emulated (sources with described "
        "launches) or of the code, and only those of one kind are compared. Nothing of the project is run. For a change that is not trusted, "
        "give the configuration of the base (--config). The exit status is 2 when nothing could be judged."
    ),
    purpose=Purpose.COMPARE,
    examples=(
        ("gate after.ncu-rep --base before.ncu-rep", "exit code 1 where a budget is exceeded"),
        ("gate after.ncu-rep --base before.ncu-rep --format github", "the same as annotations of GitHub Actions"),
    ),
    add_arguments=_add_arguments,
    run=_run,
)
