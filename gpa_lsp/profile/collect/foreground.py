"""A command run from a terminal: it shares terminal, standard input and process group with us, and what it prints goes straight through."""

import codecs
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import IO, TextIO

from gpa_lsp.foundation.processes.watched_command import Ending
from gpa_lsp.profile.collect.model import CommandResult
from gpa_lsp.profile.collect.output_lines import OutputLines

_PATIENCE_S = 5.0  # For a command that was interrupted along with us to end by itself

_READ_BYTES = 1 << 16
_NOT_FOUND, _NOT_EXECUTABLE = 127, 126


def run_in_foreground(command: Sequence[str], out: TextIO, err: TextIO) -> CommandResult:
    """Run a command and pass on what it prints, as it prints it.

    Args:
        command: program and arguments; no shell looks at them.
        out: gets its standard output.
        err: gets its standard error.

    Raises:
        KeyboardInterrupt: the user interrupted it; it has ended.
    """
    started_s = time.monotonic()
    lines, lock = OutputLines(), threading.Lock()
    try:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    except OSError as error:
        status = _NOT_FOUND if isinstance(error, FileNotFoundError) else _NOT_EXECUTABLE
        tail = (f"{error.filename or command[0]}: {error.strerror}",)
        return CommandResult(ending=Ending.NOT_STARTED, status=status, signal=None, duration_s=0.0, tail=tail)
    relays = [
        threading.Thread(target=_relay, args=(source, target, lines, lock), daemon=True)
        for source, target in ((process.stdout, out), (process.stderr, err))
    ]
    with _pass_on_signals(process):
        for relay in relays:
            relay.start()
        status = _wait(process)
    for relay in relays:
        relay.join(timeout=_PATIENCE_S)  # something it left running in the background may hold the pipe
    return CommandResult(
        ending=Ending.ENDED,
        status=None if status < 0 else status,
        signal=-status if status < 0 else None,
        duration_s=time.monotonic() - started_s,
        tail=lines.tail,
    )


def _wait(process: "subprocess.Popen[bytes]") -> int:
    try:
        return process.wait()
    except KeyboardInterrupt:
        try:
            process.wait(timeout=_PATIENCE_S)  # the terminal has interrupted it as well
        except (subprocess.TimeoutExpired, KeyboardInterrupt):
            process.kill()
            process.wait()
        raise


@contextmanager
def _pass_on_signals(process: "subprocess.Popen[bytes]") -> Iterator[None]:
    """Whoever ends us by a signal means the command."""
    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    if threading.current_thread() is not threading.main_thread():
        numbers = []  # only the main thread may listen
    before = {number: signal.signal(number, lambda number, frame: process.send_signal(number)) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _relay(source: IO[bytes], target: TextIO, lines: OutputLines, lock: threading.Lock) -> None:
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    own_lines = OutputLines()  # of this stream: pieces of two streams must not be joined to one line
    is_open = True
    while data := source.read1(_READ_BYTES):  # type: ignore[attr-defined]
        complete, _ = own_lines.take(data)
        with lock:
            lines.take("".join(f"{line}\n" for line in complete).encode())
            if is_open:
                is_open = _write(target, decoder.decode(data))
    with lock:
        lines.take("".join(f"{line}\n" for line in own_lines.finish()).encode())


def _write(target: TextIO, text: str) -> bool:
    """Whether anybody still listens; the command goes on when nobody does."""
    try:
        target.write(text)
        target.flush()
    except (OSError, ValueError):
        return False
    return True
