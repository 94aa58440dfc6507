"""Patterns for files against a matcher that tries everything."""

import re
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpa_lsp.editor.protocol.discovery import compile_globs


def fits(parts: Sequence[str], path: Sequence[str]) -> bool:
    """Whether a path has the parts of a pattern, by trying every number of folders for each ``**``; at the end it is one at least."""
    if not parts:
        return not path
    if parts[0] == "**":
        return bool(path) if len(parts) == 1 else any(fits(parts[1:], path[taken:]) for taken in range(len(path) + 1))
    return bool(path) and fits_part(parts[0], path[0]) and fits(parts[1:], path[1:])


def fits_part(pattern: str, text: str) -> bool:
    if not pattern:
        return not text
    if pattern[0] == "*":
        return any(fits_part(pattern[1:], text[taken:]) for taken in range(len(text) + 1))
    return bool(text) and pattern[0] in ("?", text[0]) and fits_part(pattern[1:], text[1:])


PARTS = st.one_of(st.just("**"), st.text("ab*?-", min_size=1, max_size=5).filter(lambda part: "**" not in part))
NAMES = st.text("ab-", min_size=1, max_size=4)


@given(st.lists(PARTS, min_size=1, max_size=5), st.lists(NAMES, min_size=1, max_size=5))
def test_what_fits(parts: list[str], path: list[str]) -> None:
    assert bool(compile_globs(["/".join(parts)]).fullmatch("/".join(path))) == fits(parts, path)


@given(st.lists(st.text(max_size=12), max_size=4), st.text(max_size=20))
def test_every_text_is_a_pattern(globs: list[str], path: str) -> None:
    pattern = compile_globs(globs)
    plain = [glob for glob in globs if not re.search(r"[*?\[]|^\./", glob)]
    assert all(pattern.fullmatch(glob) for glob in plain)
    pattern.fullmatch(path)


@pytest.mark.parametrize(
    "glob", ["*a" * 200 + "b", "**/" * 200 + "x", "**/*a*a" * 100 + "b", "**/a*a*a/**/*a*a*a" * 20]
)
@pytest.mark.parametrize("path", ["a" * 250, "a/" * 1000, ("a" * 50 + "/") * 40])
def test_a_pattern_from_a_stranger_stops_nothing(glob: str, path: str) -> None:
    assert compile_globs([glob]).fullmatch(path) is None  # one that tries everything would not be done today


def test_what_is_no_set_is_text() -> None:
    assert compile_globs(["[z-a]"]).fullmatch("[z-a]")
    assert compile_globs(["["]).fullmatch("[") and compile_globs(["[!]"]).fullmatch("[!]")
    assert compile_globs(["[[&]x"]).fullmatch("&x") and not compile_globs(["[!a]"]).fullmatch("/")
