"""How a program ended that a command ran for the user: :func:`find_exit_code`."""

from typing import TYPE_CHECKING

from gpa_lsp.cli.inputs import EXIT_BAD_INPUT, EXIT_FOUND, EXIT_INTERRUPTED
from gpa_lsp.cli.terminal import Terminal

if TYPE_CHECKING:
    from gpa_lsp.foundation.processes.watched_command import CommandEnd


def find_exit_code(end: "CommandEnd", terminal: Terminal, *, sooner: str = "", crash: str = "") -> int:
    """The program's own status, as shells have it; 2 where it was not started, 130 where the user ended it, 1 where we did."""
    from gpa_lsp.foundation.processes.watched_command import Ending, describe_signal

    if end.ending is Ending.NOT_STARTED:
        terminal.complain(f"gpa-lsp: the program was not started: {end.words}")
        return EXIT_BAD_INPUT
    if end.ending is not Ending.ENDED:
        more = f"; {sooner}" if sooner and end.ending is Ending.TIMED_OUT else ""
        terminal.complain(f"gpa-lsp: the program did not end by itself: {end.ending.value}{more}")
        return EXIT_INTERRUPTED if end.ending is Ending.CANCELLED else EXIT_FOUND
    if crash or (end.status is not None and end.status < 0):
        terminal.complain(f"gpa-lsp: {crash or f'the program was ended by {describe_signal(-(end.status or 0))}'}")
    return EXIT_FOUND if end.status is None else end.status if end.status >= 0 else 128 - end.status
