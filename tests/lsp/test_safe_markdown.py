"""Text that the editor's Markdown yields, as a reader of Markdown sees it."""

from collections.abc import Iterator

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from gpa_lsp.editor.protocol.safe_markdown import defuse
from tests.conftest import examples
from tests.hostile_names import find_autolinks

READER = MarkdownIt("commonmark", {"html": True}).enable("table").enable("strikethrough")
READER.validateLink = lambda url: True  # type: ignore[method-assign]  # editors take what this reader would not
PICTURE = "![stalls](data:image/svg+xml;base64,QUJD)"
EVIL = [
    "[x](command:evil)", "![x](https://e/x.png)", "<img src=x onerror=y>", "<https://e>", "<command:x>", "[x][a]",
    "[a]: https://e", "</td>", "`", "``", "```", "````", "~~~", "|", "\\", "\\\\", "\n", "\n\n", "\n```\n",
    "\n| - | - |\n", "\n---\n", "\n===\n", "- ", "> ", "    ", "]", "[", "(", ")", "!", "<", ">", "]:", "](", "a", " ",
    "* ", "1. ", "&#96;", PICTURE, "<!--", "-->", "<script>", "\u202e", "\r", "\t",
]  # fmt: skip
TEXTS = st.lists(st.sampled_from(EVIL), max_size=14).map("".join)


def list_tokens(markdown: str) -> Iterator[Token]:
    for token in READER.parse(markdown):
        yield token
        yield from token.children or ()


def list_dangers(markdown: str) -> list[str]:
    """Links, images and HTML."""
    return [
        f"{token.type} {token.attrs} {token.content}"
        for token in list_tokens(markdown)
        if token.type in ("link_open", "html_inline", "html_block", "image")
    ]


@examples(400)
@given(TEXTS)
@example("`\nc ` [x](y) ` d")
@example("| `a | [x](y) ` |")
@example("a ` | [x](y) `\n| - | - |\nb ` | [x](y) `")
@example("\\](x)")
@example("\\\\](x)")
@example("```\na\n```\n[x](y)")
@example("~~~\n```\n~~~\n[x](y)\n```")
def test_nothing_leads_away_whatever_is_written(text: str) -> None:
    assert list_dangers(defuse(text)) == []


@given(TEXTS, TEXTS, TEXTS)
@example("\n```\n", "~~~\n```\n", "[x](command:evil)\n```\n~~~")
def test_nothing_leads_away_whatever_our_words_stand_around(one: str, two: str, three: str) -> None:
    text = f"**41 %** of `{one}`: 3 of 4\n\n_{two}, measured_\n\n| a | b |\n| :- | -: |\n| {one} | `{three}` |\n\n```\n{two}\n```\n\n{three}"
    assert list_dangers(defuse(text)) == []


@pytest.mark.parametrize("before", ["", "of ", "`a` ", "- ", "> ", "| a | "])
def test_a_picture_that_a_name_brings_is_none(before: str) -> None:
    found = list(list_tokens(defuse(f"text {before}{PICTURE} more\n{before}x{PICTURE}")))
    assert [token for token in found if token.type == "image"] == []


@given(TEXTS)
def test_doing_it_twice_does_no_harm(text: str) -> None:
    assert defuse(defuse(text)) == defuse(text)


@pytest.mark.parametrize(
    "address", ["https://evil.example", "www.evil.example", "http://e", "WWW.evil.example", "me@evil.example"]
)
def test_a_bare_address_is_no_link(address: str) -> None:
    assert find_autolinks(f"of {address}") != []
    assert find_autolinks(defuse(f"of {address}, a_{address}")) == []
    assert defuse(f"`{address}`") == f"`{address}`"


def test_the_words_themselves_stay() -> None:
    text = "\n".join(
        [
            "**12 %** of `ns::scale<float, (int)3>(float*)`: mostly **wait** · _measured_ — 6.19 µs × 2",
            "",
            "| through | `LDG [R2]` |",
            "| :------ | ---------: |",
            "| R2      |   a \\| b_c |",
            "",
            "```nvsass",
            "FADD R0, |R1|, R2 // <- `x` [y](z)",
            "```",
            "- `FADD R0, |R1|, R2` and `a`",
        ]
    )
    assert defuse(text) == text


@pytest.mark.parametrize(
    "name",
    ["operator[](unsigned long)", "scale<float>", "a`b", "f(int)::{lambda(int)#1}", "x\\y", "[k](command:a)", "<b>"],
)
def test_a_name_outside_of_code_reads_as_it_is(name: str) -> None:
    (token,) = [token for token in READER.parse(defuse(f"of {name}.")) if token.type == "inline"]
    assert "".join(child.content for child in token.children or ()) == f"of {name}."


def test_nothing_is_endless() -> None:
    assert len(defuse("x" * 10**6)) < 10_000
    assert len(defuse("x\n" * 10**6)) < 500_000
    assert len(defuse("`" * 10**6)) < 50_000
