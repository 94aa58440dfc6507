"""The server's log on stderr: never waited for. A client that does not read it would otherwise stop the server when the pipe is full."""

import contextlib
import logging
import os
import queue
import threading

from gpa_lsp.basis.visible_text import make_lines_visible, make_visible

MOST_WAITING_RECORDS = 1000
"""Of lines nobody reads. Later ones are dropped."""

_LONGEST_RECORD_CHARS = 20_000


class PatientHandler(logging.Handler):
    """Writes records from a thread of its own.

    Args:
        descriptor: where to; it stays the caller's.
    """

    def __init__(self, descriptor: int) -> None:
        super().__init__()
        self._descriptor = descriptor
        self._waiting: queue.Queue[bytes | None] = queue.Queue(MOST_WAITING_RECORDS)
        self._thread = threading.Thread(target=self._write, daemon=True, name="log")
        self._thread.start()

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record some time, or never."""
        try:
            text = self.format(record)
        except Exception:  # a record that cannot be formatted is a bug, but none that may stop the server
            text = f"a record of {record.name} cannot be written"
        with contextlib.suppress(queue.Full):
            self._waiting.put_nowait(f"{text[:_LONGEST_RECORD_CHARS]}\n".encode(errors="backslashreplace"))

    def close(self) -> None:
        """Write what is left, for a moment."""
        with contextlib.suppress(queue.Full):
            self._waiting.put_nowait(None)
            self._thread.join(timeout=0.5)
        super().close()

    def _write(self) -> None:
        with contextlib.suppress(OSError):
            while (line := self._waiting.get()) is not None:
                view = memoryview(line)
                while view:
                    view = view[os.write(self._descriptor, view) :]


class VisibleFormatter(logging.Formatter):
    """A message is one line, whatever it quotes: stderr may be a terminal. Only the trace of an error takes more."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the name that logging calls
        """The line of the message."""
        return make_visible(super().formatMessage(record))

    def format(self, record: logging.LogRecord) -> str:
        """The line, and the trace of an error."""
        return make_lines_visible(super().format(record))


def start_log() -> None:
    """Send warnings and errors to stderr."""
    handler = PatientHandler(2)
    handler.setFormatter(VisibleFormatter("%(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
