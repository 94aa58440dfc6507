"""``gpa-lsp check``: the hot places of profiles, or what the code of sources says, one per line."""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gpa_lsp.cli.commands import Command, Purpose
from gpa_lsp.cli.inputs import EXIT_BAD_INPUT, EXIT_FOUND, choose_exit_code, judge_problems, load_report, name_places
from gpa_lsp.cli.options import add_format_argument, add_input_arguments, add_mode_argument, declare
from gpa_lsp.cli.outputs import write_answer, write_report_json
from gpa_lsp.cli.predictions import assume_launches, list_line_waits
from gpa_lsp.cli.terminal import Terminal
from gpa_lsp.execution.prediction.input_kinds import SUFFIXES
from gpa_lsp.foundation.errors import GpaError, InputError, ProblemSeverity

if TYPE_CHECKING:
    from gpa_lsp.diagnosis.advice.static_model import StaticFinding
    from gpa_lsp.document.findings import Finding
    from gpa_lsp.document.places import PlaceNames
    from gpa_lsp.execution.prediction.static_source import SourceStatics
    from gpa_lsp.kernel.line_waits import LineWait
    from gpa_lsp.report.model import Report
    from gpa_lsp.report.saved.report_records import SavedFinding


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add_input_arguments(parser, also="a source (.cu)")
    add_format_argument(parser, "json", "sarif", "github")
    declare(parser, "--expand")
    add_mode_argument(parser)
    declare(
        parser,
        """
        --min-share PERCENT                   least share of a kernel's samples that makes a finding (default: %(default)s)
        --fail-on {none,finding,problem}...   exit with 1 on a finding, or on a problem that costs part of the answer (default: none); repeatable
        --arch SM                             (default: the newest of a source's compile command, else sm_80)
        --stalls                              of sources: also tell whether kernels are stalled on the lines of findings, by simulating their launches
        """,
        min_share="5",
    )


def _run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    if are_sources(arguments.paths):
        return check_sources(arguments, terminal)
    from gpa_lsp.document.findings import find_findings  # loads numpy, which --help and --version do without

    has_answers = arguments.format == "json"  # the others print none
    report = load_report(arguments, terminal, answers=has_answers, mode=arguments.mode)
    places = name_places(arguments)
    findings = find_findings(report, arguments.min_share, places.read_line)
    code = choose_exit_code(report) or _judge(report, findings, arguments.fail_on)
    _print(report, findings, places, arguments, terminal)
    return code


def _print(
    report: "Report",
    findings: "Sequence[Finding]",
    places: "PlaceNames",
    arguments: argparse.Namespace,
    terminal: Terminal,
) -> None:
    if arguments.format == "json":
        rows = _make_rows(findings, places)
        write_report_json(report, None, terminal, is_expanded=arguments.expand, findings=rows)
        return
    from gpa_lsp.document.check_view import build_check, list_notices

    write_answer(
        arguments,
        terminal,
        text=lambda: build_check(report, findings, places, arguments.min_share),
        notices=lambda: list_notices(report, findings),
        places=places,
        is_listing=True,
    )


def _make_rows(findings: "Sequence[Finding]", places: "PlaceNames") -> "Iterator[SavedFinding]":
    """The ``findings`` of a JSON report, in their order."""
    from gpa_lsp.document.check_view import describe_finding
    from gpa_lsp.report.saved.report_records import SavedFinding

    for finding in findings:
        place = finding.place
        yield SavedFinding(
            kernel=finding.kernel.mangled_name,
            profile_path=None if finding.profile_path is None else str(finding.profile_path),
            file=None if place is None else place.file,
            line=None if place is None else place.line,
            shown_file=None if place is None else places.show_file(finding.kernel, place.file),
            function=finding.function,
            share=finding.share,
            samples=finding.share.part_samples,
            self_samples=finding.self_samples,
            latency_samples=finding.latency_samples,
            called_samples=finding.called_samples,
            by_reason=finding.by_reason,
            message=describe_finding(finding),
        )


def _judge(report: "Report", findings: "Sequence[Finding]", fail_on: Sequence[str]) -> int:
    costly = any(problem.severity is not ProblemSeverity.NOTE for problem in report.problems)
    is_any = bool(findings) or any(kernel.code_findings for kernel in report.kernels)
    failed = ("finding" in fail_on and is_any) or ("problem" in fail_on and costly)
    return EXIT_FOUND if failed else 0


COMMAND = Command(
    summary="print the hot places of profiles, or findings in the code of sources, as file:line: info: ...",
    description=(
        "Print the places of each kernel with most of its stall samples, and what their warps were stalled on. A CUDA source (.cu) is compiled "
        "instead: printed are its registers, occupancy and findings in its code, with nothing measured and nothing run."
    ),
    purpose=Purpose.READ,
    examples=(
        ("check matmul.ncu-rep", "the hot lines of a profile, as file:line"),
        ("check matmul.cu --arch sm_90", "findings in the code of a source, without a profile"),
    ),
    add_arguments=_add_arguments,
    run=_run,
)


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
    # Brings numpy, which --help does without
    from gpa_lsp.execution.prediction.static_source import examine_source

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
    _print_statics(sources, findings, waits, arguments, terminal)
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


def _print_statics(
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
