"""``gpa-lsp report graph``: the def-use graph of a kernel's stalls, for other programs."""

import argparse

from gpa_lsp.cli.commands import Command, Purpose
from gpa_lsp.cli.inputs import choose_exit_code, load_report
from gpa_lsp.cli.options import add_input_arguments, add_output_argument, declare
from gpa_lsp.cli.outputs import write_output
from gpa_lsp.cli.terminal import Terminal
from gpa_lsp.document.graph_files import GRAPH_FORMATS
from gpa_lsp.foundation.numbers import format_count_of


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add_input_arguments(parser)
    formats = ",".join(GRAPH_FORMATS)
    declare(
        parser,
        f"""
        --format {{{formats}}}        how to write it (default: dot)
        --around [FILE:]LINE...       only the instructions of this source line, what they are stalled on, and what is stalled on them; repeatable
        --steps N                     number of edges to follow from those lines (default: %(default)s)
        """,
        format="dot",
        around=_parse_line,
        steps=2,
    )
    add_output_argument(parser)


def _parse_line(text: str) -> tuple[str | None, int]:
    file, _, line = text.rpartition(":")
    if not line.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a line, or FILE:LINE")
    return file or None, int(line)


def _run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    from gpa_lsp.document.graph_files import write_graph
    from gpa_lsp.report.pairs import build_def_use_graph, cut_around

    report = load_report(arguments, terminal, answers=False)
    for problem in report.problems:
        terminal.complain(str(problem))
    if not report.kernels:
        return choose_exit_code(report)
    graph = build_def_use_graph(report.kernels[0])
    if arguments.around:
        graph = cut_around(graph, arguments.around, arguments.steps)
    others = len(report.kernels) - 1
    if others:
        more = format_count_of(others, "other kernel")
        terminal.complain(f"note: the graph is of {report.kernels[0].name}; choose among {more} with --kernel")
    write_output(write_graph(graph, arguments.format), arguments.output, terminal)
    return choose_exit_code(report)


COMMAND = Command(
    summary="write the def-use graph of a kernel: which instruction is stalled on which",
    description=(
        "Write a graph of the instructions of a kernel that are stalled and those they are stalled on, with samples, stall reasons, registers and "
        "source lines: as DOT for Graphviz, as GraphML, or as JSON for networkx."
    ),
    purpose=Purpose.READ,
    examples=(
        ("report graph matmul.ncu-rep --kernel matmul -o matmul.dot", "the graph of kernel matmul, for Graphviz"),
        ("report graph matmul.ncu-rep --format json", "the graph of the heaviest kernel as JSON"),
    ),
    add_arguments=_add_arguments,
    run=_run,
)
