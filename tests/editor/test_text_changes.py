"""Edits applied to the text the server holds, against a slow way to apply them."""

import random
import sys
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lsprotocol import types

from gpa_lsp.editor.protocol.wire import make_converter
from gpa_lsp.editor.text_changes import EditedText, apply_changes
from gpa_lsp.report.line_map import split_lines
from tests.editor.edits import ENCODINGS, TEXTS, WORDS, Typist, apply_slowly, make_units, split_slowly
from tests.patience import in_bounded_time

CONVERTER = make_converter()
ENCODING = st.sampled_from(sorted(ENCODINGS))


def read_changes(changes: list[dict[str, Any]]) -> list[types.TextDocumentContentChangeEvent]:
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
    with in_bounded_time():
        after = apply_changes(text, read_changes(changes), make_units("utf-16"))
    assert after.count("ligne(") == 200 and after.count("line(") == 19_800


def count_calls(act: Callable[[], object]) -> int:
    """Calls of functions and methods, those written in C among them."""
    calls = 0

    def note(_frame: Any, event: str, _argument: Any) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        act()
    finally:
        sys.setprofile(None)
    return calls


def measure_allocated_bytes(act: Callable[[], object]) -> int:
    """The most memory that was taken at one time."""
    tracemalloc.start()
    try:
        act()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_a_keystroke_costs_the_same_wherever_it_is(line_end: str) -> None:
    """Counted is work: calls, and the memory they take; a copy of the text would be two megabytes."""
    edited = EditedText(f"    value[index] += 1;{line_end}" * 100_000, make_units("utf-16"))
    edited.apply(read_changes([replace((0, 0), (0, 0), "x")]))  # the first edit takes the text apart
    keystrokes = [read_changes([replace((line, 4), (line, 4), "y")]) for line in (10, 10, 50_000, 90_000, 99_999)]
    calls = [count_calls(lambda change=change: edited.apply(change)) for change in keystrokes]
    taken = [measure_allocated_bytes(lambda change=change: edited.apply(change)) for change in keystrokes]
    assert len(set(calls)) == 1 and calls[0] < 100
    assert max(taken) < 10_000
    assert [edited.read().split(line_end)[line].count("y") for line in (9, 10, 11, 90_000)] == [0, 4, 0, 2]


@given(TEXTS, st.lists(st.integers(0, 2**32), min_size=1, max_size=6), ENCODING)
def test_an_edited_text_is_what_the_client_has_after_every_message(text: str, seeds: list[int], encoding: str) -> None:
    edited, expected = EditedText(text, make_units(encoding)), text
    for number, seed in enumerate(seeds):
        change = Typist(random.Random(seed), encoding).choose_change(expected, WORDS)
        expected = apply_slowly(expected, [change], encoding)
        edited.apply(read_changes([change]))
        if number % 2:  # read now and then, so that both forms are current, or one of them
            assert edited.read() == expected
    assert edited.read() == expected
