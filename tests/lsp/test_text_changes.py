"""Edits applied to the text the server holds, against a slow way to apply them."""

import random
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lsprotocol import types

from gpa_lsp.lsp.text_changes import apply_changes
from gpa_lsp.lsp.wire import make_converter
from gpa_lsp.report.line_map import split_lines
from tests.lsp.edits import ENCODINGS, TEXTS, WORDS, Typist, apply_slowly, make_units, split_slowly

CONVERTER = make_converter()
ENCODING = st.sampled_from(sorted(ENCODINGS))


def read_changes(changes: list[dict[str, Any]]) -> Any:
    """Changes as the server gets them from the wire."""
    document = {"uri": "file:///x", "version": 1}
    params = {"textDocument": document, "contentChanges": changes}
    return CONVERTER.structure(params, types.DidChangeTextDocumentParams).content_changes


def replace(start: tuple[int, int], end: tuple[int, int], text: str) -> dict[str, Any]:
    places = {"start": {"line": start[0], "character": start[1]}, "end": {"line": end[0], "character": end[1]}}
    return {"range": places, "text": text}


@given(TEXTS, st.integers(0, 2**32), ENCODING)
def test_texts_are_what_the_client_has(text: str, seed: int, encoding: str) -> None:
    typist = Typist(random.Random(seed), encoding)
    changes: list[dict[str, Any]] = []
    expected = text
    for _ in range(typist.chance.randrange(1, 6)):
        change = typist.choose_change(expected, WORDS)
        expected = apply_slowly(expected, [change], encoding)
        changes.append(change)
    assert apply_changes(text, read_changes(changes), make_units(encoding)) == expected


@given(TEXTS)
def test_lines_are_those_of_the_protocol(text: str) -> None:
    assert list(split_lines(text)) == split_slowly(text)


@given(TEXTS, TEXTS)
def test_a_whole_text_replaces_everything(before: str, after: str) -> None:
    assert apply_changes(before, read_changes([{"text": after}]), make_units("utf-16")) == after


@pytest.mark.parametrize(
    ("before", "change", "after"),
    [
        ("ab\r\ncd", replace((0, 2), (1, 0), ""), "abcd"),
        ("ab\rcd", replace((1, 0), (1, 0), "\n"), "ab\r\ncd"),  # joins two halves of a line end
        ("ab\r\ncd", replace((0, 3), (0, 9), "x"), "abx\r\ncd"),  # never between \r and \n
        ("ab\n", replace((9, 9), (2**31 - 1, 0), "x"), "ab\nx"),
        ("abc", replace((0, 2), (0, 1), "x"), "axc"),  # the wrong way round
        ("a\x0cb\nc", replace((1, 0), (1, 1), "d"), "a\x0cb\nd"),
        ("é😀x", replace((0, 3), (0, 4), "y"), "é😀y"),
        ("é😀x", replace((0, 2), (0, 3), "y"), "é😀yx"),  # inside a character means behind it
        ("", replace((0, 0), (0, 0), "x"), "x"),
    ],
)
def test_some_edits_in_utf_16(before: str, change: dict[str, Any], after: str) -> None:
    assert apply_changes(before, read_changes([change]), make_units("utf-16")) == after


def test_many_cursors_in_a_long_text_are_kept_up_with() -> None:
    """A guard against edits that cost the square of the text; it holds a hundredfold."""
    text = "".join(f"line({number});\n" for number in range(20_000))
    changes = [replace((line, 0), (line, 4), "ligne") for line in range(0, 20_000, 100)]
    started = time.monotonic()
    after = apply_changes(text, read_changes(changes), make_units("utf-16"))
    print(f"200 changes of 20,000 lines: {1000 * (time.monotonic() - started):.0f} ms")
    assert after.count("ligne(") == 200 and after.count("line(") == 19_800
