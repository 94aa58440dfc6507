"""Reports in which every text is hostile, and what must hold of whatever is made from them.

``spoil`` walks the fields of structs, so that a field that is added tomorrow is hostile by itself. The same text becomes the same hostile text
everywhere: what refers to one another still does.
"""

import base64
import gzip
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from html.parser import HTMLParser
from pathlib import PurePath
from typing import Any, TypeVar

import msgspec.structs
from hypothesis import strategies as st
from markdown_it import MarkdownIt

Value = TypeVar("Value")

STEERING = (
    *("\x00", "\x07", "\x08", "\x0b", "\x0c", "\x1b[2J", "\x1b]0;owned\x07", "\x1c", "\x1f", "\x7f", "\x85", "\x9b2J"),
    *("\r", "\n", "\r\n", "\t", "\n\n", "\u2028", "\u2029"),
    *("\u202a", "\u202b", "\u202c", "\u202d", "\u202e", "\u2066", "\u2067", "\u2068", "\u2069"),
    *("\u061c", "\u200e", "\u200f", "\u200b", "\u200c", "\u200d", "\u2060", "\u00ad", "\ufeff", "\ufff9", "\U000e0041"),
    *("\ud800", "\udfff", "\udc9b", "\ufffe", "\uffff"),
)
"""What drives a terminal, turns the direction of writing, ends a line somewhere, is not seen, or is no character."""

MARKUP = (
    *(
        "# heading",
        "\n# heading\n",
        "\n\n---\n\n",
        "\n===\n",
        "\n```\n",
        "```",
        "~~~",
        "`",
        "``",
        "|",
        "\\",
        "\n| - | - |\n",
    ),
    *(
        "[x](command:evil)",
        "![x](https://e/x.png)",
        "![x](data:image/svg+xml;base64,QUJD)",
        "[x]: https://e",
        "]",
        "[",
        "(",
    ),
    *(
        "<img src=x onerror=y>",
        "<https://e>",
        "</td>",
        "</details>",
        "<!--",
        "-->",
        "<script>",
        "</script>",
        "]]>",
        "&#8238;",
    ),
    *(
        "https://evil.example/",
        "www.evil.example",
        "::error file=x::y",
        "%0A",
        "%",
        ")",
        "- ",
        "> ",
        "1. ",
        "{{7*7}}",
        "*",
        "_",
    ),
)
"""What Markdown, HTML, SVG, templates or the runner of GitHub's actions read as theirs."""

KINDLY = ("カーネル", "µ×–é", "👩‍💻", "नमस्ते", "خانه‌ها", "a b", "Ünï", "葛󠄀", "❤️")
"""Names that people give: these stay as they are."""

EVIL = st.lists(st.sampled_from((*STEERING, *MARKUP, *KINDLY, "k")), min_size=1, max_size=5).map("".join)

EVERYTHING = tuple("".join(group) for group in (STEERING, MARKUP, tuple(reversed(MARKUP)), KINDLY))

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_UNSEEN = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff\ufffe\uffff"
    "\U000e0000-\U000e007f]"
)
_SCRIPT = re.compile(r"<script\b[^>]*>.*?</script>", re.S)
_PACKED = re.compile(r"H4sI[A-Za-z0-9+/=]+")
_AUTOLINK = re.compile(r"(?i)(?:https?|ftp)://\S+|(?<![a-zA-Z0-9\\])www\.\w+|(?:mailto|xmpp):\S+|[\w.+-]+@\w[\w.-]*")
_PLAIN = ("text", "text_special", "softbreak", "hardbreak", "code_inline", "em_open", "em_close")

READER = MarkdownIt("commonmark", {"html": True}).enable("table").enable("strikethrough")
READER.validateLink = lambda url: True  # type: ignore[method-assign]  # others take what this reader would not
SOURCE_READER = MarkdownIt("commonmark", {"html": True}).enable("table").enable("strikethrough").disable("text_join")
SOURCE_READER.validateLink = lambda url: True  # type: ignore[method-assign]


def spoil(value: Value, evil: str) -> Value:
    """The same value with ``evil`` in the middle of every text in it, at any depth; empty texts, which mean that there is none, stay."""
    known: dict[str, str] = {}
    return _spoil(value, lambda text: known.setdefault(text, f"{text[: len(text) // 2]}{evil}{text[len(text) // 2 :]}"))


def _spoil(value: Any, change: Callable[[str], str]) -> Any:
    if type(value) is str:
        return change(value) if value else value
    if isinstance(value, PurePath):
        return type(value)(change(str(value)))
    if isinstance(value, msgspec.Struct):
        fields = {name: getattr(value, name) for name in value.__struct_fields__}
        return msgspec.structs.replace(value, **{name: _spoil(one, change) for name, one in fields.items()})
    if isinstance(value, Mapping):
        return {_spoil(key, change): _spoil(one, change) for key, one in value.items()}
    if isinstance(value, tuple | list | frozenset):
        parts = [_spoil(one, change) for one in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    return value


def find_unseen(text: str, *, is_page: bool = False) -> list[str]:
    """Characters that must not be in an output: everything that steers, but for line ends and the colours that we write.

    Args:
        text: the output.
        is_page: HTML, of which the libraries' own scripts do not count, and what is packed does.
    """
    plain = _COLOUR.sub("", text)
    if is_page:
        packed = [gzip.decompress(base64.b64decode(one)).decode("ascii") for one in _PACKED.findall(text)]
        within = [fault for one in packed for fault in _find_in_values(json.loads(one))]
        return within + find_unseen(_SCRIPT.sub("", text).replace("\t", " "))
    found = _UNSEEN.search(plain)
    return [] if found is None else [ascii(plain[max(0, found.start() - 30) : found.end() + 10])]


def _find_in_values(value: Any) -> Iterator[str]:
    for text in list_texts(value):
        yield from find_unseen(text.replace("\t", " "))


def list_texts(value: Any) -> Iterator[str]:
    """Every text in a JSON value, names of members too."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, one in value.items():
            yield name
            yield from list_texts(one)
    elif isinstance(value, list):
        for one in value:
            yield from list_texts(one)


def count_tokens(markdown: str) -> Counter[str]:
    """Headings, links, images, tables and so on, as a reader of Markdown finds them."""
    found: Counter[str] = Counter()
    for token in READER.parse(markdown):
        found.update(f"{one.type} {one.tag}" for one in (token, *(token.children or ())) if one.type not in _PLAIN)
    return found


def find_autolinks(markdown: str) -> list[str]:
    """Addresses that GitHub and editors make links of although nothing marks them as such."""
    texts = [
        "\\" if child.type == "text_special" else child.content if child.type == "text" else " "
        for token in SOURCE_READER.parse(markdown)
        for child in (token.children or ())
    ]
    return _AUTOLINK.findall("".join(texts))


def count_pictures(markdown: str) -> int:
    """Number of images that a reader of Markdown finds."""
    return count_tokens(markdown)["image img"]


class _Elements(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: Counter[str] = Counter()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.update([f"{tag} {' '.join(sorted(name for name, _ in attrs if name != 'title'))}"])


def count_elements(page: str) -> Counter[str]:
    """The elements of a page by name and attributes; a short name has its whole one as a title."""
    parser = _Elements()
    parser.feed(page)
    parser.close()
    return parser.found
