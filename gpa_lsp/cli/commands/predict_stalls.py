"""``gpa-lsp predict stalls``: what a profiler would have sampled, by a model of the SM; no GPU."""

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from gpa_lsp.cli.commands import Command, Purpose
from gpa_lsp.cli.inputs import EXIT_BAD_INPUT, judge_problems
from gpa_lsp.cli.options import add_output_argument, add_source_arguments, declare, parse_number
from gpa_lsp.cli.outputs import refuse_standard_output, write_file
from gpa_lsp.cli.predictions import assume_launches, simulate
from gpa_lsp.cli.terminal import ProgressBar, Terminal
from gpa_lsp.execution.prediction.input_kinds import InputKind, find_kind
from gpa_lsp.foundation.errors import InputError

if TYPE_CHECKING:
    from gpa_lsp.execution.prediction.simulation import SimulationSettings

_SUFFIX = ".simulated.gpa-profile.json"
_MOST_ROWS = 200


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add_source_arguments(parser, "a CUDA C++ source, a build, or a report, whose code, GPU and clocks are then taken")
    declare(
        parser,
        """
        --sizes SIZES
        --machine GPU                   (default: that of the report or the architecture)
        --arch SM                       architecture to compile for, or whose code to take out of a build, such as sm_86 (default: that of --machine)
        --seconds S                     seconds for executing the blocks of a launch (default: %(default)s)
        --memory SIZE                   memory for the arrays of a launch, such as 512MiB (default: %(default)s)
        --mode {pipeline,paper,printed}  pipeline simulates an SM and its stalls (default); paper estimates a time alone, as the hybrid framework of
                                        Wang et al. (2019) does, with terms that today's GPUs need; printed leaves these out
        --loop-bound N                  with --mode paper or printed: loops that end where the data says run N iterations (default: as often as the
                                        described data has them)
        --show-trace                    with --mode paper or printed: also print the trace by basic block, the bounds of loops and the branches that
                                        warps miss
        --executions N                  warp instructions to execute of a launch, for about 50 bytes of memory each; three times as many where one
                                        block alone is executed (default: 12,000,000)
        --compare                       of a report: also print measured and simulated samples side by side, by stall reason and line, and how far
                                        they agree
        """,
        sizes="",
        seconds="20",
        memory="8GiB",
        mode="pipeline",
        executions=(parse_number, 12_000_000),
    )
    add_output_argument(parser, "write that comparison as a page of HTML", option="--page")
    what = f"the profile to write (default: SOURCE with {_SUFFIX} in place of its suffix, in the current folder)"
    add_output_argument(parser, what)


def _run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    refuse_standard_output(arguments.output, "a profile")
    refuse_standard_output(arguments.page, "a page beside what is printed")
    compares = arguments.compare or arguments.page is not None
    if compares and find_kind(arguments.source) is not InputKind.REPORT:
        message = "nothing of it was measured that could be compared"
        raise InputError(message, path=arguments.source, remedy="give a report, or leave out --compare and --page")
    if arguments.mode != "pipeline" and (compares or arguments.output is not None):
        message = "that mode gives a time and no samples, so that no profile is written"
        raise InputError(message, path=None, remedy="leave out --mode, or --compare, --page and --output")
    if arguments.mode == "pipeline" and (arguments.loop_bound is not None or arguments.show_trace):
        message = "--loop-bound and --show-trace are of traces that are searched"
        raise InputError(message, path=None, remedy="add --mode paper")
    assumed = assume_launches(arguments, terminal)
    with ProgressBar(terminal) as progress:
        simulation = simulate(arguments, _make_settings(arguments), progress, assumed)
    for problem in simulation.problems:
        terminal.complain(f"{problem.severity.value}: {problem}")
    if simulation.estimates:
        from gpa_lsp.document.simulation_view import build_estimates

        terminal.write_blocks(build_estimates(simulation.estimates, has_trace=arguments.show_trace))
        return judge_problems(simulation.problems)
    if not simulation.launches:
        return EXIT_BAD_INPUT
    from gpa_lsp.execution.simulator.profile_document import make_document

    output = arguments.output or Path(_find_stem(arguments.source) + _SUFFIX)
    write_file(json.dumps(make_document(simulation.launches, simulation.problems)) + "\n", output)
    from gpa_lsp.document.blocks import Paragraph
    from gpa_lsp.document.simulation_view import build_simulation

    terminal.write_blocks([*build_simulation(simulation.launches), Paragraph(text=f"written to {output}")])
    is_compared = not compares or _compare(arguments, output, terminal)
    return judge_problems(simulation.problems) if is_compared else EXIT_BAD_INPUT


def _make_settings(arguments: argparse.Namespace) -> "SimulationSettings":
    from gpa_lsp.execution.hybrid.operations import EVERY_TERM, PRINTED
    from gpa_lsp.execution.prediction.simulation import SimulationSettings  # brings numpy, which --help does without

    return SimulationSettings(
        machine=arguments.machine,
        seconds=arguments.seconds,
        memory_bytes=arguments.memory,
        terms={"pipeline": None, "paper": EVERY_TERM, "printed": PRINTED}[arguments.mode],
        loop_bound=arguments.loop_bound,
        executions=arguments.executions,
    )


def _find_stem(path: Path) -> str:
    """File name without the suffix of its format."""
    from gpa_lsp.profile.read import list_suffixes

    name = path.name
    ending = max((one for one in list_suffixes() if name.lower().endswith(one)), key=len, default=path.suffix)
    return name[: len(name) - len(ending)]


def _compare(arguments: argparse.Namespace, simulated: Path, terminal: Terminal) -> bool:
    """Show measured and simulated samples side by side, on the screen and as a page; False where nothing could be compared."""
    from gpa_lsp.document.answer_view import build_answer
    from gpa_lsp.report.measured_simulation import answer_comparison, answer_overview, compare_simulated
    from gpa_lsp.report.pipeline import analyse

    sides = [
        analyse([path], kernel_filter=arguments.kernel, answers=False).kernels for path in (arguments.source, simulated)
    ]
    found = compare_simulated(*sides)
    answers = [answer_overview(found)] if len(found) > 1 else []
    answers += [answer_comparison(one) for one in found]
    if not answers:
        terminal.complain("no kernel has samples on both sides")
    parts = list(map(build_answer, answers))
    if arguments.compare:
        terminal.write_blocks(parts, max_rows=_MOST_ROWS)
    if arguments.page is not None:
        from gpa_lsp.document.document_page import render_document_page
        from gpa_lsp.document.simulation_view import COMPARISON_LEAD

        title = f"{arguments.source.name}: measured and simulated"
        write_file(render_document_page(title, COMPARISON_LEAD, parts), arguments.page)
    return bool(answers)


COMMAND = Command(
    summary="simulate the stalls of a launch, without a GPU",
    description=(
        "Execute some blocks of each described launch by its machine code, simulate an SM with them, and write what a profiler would have sampled "
        "as a profile that report, advise and check read. All of it is simulated and marked so; nothing is measured. With --mode paper a time "
        "is estimated from loop bounds and branches, of the data where they depend on it, and no profile is written."
    ),
    purpose=Purpose.PREDICT,
    examples=(
        ("predict stalls matmul.cu --machine H100", "the stalls that a launch would have"),
        ("predict stalls bfs.cu --mode paper --show-trace", "a time by loop bounds and branches, and which those are"),
    ),
    add_arguments=_add_arguments,
    run=_run,
)
