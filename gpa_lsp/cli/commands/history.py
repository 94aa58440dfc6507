"""``gpa-lsp history``: what was measured before, and what changed since."""

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpa_lsp.cli.commands import Command, Purpose
from gpa_lsp.cli.inputs import EXIT_BAD_INPUT, EXIT_FOUND, judge_problems
from gpa_lsp.cli.options import add_filter_arguments, add_format_argument, add_output_argument, declare
from gpa_lsp.cli.outputs import write_answer, write_json
from gpa_lsp.cli.terminal import Terminal
from gpa_lsp.foundation.errors import InputError, ProblemSeverity

if TYPE_CHECKING:
    from gpa_lsp.document.history_view import Overview
    from gpa_lsp.report.history.model import Run, RunFilter
    from gpa_lsp.report.history.store import History

_DEFAULT_LIMIT = 10
_PAGE_LIMIT = 60
_MOST_NAMED = 6  # runs in a message


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    what = "only kernels of this source file or folder, or runs of this profile (default: everything)"
    parser.add_argument("paths", metavar="PATH", nargs="*", type=Path, help=what)
    add_filter_arguments(parser)
    limits = f"(default: {_DEFAULT_LIMIT}, on a page {_PAGE_LIMIT}; 0 for all)"
    declare(parser, f"--limit N  show at most N runs of each kernel {limits}")
    page = "one page with the time of each kernel over its runs, which opens from disk without a network"
    add_format_argument(parser, "json", "html", page_help=page)
    add_output_argument(parser)
    declare(parser, "--yes  do not ask before --clear")
    parser.epilog = "RUN is a run's number in the list, if one kernel alone has it (choose by --kernel or PATH), or its id, such as @12."
    actions = parser.add_mutually_exclusive_group()
    declare(
        actions,
        """
        --record PROFILE+  record these profiles or saved reports
        --pin RUN          make RUN the baseline of its kernel
        --unpin RUN        remove the baseline of RUN's kernel
        """,
        record=Path,
        pin=_parse_run,
        unpin=_parse_run,
    )
    words = "print what changed between two runs"
    actions.add_argument("--compare", metavar=("BEFORE", "AFTER"), nargs=2, type=_parse_run, help=words)
    declare(
        actions,
        """
        --delete RUN+  delete these runs
        --clear        delete everything
        --where        print the path and size of the history
        """,
        delete=_parse_run,
    )


def _parse_run(text: str) -> str:
    number = text.removeprefix("@")
    if not (number.isascii() and number.isdigit()):
        raise argparse.ArgumentTypeError(f"{text!r} is not the number of a run")
    return text


def _run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    from gpa_lsp.report.history.store import History  # a Python without SQLite still has all other commands

    is_written = arguments.output is not None or arguments.format == "html"
    if is_written and (arguments.where or _choose_action(arguments) is not _list):
        raise InputError("-o and --html work with the list of runs only", remedy="leave them out")
    if arguments.where:
        return _print_where(arguments, terminal)
    if arguments.clear and not (arguments.yes or _ask(terminal)):
        terminal.complain("gpa-lsp: nothing was deleted")
        return EXIT_FOUND
    with History() as history:
        code = _choose_action(arguments)(history, arguments, terminal)
        for problem in history.problems:
            terminal.complain(f"gpa-lsp: {problem}")
        return code or judge_problems(history.problems)


_Action = Callable[["History", argparse.Namespace, Terminal], int]


def _choose_action(arguments: argparse.Namespace) -> _Action:
    if arguments.record:
        return _record
    if arguments.compare:
        return _compare
    if arguments.pin is not None:
        return _pin
    if arguments.unpin is not None:
        return _unpin
    if arguments.delete:
        return _delete
    return _clear if arguments.clear else _list


def _list(history: "History", arguments: argparse.Namespace, terminal: Terminal) -> int:
    from gpa_lsp.document.history_view import build_history, make_history_document
    from gpa_lsp.report.history.past import build_overview

    wanted, folder = _read_filter(arguments), Path.cwd()

    def look_back() -> "Overview":
        return build_overview(history, wanted, _DEFAULT_LIMIT if arguments.limit is None else arguments.limit or None)

    def draw() -> str:
        from gpa_lsp.cli.history_recording import draw_history  # draws, which takes much to import

        return draw_history(
            history, wanted, _PAGE_LIMIT if arguments.limit is None else arguments.limit or None, folder
        )

    write_answer(
        arguments,
        terminal,
        text=lambda: build_history(look_back(), folder),
        json=lambda: make_history_document(look_back(), history.path),
        html=draw,
    )
    return 0


def _read_filter(arguments: argparse.Namespace) -> "RunFilter":
    from gpa_lsp.report.history.model import RunFilter

    paths = dict.fromkeys(
        spelling
        for path in arguments.paths
        for spelling in (os.path.abspath(path), os.path.realpath(path))  # noqa: PTH100
    )
    return RunFilter(paths=tuple(paths), name=arguments.kernel)


def _record(history: "History", arguments: argparse.Namespace, terminal: Terminal) -> int:
    from gpa_lsp.cli.history_recording import record_profiles  # reads profiles, which takes much to import

    remembered, problems = record_profiles(history, arguments, terminal)
    errors = [problem for problem in problems if problem.severity is ProblemSeverity.ERROR]
    for problem in errors:
        terminal.complain(str(problem))
    _say_recorded(remembered, arguments, terminal)
    return judge_problems(errors) if remembered else EXIT_BAD_INPUT


def _say_recorded(remembered: Any, arguments: argparse.Namespace, terminal: Terminal) -> None:
    from gpa_lsp.document.blocks import Paragraph
    from gpa_lsp.document.history_view import make_run
    from gpa_lsp.document.layout import Line, Style
    from gpa_lsp.editor.history import describe_change_briefly
    from gpa_lsp.kernel.names import shorten_name

    if arguments.format == "json":
        write_json(
            {"schema": "gpa-lsp/recorded/1", "runs": [make_run(found.run) for found in remembered]}, None, terminal
        )
        return
    lines: list[Line] = [
        (
            (f"run {found.run.number}  ", Style.DIM),
            (shorten_name(found.run.measurement.name), Style.TITLE),
            (f"  {describe_change_briefly(found)}", Style.PLAIN),
        )
        for found in remembered
    ]
    terminal.write_blocks([Paragraph(text=line) for line in lines or [(("no measurement in it", Style.DIM),)]])


def _find_run(history: "History", text: str, arguments: argparse.Namespace) -> "Run":
    """Find a run by the number it is listed by among those of its kernel, or by its id (``@12``).

    Raises:
        InputError: there is none, or several kernels have a run of that number.
    """
    from gpa_lsp.kernel.names import shorten_name

    if text.startswith("@"):
        return history.expect_run(int(text[1:]))
    found = [run for run in history.list_runs(_read_filter(arguments)) if run.number == int(text)]
    if not found:
        raise InputError(f"there is no run {text} in the history", remedy="gpa-lsp history lists the runs")
    if len(found) > 1:
        named = ", ".join(f"@{run.run_id} ({shorten_name(run.measurement.name)})" for run in found[:_MOST_NAMED])
        more = " and others" if len(found) > _MOST_NAMED else ""
        raise InputError(f"several kernels have a run {text}", remedy=f"give an id, or --kernel NAME: {named}{more}")
    return found[0]


def _compare(history: "History", arguments: argparse.Namespace, terminal: Terminal) -> int:
    from gpa_lsp.document.history_view import build_run_change, make_run_change_document
    from gpa_lsp.report.changes import Verdict
    from gpa_lsp.report.history.past import compare_recorded

    before, after = (_find_run(history, text, arguments) for text in arguments.compare)
    change = compare_recorded(history, before, after)
    write_answer(
        arguments,
        terminal,
        text=lambda: [build_run_change(change, Path.cwd())],
        json=lambda: make_run_change_document(change),
    )
    return EXIT_BAD_INPUT if change.verdict is Verdict.OTHER_WORK else 0  # as of two reports


def _pin(history: "History", arguments: argparse.Namespace, terminal: Terminal) -> int:
    run = history.pin(_find_run(history, arguments.pin, arguments).run_id)
    terminal.complain(f"gpa-lsp: run {run.number} is the baseline of {_name(run.measurement.name)}")
    return 0


def _unpin(history: "History", arguments: argparse.Namespace, terminal: Terminal) -> int:
    run = _find_run(history, arguments.unpin, arguments)
    baseline = history.find_baseline_of(run)
    is_gone = baseline is not None and history.unpin(baseline.measurement.key)
    words = "no longer has a baseline" if is_gone else "had no baseline"
    terminal.complain(f"gpa-lsp: {_name(run.measurement.name)} {words}")
    return 0


def _delete(history: "History", arguments: argparse.Namespace, terminal: Terminal) -> int:
    rows = {
        int(text[1:]) if text.startswith("@") else _find_run(history, text, arguments).run_id
        for text in arguments.delete
    }
    history.delete(rows)
    terminal.complain(f"gpa-lsp: {_count(len(rows))} deleted")
    return 0


def _clear(history: "History", arguments: argparse.Namespace, terminal: Terminal) -> int:
    del arguments
    terminal.complain(f"gpa-lsp: {_count(history.clear())} deleted")
    return 0


def _print_where(arguments: argparse.Namespace, terminal: Terminal) -> int:
    from gpa_lsp.foundation.numbers import format_bytes
    from gpa_lsp.report.history.model import find_database, measure_bytes

    path = find_database()
    size_bytes = measure_bytes(path)
    if arguments.format == "json":
        write_json({"schema": "gpa-lsp/history-place/1", "database": str(path), "bytes": size_bytes}, None, terminal)
        return 0
    size = "not created yet" if size_bytes is None else format_bytes(size_bytes)
    terminal.print_safely(lambda: terminal.write_text(f"{path}  {size}\n"))
    return 0


def _ask(terminal: Terminal) -> bool:
    if sys.stdin is None or not sys.stdin.isatty():
        raise InputError("--clear deletes every run, pinned ones too", remedy="add --yes to confirm")
    terminal.complain("Delete every run, pinned ones too? [y/N]")
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _name(name: str) -> str:
    from gpa_lsp.kernel.names import shorten_name

    return shorten_name(name)


def _count(count: int) -> str:
    from gpa_lsp.foundation.numbers import format_count_of

    return format_count_of(count, "run") + (" was" if count == 1 else " were")


COMMAND = Command(
    summary="list recorded measurements, and what changed from one to the next",
    description=(
        "Print the runs of each kernel that this user measured on this machine, newest first, with the change since the previous run and since the "
        "pinned baseline. The language server records what it reads; --record does so from the shell."
    ),
    purpose=Purpose.COMPARE,
    examples=(
        ("history", "the recorded measurements of each kernel"),
        ("history --kernel matmul --limit 0", "all runs of one kernel"),
    ),
    add_arguments=_add_arguments,
    run=_run,
)
