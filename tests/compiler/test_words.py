"""Command lines as words, and response files."""

import shlex
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpa_lsp.execution.compiler.commands import MOST_WORDS, expand_response_files, split_words
from gpa_lsp.foundation.errors import InputError

PLAIN = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=20)


@given(st.lists(PLAIN, max_size=8))
def test_words_that_a_shell_quotes_come_back_as_they_were(words: list[str]) -> None:
    assert list(split_words(shlex.join(words))) == words


@given(st.text(max_size=300))
def test_any_text_splits_into_words(text: str) -> None:
    assert all(isinstance(word, str) for word in split_words(text))


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (r"-DNAME=\"a b\" -I'/c d'", ('-DNAME="a', 'b"', "-I/c d")),
        ('-D"NAME=\\"a b\\""', ('-DNAME="a b"',)),
        ("a \\\n b", ("a", "", "b")),
        (r"C:\x\y.cu", (r"C:\x\y.cu",)),
        ("''", ("",)),
        ("'open", ("'open",)),
    ],
)
def test_quoting(line: str, words: tuple[str, ...]) -> None:
    assert tuple(word for word in split_words(line) if word) == tuple(word for word in words if word)


def test_response_files_are_put_in_their_places(tmp_path: Path) -> None:
    (tmp_path / "inner.rsp").write_text("-DIN=1 '-I/with blank'")
    (tmp_path / "outer.rsp").write_text("-DOUT --options-file inner.rsp -DEND")
    for word in (["--options-file", "outer.rsp"], ["--options-file=outer.rsp"], ["-optf", "outer.rsp"], ["@outer.rsp"]):
        found = list(expand_response_files(["-a", *word, "-z"], tmp_path))
        assert found == ["-a", "-DOUT", "-DIN=1", "-I/with blank", "-DEND", "-z"]


def test_response_files_that_read_themselves_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.rsp").write_text("@b.rsp")
    (tmp_path / "b.rsp").write_text("-x @a.rsp")
    with pytest.raises(InputError, match="includes itself"):
        list(expand_response_files(["@a.rsp"], tmp_path))


def test_response_files_that_multiply_are_refused(tmp_path: Path) -> None:
    (tmp_path / "leaf.rsp").write_text("-D1 " * 50)
    for depth, inner in ((1, "leaf"), (2, "d1"), (3, "d2")):
        (tmp_path / f"d{depth}.rsp").write_text(f"@{inner}.rsp " * 50)
    with pytest.raises(InputError, match=str(MOST_WORDS)):
        list(expand_response_files(["@d3.rsp"], tmp_path))


def test_response_files_that_multiply_and_hold_no_words_are_refused(tmp_path: Path) -> None:
    for depth in range(7):
        (tmp_path / f"d{depth}.rsp").write_text(f"@d{depth + 1}.rsp " * 12)
    (tmp_path / "d7.rsp").write_text("")
    with pytest.raises(InputError, match="more than 1000 response files"):
        list(expand_response_files(["@d0.rsp"], tmp_path))


def test_response_files_that_are_not_there_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist") as caught:
        list(expand_response_files(["--options-file", "gone.rsp"], tmp_path))
    assert caught.value.path == tmp_path / "gone.rsp"
