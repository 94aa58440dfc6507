"""What comes from the client, before it is a message: headers that may be garbage, and bodies that are no JSON."""

import io
import logging
import re
from typing import BinaryIO

logger = logging.getLogger(__name__)

# No message is as long; a header that announces more is wrong, and where the next message begins is not known any more
MOST_MESSAGE_BYTES = 1 << 30

_LONGEST_HEADER_BYTES = 8192

# At the end of a line: behind a message that was longer than it said, its rest and the next header stand on one
_LENGTH = re.compile(rb"Content-Length[ \t]*:[ \t]*(\d{1,18})[ \t]*\r?\n\Z", re.IGNORECASE)

_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[{]|[\]}]|[:,]|[^\s"\[\]{}:,]+', re.DOTALL)


class IncomingPipe:
    """The way from the client, as pygls reads it: finds its way back to the headers after a message of another length than it said.

    Args:
        stream: the client's messages.
        heard: what was read from it already, and comes first.
    """

    def __init__(self, stream: BinaryIO, heard: bytes = b"") -> None:
        self._stream = stream
        self._heard = io.BytesIO(heard)
        self.body = b""
        """Of the last message."""

    def readline(self) -> bytes:
        """The next header, in the one spelling pygls knows; empty at the end, and when nobody can tell where the next message begins."""
        line = self._heard.readline() or self._stream.readline(_LONGEST_HEADER_BYTES)
        match = _LENGTH.search(line)
        if match is None:
            return line
        length = int(match[1])
        if length > MOST_MESSAGE_BYTES:
            logger.error("the client announced a message of %d bytes; leaving", length)
            return b""
        return b"Content-Length: %d\r\n" % length

    def read(self, count: int) -> bytes:
        """A message's body; shorter when the client is gone."""
        heard = self._heard.read(count)
        self.body = heard + self._stream.read(count - len(heard)) if len(heard) < count else heard
        return self.body


def find_request_id(body: bytes) -> int | str | None:
    """The ``id`` of a request that could not be read, so that it can be answered all the same; None for what is no request.

    Works on what no parser takes: nested a million deep, cut off, or with a member that is no JSON.

    >>> find_request_id(b'{"jsonrpc": "2.0", "id": 7, "method": "x", "params": {"id": 8, "a": [[[')
    7
    >>> find_request_id(b'{"id": 7, "result": [}')
    """
    members: dict[bytes, bytes] = {}
    depth, key, is_value = 0, b"", False
    for match in _TOKEN.finditer(body):
        token = match[0]
        if depth == 1 and token == b":":
            is_value = True
            continue
        if depth == 1 and is_value:
            members.setdefault(key, token)
            is_value = False
        elif depth == 1 and token.startswith(b'"'):
            key = token
        depth += (token in (b"[", b"{")) - (token in (b"]", b"}"))
    found = members.get(b'"id"', b"")
    if b'"method"' not in members:
        return None
    if re.fullmatch(rb"-?\d{1,15}", found):
        return int(found)
    return found[1:-1].decode(errors="replace") if found.startswith(b'"') and b"\\" not in found else None
