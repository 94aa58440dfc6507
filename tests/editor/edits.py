"""A client's edits for tests: a text kept as a list of characters, changed one at a time by the slowest rules that can be right.

Nothing here is shared with what it checks.
"""

import functools
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st
from lsprotocol import types
from pygls.workspace import PositionCodec

ENCODINGS = {
    "utf-8": lambda character: 1 + (ord(character) > 0x7F) + (ord(character) > 0x7FF) + (ord(character) > 0xFFFF),
    "utf-16": lambda character: 2 if ord(character) > 0xFFFF else 1,
    "utf-32": lambda character: 1,
}
"""Code units of a character."""

WORDS = (
    "a", " ", "\t", "é", "€", "😀", "𝛼", "\x0c", "\x0b", "\x1c", "\u2028", "\x85", "\ufeff", "\ud83d", "\n", "\r\n",
    "\r", "x = y;",
)  # fmt: skip
TEXTS = st.lists(st.sampled_from(WORDS), max_size=30).map("".join)


def make_units(encoding: str) -> PositionCodec:
    """Units in which the server counts characters."""
    return PositionCodec(types.PositionEncodingKind(encoding))


@functools.lru_cache(maxsize=256)
def split_slowly(text: str) -> list[str]:
    """Lines without their ends, which are ``\\n``, ``\\r\\n`` and ``\\r``."""
    lines, line, index = [], "", 0
    while index < len(text):
        if text[index] == "\r" and text[index + 1 : index + 2] == "\n":
            index += 1
        if text[index] in "\r\n":
            lines.append(line)
            line = ""
        else:
            line += text[index]
        index += 1
    return [*lines, line]


def find_slowly(text: str, line: int, units: int, encoding: str) -> int:
    """Characters before a place: of a line that is not there the end of the text; behind a line's end that end; inside a character behind it."""
    index = 0
    for _ in range(line):
        while index < len(text) and text[index] not in "\r\n":
            index += 1
        if index == len(text):
            return index
        index += 2 if text[index : index + 2] == "\r\n" else 1
    counted = 0
    while index < len(text) and text[index] not in "\r\n" and counted < units:
        counted += ENCODINGS[encoding](text[index])
        index += 1
    return index


def apply_slowly(text: str, changes: Sequence[Any], encoding: str) -> str:
    """The text after changes."""
    for change in changes:
        if "range" not in change:
            text = change["text"]
            continue
        start, end = (
            find_slowly(text, change["range"][name]["line"], change["range"][name]["character"], encoding)
            for name in ("start", "end")
        )
        characters = list(text)
        characters[min(start, end) : max(start, end)] = change["text"]
        text = "".join(characters)
    return text


@dataclass
class Typist:
    """Edits at random, as JSON.

    Attributes:
        chance: decides everything.
        encoding: the client's.
    """

    chance: random.Random
    encoding: str

    def choose_place(self, text: str) -> dict[str, int]:
        """A place in a text, now and then behind it."""
        lines = split_slowly(text)
        line = self.chance.randrange(len(lines) + (self.chance.random() < 0.05))
        width = sum(map(ENCODINGS[self.encoding], lines[line])) if line < len(lines) else 0
        return {"line": line, "character": self.chance.randrange(width + 2 + 5 * (self.chance.random() < 0.1))}

    def choose_change(self, text: str, words: Sequence[str]) -> dict[str, Any]:
        """A change; small ones mostly."""
        if self.chance.random() < 0.05:
            return {"text": "".join(self.chance.choices(words, k=self.chance.randrange(20)))}
        start = self.choose_place(text)
        end = start if self.chance.random() < 0.4 else self.choose_place(text)
        if self.chance.random() < 0.6:
            end = {"line": min(end["line"], start["line"] + 1), "character": end["character"]}
        if (end["line"], end["character"]) < (start["line"], start["character"]) and self.chance.random() < 0.9:
            start, end = end, start
        inserted = "".join(self.chance.choices(words, k=self.chance.choice((0, 1, 1, 2, 6))))
        return {"range": {"start": start, "end": end}, "text": inserted}
