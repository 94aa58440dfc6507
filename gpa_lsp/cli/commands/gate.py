"""``gpa-lsp gate``: whether a change keeps to the budgets of its project."""

import argparse
import copy
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from gpa_lsp.cli.commands import Command, Purpose
from gpa_lsp.cli.inputs import EXIT_BAD_INPUT, EXIT_FOUND, load_report, name_places
from gpa_lsp.cli.options import add_filter_arguments, add_format_argument, add_output_argument, declare
from gpa_lsp.cli.outputs import refuse_standard_output, write_answer, write_file, write_notices
from gpa_lsp.cli.terminal import Terminal
from gpa_lsp.execution.prediction.input_kinds import SUFFIXES
from gpa_lsp.foundation.errors import GpaError, InputError, Problem, ProblemSeverity

if TYPE_CHECKING:
    from gpa_lsp.code.binary.model import Cubin
    from gpa_lsp.diagnosis.advice.find_statics import KernelFindings
    from gpa_lsp.document.places import PlaceNames
    from gpa_lsp.execution.prediction.model import KernelPrediction
    from gpa_lsp.report.gate.model import Budgets, GateKernel, GateResult
    from gpa_lsp.report.history.model import Measurement
    from gpa_lsp.report.model import KernelReport

_SUMMARY_VARIABLE = "GITHUB_STEP_SUMMARY"


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    what = "a profile, a saved report, a folder of profiles, device code (cubin, object, program) or a .cu source"
    parser.add_argument("head", metavar="HEAD", nargs="+", type=Path, help=f"after the change: {what}")
    before = f"before the change: the same kinds of input, or {HISTORY!r} for the pinned (else newest) recorded runs"
    parser.add_argument("--base", metavar="BASE", action="extend", nargs="+", required=True, type=Path, help=before)
    declare(
        parser,
        """
        --config FILE  the budgets: a pyproject.toml with [tool.gpa-lsp.gate], or another file with [gate] (default: .gpa-lsp.toml or
                       pyproject.toml in the current folder, else time +3 %%)
        """,
    )
    add_filter_arguments(parser)
    declare(parser, "--arch SM  (default: the newest of a source's compile command, else sm_80)")
    add_format_argument(parser, "json", "github")
    add_output_argument(parser, "also write what exceeds a budget to FILE, as SARIF", option="--sarif")
    summary = (
        f"also write a summary to FILE, as Markdown (default: append it to ${_SUMMARY_VARIABLE} where that is set)"
    )
    add_output_argument(parser, summary, option="--summary")


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
    _print(result, head, places, arguments, terminal)
    if not result.is_judged and not result.has_failed:
        terminal.complain("gpa-lsp: nothing could be judged: name budgets whose figures are known before and after")
    if base.has_failed or head.has_failed or not (result.is_judged or result.has_failed):
        return EXIT_BAD_INPUT
    return EXIT_FOUND if result.has_failed else 0


def _read_budgets(arguments: argparse.Namespace) -> "Budgets":
    from gpa_lsp.report.gate.model import DEFAULT_BUDGETS, find_configuration, read_budgets

    path = arguments.config or find_configuration(Path.cwd())
    return DEFAULT_BUDGETS if path is None else read_budgets(path)


class GateSide(Struct, frozen=True, kw_only=True):
    """One side of a gate."""

    kernels: "tuple[GateKernel, ...]"  # to judge
    problems: tuple[Problem, ...]  # met on the way

    @property
    def has_failed(self) -> bool:
        """Part of it could not be read."""
        return any(problem.severity is ProblemSeverity.ERROR for problem in self.problems)


def _write_files(result: "GateResult", head: GateSide, places: "PlaceNames", arguments: argparse.Namespace) -> None:
    """Raises:
    InputError: a file cannot be written.
    """
    from gpa_lsp.document.gate_view import build_gate, list_gate_notices
    from gpa_lsp.document.markdown import write_markdown

    if arguments.sarif is not None:
        notices = list_gate_notices(result, head.problems)
        write_file(write_notices(notices, places, "sarif"), arguments.sarif)
    given = os.environ.get(_SUMMARY_VARIABLE)
    if arguments.summary is None and not given:
        return
    summary = "".join(f"{line}\n" for line in write_markdown([build_gate(result, places)]))
    if arguments.summary is not None:
        write_file(summary, arguments.summary)
        return
    path = Path(given or "")
    try:
        with path.open("a", encoding="utf-8", errors="backslashreplace") as stream:
            stream.write(summary)
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror or error}", path=path, remedy="give --summary") from error


def _print(
    result: "GateResult", head: GateSide, places: "PlaceNames", arguments: argparse.Namespace, terminal: Terminal
) -> None:
    from gpa_lsp.document.gate_view import build_gate, list_gate_notices, make_gate_document

    write_answer(
        arguments,
        terminal,
        text=lambda: [build_gate(result, places)],
        json=lambda: make_gate_document(result, places),
        notices=lambda: list_gate_notices(result, head.problems),
        places=places,
    )


HISTORY = "history"  # In place of a path: what was measured before, on this computer


def load_side(paths: Sequence[Path], arguments: argparse.Namespace, terminal: Terminal) -> GateSide:
    """The kernels of some paths.

    Raises:
        InputError: ``--kernel`` names no kernel there is.
    """
    from gpa_lsp.report.gate.judge import describe_kernel

    sources = [path for path in paths if path.suffix.lower() in SUFFIXES]
    others = [path for path in paths if path not in sources]
    kernels: list[GateKernel] = []
    problems: list[Problem] = []
    if others:
        given = copy.copy(arguments)
        given.paths = others
        report = load_report(given, terminal)
        problems.extend(report.problems)
        codes = [_read_codes(path) for path in others]
        kernels.extend(describe_kernel(kernel, _find_code(codes, kernel)) for kernel in report.kernels)
    for source in sources:
        try:
            kernels.extend(_load_source(source, arguments, problems))
        except GpaError as error:
            problems.append(Problem.from_error(error))
    return GateSide(kernels=tuple(kernels), problems=tuple(problems))


def _load_source(path: Path, arguments: argparse.Namespace, problems: list[Problem]) -> "Iterable[GateKernel]":
    """Kernels of a source, compiled, and emulated where launches are described; no host code is run."""
    from gpa_lsp.code.binary.cubin import read_cubin
    from gpa_lsp.execution.prediction.predict import predict_code
    from gpa_lsp.kernel.join import list_unmeasured_kernels
    from gpa_lsp.report.gate.judge import describe_kernel
    from gpa_lsp.report.gather import AnalysedKernel, gather_report

    predicted = predict_code(path, kernel=arguments.kernel, compute_capability=arguments.arch)
    unit = predicted.statics.unit
    if unit.cubin is None:
        error = next((one for one in unit.messages if one.severity is ProblemSeverity.ERROR), None)
        text = "it gave no code" if error is None else error.text
        raise InputError(f"does not compile: {text}", path=path, remedy="correct it, then ask again")
    problems.extend((*predicted.problems, *predicted.statics.problems))
    found, met = list_unmeasured_kernels(read_cubin(unit.cubin, path=path))
    problems.extend(met)
    report = gather_report(AnalysedKernel(kernel=kernel) for kernel in found)
    codes = {code.statics.mangled_name: code for code in predicted.statics.kernels}
    emulated: dict[str, list[KernelPrediction]] = {}
    for one in predicted.kernels:
        emulated.setdefault(one.mangled_name, []).append(one)
        problems.extend(one.problems)
    return [
        describe_kernel(kernel, codes[kernel.mangled_name], emulated.get(kernel.mangled_name, ()))
        for kernel in report.kernels
        if kernel.mangled_name in codes
    ]


def _read_codes(path: Path) -> "Sequence[Cubin]":
    """Device code of an input; empty for saved reports, folders and unreadable files, which loading the report complains of."""
    from gpa_lsp.code.binary.containers import find_cubins, recognise_container
    from gpa_lsp.code.binary.cubin import read_cubin
    from gpa_lsp.profile.read import read_profile
    from gpa_lsp.report.saved import is_saved_report

    if not path.is_file() or is_saved_report(path):
        return ()
    try:
        if recognise_container(path) is not None:
            return tuple(find_cubins(path))
        images = [module.image for module in read_profile(path).modules.values() if module.image is not None]
        return tuple(read_cubin(image) for image in images)
    except GpaError:
        return ()


def _find_code(codes: "Sequence[Sequence[Cubin]]", kernel: "KernelReport") -> "KernelFindings | None":
    """Static findings of a kernel's code; None where no, or more than one, version of it is at hand."""
    from gpa_lsp.code.binary.cubin import read_compiled_limits
    from gpa_lsp.diagnosis.advice.find_statics import find_static_findings
    from gpa_lsp.diagnosis.analyses.static.model import BlockOrigin, KnownBlock
    from gpa_lsp.kernel.join import list_unmeasured_kernels

    capability = kernel.device.compute_capability
    held = [
        cubin
        for cubins in codes
        for cubin in cubins
        if kernel.mangled_name in cubin.functions
        and (capability is None or not cubin.sm or divmod(cubin.sm, 10) == capability)
    ]
    if len({cubin.sha256 for cubin in held}) != 1:
        return None
    blocks = []
    if kernel.configuration.block is not None and all(kernel.configuration.block):
        x, y, z = kernel.configuration.block
        shared = kernel.configuration.shared_dynamic_bytes
        blocks.append(
            KnownBlock(threads=x * y * z, origin=BlockOrigin.PROFILE, dynamic_shared_bytes=shared, shape=(x, y, z))
        )
    try:
        (found,), _ = list_unmeasured_kernels(held[0], choose=lambda names: [kernel.mangled_name])
        return find_static_findings(found, limits=read_compiled_limits(held[0]), blocks=blocks)
    except GpaError:
        return None


def load_remembered(head: "Sequence[GateKernel]") -> GateSide:
    """Recorded runs of kernels on the same GPU: the pinned run of each, else the newest from another profile.

    Raises:
        InputError: the history cannot be read.
    """
    from gpa_lsp.report.history.store import History

    with History() as history:
        runs = history.list_runs()
        problems = history.problems
    found = []
    for kernel in head:
        report = kernel.report
        assert report is not None
        own = str(report.profile_path.resolve()) if report.profile_path is not None else None
        alike = [
            run
            for run in runs
            if run.measurement.key.mangled_name == kernel.mangled_name
            and run.measurement.key.device == (report.device.name or "")
            and (run.is_baseline or run.measurement.profile != own)
        ]
        alike.sort(key=lambda run: (run.is_baseline, run.measurement.measured_ns), reverse=True)
        if alike:
            found.append(_describe_run(alike[0].measurement))
    return GateSide(kernels=tuple(found), problems=tuple(problems))


def _describe_run(measurement: "Measurement") -> "GateKernel":
    from gpa_lsp.report.gate.model import Figure, GateKernel, Metric, Origin

    values: Mapping[Metric, float | None] = {
        Metric.REGISTERS: measurement.launch.registers_per_thread,
        Metric.INSTRUCTIONS: measurement.executed_instructions,
    }
    return GateKernel(
        mangled_name=measurement.key.mangled_name,
        name=measurement.name,
        figures={
            (metric, Origin.MEASURED): Figure(value=value) for metric, value in values.items() if value is not None
        },
        work=measurement,
    )


COMMAND = Command(
    summary="compare with a base under the budgets of a project, for CI",
    description=(
        "Compare kernels with a base, and exit with 1 when one exceeds a budget for time, executed instructions, registers, occupancy, spills, "
        "local accesses or sectors (without a configuration: for time, by more than 3 % and the noise). Figures are measured, emulated (sources with "
        "described launches) or read from the code; only figures of one kind are compared. Nothing of the project is run. For an untrusted "
        "change, give the configuration of the base with --config. The exit status is 2 when nothing could be judged."
    ),
    purpose=Purpose.COMPARE,
    examples=(
        ("gate after.ncu-rep --base before.ncu-rep", "exit with 1 when a budget is exceeded"),
        ("gate after.ncu-rep --base before.ncu-rep --format github", "the same, as annotations of GitHub Actions"),
    ),
    add_arguments=_add_arguments,
    run=_run,
)
