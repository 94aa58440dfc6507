"""Markdown files of written kernels and what is said of them, for the rooms that read what is expected in notations of their own.

A section is a heading, a listing, indented, in the notation of :mod:`tests.rows.written` (:mod:`tests.cases.repeats` may shorten it), perhaps with
prose before it, and a list of what is expected. Sources are fences ``cuda k.cu``; they hold from there on. ``@NAME`` in the first line is a listing
of :mod:`tests.rows.listings`. A listing like it, or like the one before, is written as what differs: ``3 = line`` is another row 3, ``3 + line`` a
line before it, ``3 <- words`` other words behind it, ``3 -`` no such row; ``old ⇒ new`` replaces text wherever it stands (``⏎`` is a line end). A
heading may end in options in parentheses.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cases.repeats import expand_repeats
from tests.rows import listings

_PART = re.compile(
    r"^```cuda (?P<file>\S+)\n(?P<source>.*?)^```$"
    r"|^## (?P<title>[^\n(]+)(?:\((?P<options>[^\n]*)\))?\n+(?:[^\s-][^\n]*\n+)*(?P<text>(?:(?:    [^\n]*)?\n)*)"
    r"(?P<expected>(?:- [^\n]+\n(?:  \S[^\n]*\n)*)+)",
    re.MULTILINE | re.DOTALL,
)
_CHANGE = re.compile(r"    (?:(?P<row>\d+) (?P<how>=|\+|<-|-)(?: (?P<new>.*))?|(?P<old>.+?) ⇒ ?(?P<with>.*))")


def is_instruction(line: str) -> bool:
    code = line.partition("#")[0].strip()
    return bool(code) and not code.endswith(":") and not code.startswith("[")


def change(text: str, changes: list[re.Match[str]]) -> str:
    for one in changes:
        lines = text.splitlines()
        if one["old"] is not None:
            assert one["old"] in text, one[0]
            text = text.replace(one["old"], one["with"].replace("⏎", "\n"))
            continue
        number = [at for at, line in enumerate(lines) if is_instruction(line)][int(one["row"])]
        written = {
            "=": (one["new"] or "").split("⏎"),
            "+": [*(one["new"] or "").split("⏎"), lines[number]],
            "<-": [f"{lines[number].partition('<-')[0]} <- {one['new']}"],
            "-": [],
        }[one["how"]]
        text = "\n".join([*lines[:number], *written, *lines[number + 1 :]])
    return text


def list_sections(folder: Path) -> Iterator[Any]:
    """File, listing, options, sources and what is expected, of each section."""
    for path in sorted(folder.glob("*.md")):
        text, sources = "", dict[str, str]()
        whole = path.read_text(encoding="utf-8") + "\n"
        found = list(_PART.finditer(whole))
        assert sum(one["title"] is not None for one in found) == whole.count("\n## "), f"{path.name}: not understood"
        assert sum((one["expected"] or "").count("- ") for one in found) >= whole.count("\n- "), path.name
        for one in found:
            if one["title"] is None:
                sources = {**sources, one["file"]: one["source"]}
                continue
            lines = [line for line in one["text"].splitlines() if line.strip()]
            if lines and re.fullmatch(r"    @[A-Z_]+", lines[0]):
                text, lines = getattr(listings, lines[0][5:]), lines[1:]
            changes = [_CHANGE.fullmatch(line) for line in lines]
            if all(changes):
                text = change(text, changes)  # type: ignore[arg-type]
            else:
                text = expand_repeats("\n".join(lines) + "\n")
            yield pytest.param(
                path.stem,
                text,
                one["options"] or "",
                sources,
                one["expected"],
                id=f"{path.stem}: {one['title'].strip()}",
            )


def read_options(words: str) -> dict[str, Any]:
    """Options of ``write_kernel``; those it has not are metrics."""
    options: dict[str, Any] = {"metrics": {}}
    for word in words.split():
        name, _, value = word.partition("=")
        if re.fullmatch(r"\d+\.\d", word):
            options["compute_capability"] = tuple(map(int, word.split(".")))
        elif name in ("registers", "sm_count"):
            options[name] = int(value)
        elif name in ("name", "build"):
            options[name] = value
        elif name in ("grid", "block"):
            options[name] = (*map(int, value.split(",")), 1, 1)[:3]
        elif word == "truncated":
            options[word] = True
        elif value:
            options["metrics"][name] = float(value) if re.fullmatch(r"[-+.\deE]+", value) else value
    return options


def holds(said: str, words: str) -> bool:
    """Whether a text is the words, or with ``…`` has them, in their order."""
    if "…" not in words:
        return said == words
    pattern = ".*".join(re.escape(part.strip()) for part in words.split("…"))
    return re.fullmatch(pattern, said, re.DOTALL) is not None


def join_lines(text: str) -> str:
    return re.sub(r"\n +", " ", text.strip())
