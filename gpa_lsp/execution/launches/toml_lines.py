"""On which line each table of a TOML text begins: the standard library's reader does not say."""

import re

Place = tuple[str | int, ...]  # Keys and indexes that lead to a table or value, e.g. ``("launch", 0, "arguments", 2)``.

_TOKEN = re.compile(
    r'[ \t\r]*+(?:(?P<string>"""(?:[^"\\]|\\.|"{1,2}(?!"))*+"{3,5}|\'\'\'(?:[^\']|\'{1,2}(?!\'))*+\'{3,5}|"(?:[^"\\\n]|\\.)*+"|\'[^\'\n]*+\')'
    r"|(?P<comment>#[^\n]*+)|(?P<newline>\n)|(?P<mark>[\[\]{},=.])|(?P<bare>[^\s\[\]{},=.\"'#]++)|(?P<other>.))",
    re.DOTALL,
)


class TomlLines:
    """Places and their lines.

    Args:
        text: TOML that is known to be right; of any other text the answers are good for nothing, but there are some.

    >>> lines = TomlLines('a = 1\\n[[t]]\\nx = [\\n  { y = 1 },\\n  { y = 2 },\\n]\\n')
    >>> lines.find(("t", 0)), lines.find(("t", 0, "x", 1)), lines.find(("t", 0, "x", 1, "y")), lines.find(("t", 0, "absent"))
    (2, 5, 5, 2)
    """

    def __init__(self, text: str) -> None:
        self._lines: dict[Place, int] = {(): 1}
        self._scan(text)

    def find(self, place: Place) -> int:
        """1-based line of a place, or of the nearest thing around it that is there."""
        while place not in self._lines:
            place = place[:-1]
        return self._lines[place]

    def _scan(self, text: str) -> None:
        scanner = _Scanner(self._lines)
        line = 1
        place = 0
        while place < len(text):
            match = _TOKEN.match(text, place)
            if match is None:  # only blanks are left
                return
            kind = match.lastgroup or ""
            token = match[kind]
            if kind != "comment":
                scanner.take(kind, token, line)
            line += token.count("\n")
            place = match.end()


class _Scanner:
    """Follows headers, keys and brackets."""

    def __init__(self, lines: dict[Place, int]) -> None:
        self._lines = lines
        self._counts: dict[Place, int] = {}
        self._table: Place = ()
        self._key: list[str] = []
        self._key_line = 0
        self._open: list[tuple[str, Place, int]] = []
        """Open brackets in values: (bracket, where its content belongs, index of the next element)."""
        self._header = 0
        """Opening brackets of a table's header that were met."""
        self._is_value = False

    def take(self, kind: str, token: str, line: int) -> None:
        if self._is_value or self._open:
            self._take_in_value(kind, token, line)
        elif kind == "newline":
            if self._header:
                self._end_header()
            self._key = []
        elif kind == "mark":
            self._take_mark(token, line)
        else:
            if not self._key:
                self._key_line = line
            self._key.append(token.strip("\"'"))

    def _take_mark(self, token: str, line: int) -> None:
        if token == "[":
            self._header += 1
            self._key_line = line
        elif token == "=":
            self._begin_value((*self._table, *self._key))

    def _begin_value(self, place: Place) -> None:
        self._lines.setdefault(place, self._key_line)
        self._open.append(("=", place, 0))
        self._key = []
        self._is_value = True

    def _end_header(self) -> None:
        path: Place = ()
        for level, word in enumerate(self._key):
            path = (*path, word)
            is_last = level == len(self._key) - 1
            if is_last and self._header > 1:
                self._counts[path] = self._counts.get(path, 0) + 1
            if path in self._counts:
                path = (*path, self._counts[path] - 1)
        self._table = path
        self._lines[path] = self._key_line
        self._header = 0

    def _take_in_value(self, kind: str, token: str, line: int) -> None:
        bracket, place, index = self._open[-1]
        if bracket == "{" and self._is_key(kind, token, line):
            return
        if kind == "newline":
            if bracket == "=" and len(self._open) == 1:
                self._close()
            return
        here = (*place, index) if bracket == "[" else place
        if token in ("[", "{") and kind == "mark":
            self._lines.setdefault(here, line)
            self._open.append((token, here, 0))
        elif kind == "mark" and token in ("]", "}"):
            if bracket == "=":
                self._close()
            self._close()
        elif kind == "mark" and token == ",":
            if bracket == "=":
                self._close()
                self._key = []
            else:
                self._open[-1] = (bracket, place, index + 1)
        elif bracket == "[":
            self._lines.setdefault(here, line)

    def _is_key(self, kind: str, token: str, line: int) -> bool:
        """In an inline table, outside its values: keys are gathered until ``=``."""
        if kind in ("bare", "string"):
            if not self._key:
                self._key_line = line
            self._key.append(token.strip("\"'"))
            return True
        if kind == "mark" and token == "=":
            self._begin_value((*self._open[-1][1], *self._key))
            return True
        return kind in ("newline", "other") or token == "."

    def _close(self) -> None:
        if self._open:
            self._open.pop()
        self._key = []
        if not self._open:
            self._is_value = False
