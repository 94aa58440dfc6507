"""What a command prints, as clean lines in bounded memory, however much it prints and whatever bytes."""

import re
from collections import deque

_MAX_LINE_BYTES = 2_000
_TAIL_LINES = 200
_MARKED_LINES = 40

# What Nsight Compute puts in front of the lines that explain a failure; the application may print thousands after them
_MARKS = (b"==ERROR==", b"==WARNING==")

_CONTROL_SEQUENCE = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]?"  # colours, cursor
    r"|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?"  # titles, links and other strings
    r"|\x1b[ -/]*[0-~]?"  # two characters
    r"|[\x00-\x08\x0b-\x1f\x7f-\x9f]"  # single characters, but for the tab
)
# Marks that reorder what is read: output shown in an editor must not be able to hide anything
_DIRECTION = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")

_KERNEL = re.compile(r'==PROF== Profiling "(.+?)"')


class OutputLines:
    """Takes bytes as they come and gives lines.

    A line ends at a line feed; what a carriage return overwrites on a screen is left out; a line of more than 2,000 bytes is cut.

    Args:
        tail_lines: how many of the last lines are kept.

    >>> lines = OutputLines()
    >>> lines.take(b"10 %\\r100 %\\r\\n\\x1b[31mfai"), lines.take(b"led\\x1b[0m\\nrest"), lines.finish()
    ((['100 %'], 0), (['failed'], 0), ['rest'])
    """

    def __init__(self, tail_lines: int = _TAIL_LINES) -> None:
        self._rest = b""
        self._tail: deque[bytes] = deque(maxlen=tail_lines)
        self._marked: deque[bytes] = deque(maxlen=_MARKED_LINES)

    def take(self, data: bytes, limit: int | None = None) -> tuple[list[str], int]:
        """Take some bytes.

        Args:
            limit: how many lines are wanted; the others only go into the tail, which costs next to nothing. None for all.
        """
        *complete, rest = data.split(b"\n")
        if not complete:
            self._rest = _cut(self._rest + rest)
            return [], 0
        complete[0] = self._rest + complete[0]
        self._rest = _cut(rest)
        self._keep(complete, may_be_marked=_is_marked(data) or _is_marked(complete[0]))
        wanted = complete if limit is None else complete[:limit]
        return [clean_line(line) for line in wanted], len(complete) - len(wanted)

    def finish(self) -> list[str]:
        """The last line, when it has no end."""
        if not self._rest:
            return []
        last, self._rest = self._rest, b""
        self._keep([last], may_be_marked=True)
        return [clean_line(last)]

    @property
    def tail(self) -> tuple[str, ...]:
        """The marked lines that are not among the last ones, and the last ones."""
        last = list(self._tail)
        earlier = [line for line in self._marked if line not in last]
        return tuple(clean_line(line) for line in (*earlier, *last))

    def _keep(self, lines: list[bytes], *, may_be_marked: bool) -> None:
        if may_be_marked:
            self._marked.extend(_cut(line) for line in lines if _is_marked(line))
        count = self._tail.maxlen or 0
        self._tail.extend(_cut(line) for line in lines[-count:])


def _is_marked(data: bytes) -> bool:
    return any(mark in data for mark in _MARKS)


def _cut(line: bytes) -> bytes:
    """As much of a line as it takes to show it, also when more of it is still to come."""
    returns = line[len(line.rstrip(b"\r")) :]
    shown = line[line.rstrip(b"\r").rfind(b"\r") + 1 :]
    return shown if len(shown) <= _MAX_LINE_BYTES + 1 else shown[: _MAX_LINE_BYTES + 1] + returns[:1]


def clean_line(line: bytes) -> str:
    """One line as it stands on a screen.

    >>> clean_line(b"a\\x1b[1;31mb\\x1b]0;title\\x07c\\xff\\td\\r")
    'abc\\ufffd\\td'
    """
    shown = line.rstrip(b"\r")
    shown = shown[shown.rfind(b"\r") + 1 :]
    is_long = len(shown) > _MAX_LINE_BYTES
    text = _DIRECTION.sub("", _CONTROL_SEQUENCE.sub("", shown[:_MAX_LINE_BYTES].decode("utf-8", errors="replace")))
    return f"{text} …" if is_long else text


def find_profiled_kernel(line: str) -> str | None:
    """The kernel that Nsight Compute says it has measured; None for any other line.

    >>> find_profiled_kernel('==PROF== Profiling "saxpy" - 0: 0%....50%....100% - 19 passes')
    'saxpy'
    """
    found = _KERNEL.match(line)
    return None if found is None else found.group(1)
