"""Standard input and output as a way for messages, one a line; nothing else that reads or prints gets at them."""

import os
import sys
import threading
from collections.abc import Iterator
from typing import BinaryIO

MOST_LINE_BYTES = 4 << 20
"""Of a message to the server. Questions are short; what is longer is thrown away as it comes."""


class Pipes:
    """Both ways to a client.

    Args:
        reading: its lines.
        writing: ours.
    """

    def __init__(self, reading: BinaryIO, writing: BinaryIO) -> None:
        self._reading = reading
        self._writing = writing
        self._turn = threading.Lock()
        self.is_broken = False
        """The client does not read any more."""

    def read_lines(self) -> Iterator[bytes | None]:
        """Its lines as they come, until it leaves; None for one that was too long. Empty ones are left out."""
        while not self.is_broken:
            line = self._reading.readline(MOST_LINE_BYTES)
            if not line:
                return
            if len(line) == MOST_LINE_BYTES and not line.endswith(b"\n"):
                self._skip_line()
                yield None
            elif line.strip():
                yield line

    def write(self, line: bytes) -> None:
        """Send a line, whole; does nothing when nobody reads."""
        with self._turn:
            if self.is_broken:
                return
            try:
                self._writing.write(line)
                self._writing.flush()
            except OSError:
                self.is_broken = True

    def _skip_line(self) -> None:
        while (rest := self._reading.readline(MOST_LINE_BYTES)) and not rest.endswith(b"\n"):
            pass


def take_standard_pipes() -> Pipes:
    """The process's own, for the protocol alone: who prints from now on prints to standard error, and who reads finds the end."""
    sys.stdout.flush()
    pipes = Pipes(os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb"))
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    os.close(empty)
    os.dup2(2, 1)
    return pipes
