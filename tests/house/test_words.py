"""Texts for users keep to the glossary: none says what it lists as not said."""

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import tomli

from gpa_lsp.foundation.glossary import TERMS
from tests.conftest import ROOT
from tests.house.count_house import parse_where

PACKAGE = ROOT / "gpa_lsp"

NOT_SAID = [(re.compile(pattern, re.IGNORECASE), term.name) for term in TERMS for pattern in term.not_said]

READ_BY_NOBODY = {"foundation/glossary.toml": "lists what is not said"}
"""Files whose texts no user reads."""

NAMES = re.compile(r"`[^`]*`|\S*[./_]\w\S*|--[\w-]+")
"""Code, file names, paths, identifiers and options, which are called what they are called."""

LOGGERS = frozenset({"debug", "info", "warning", "error", "exception"})

# prepositions, pronouns and question words
NO_OPENING = re.compile(
    "above|after|against|among|as|at|before|behind|below|beneath|besides?|between|beyond|by|during|except|for|from|in|inside|into|like|near|of|off|on"
    "|onto|out|outside|over|past|per|since|than|through|till|to|towards?|under|until|up|upon|with|within|without"
    "|it|its|itself|they|them|theirs?|that|those|this|these|he|him|his|she|her|we|our|you|your"
    "|what|which|who|whose|whom|how|where|when|why|whoever|whatever|whichever|whenever|wherever"
    "|(?:any|every|no|some)(?:body|one|thing)|none|neither|either|both|such|again|also|and|but|here|if|no|nor|not|only|or|so|there"
)

PAGES = ("README.md", "editors/README.md", "editors/vscode/README.md")


def find_not_said(text: str) -> list[str]:
    """Words of a text that the glossary lists as not said, each with the term to use."""
    plain = NAMES.sub(" ", text)
    return [f"{found.group()!r} is {name!r}" for pattern, name in NOT_SAID if (found := pattern.search(plain))]


def list_sentences(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Lines and texts of the string constants that people read: those of several words, but for docstrings and what is logged."""
    nodes = list(ast.walk(tree))
    skipped = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    for node in nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in LOGGERS:
            skipped.update(id(inner) for argument in node.args for inner in ast.walk(argument))
    for node in nodes:
        is_text = isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in skipped
        if is_text and " " in node.value.strip():
            yield node.lineno, node.value


def list_texts(value: Any) -> Iterator[str]:
    """The texts in a parsed TOML or JSON file."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for one in value.values():
            yield from list_texts(one)
    elif isinstance(value, list):
        for one in value:
            yield from list_texts(one)


def list_openings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Lines and first words, in lower case, of all docstrings."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(tree):
        if isinstance(node, documented) and (text := ast.get_docstring(node)):
            yield node.body[0].lineno, text.split()[0].strip(",.:;`\"'").lower()


def drop_code(page: str) -> str:
    """A page of Markdown without its blocks of code, which quote what programs print."""
    return re.sub(r"^```.*?^```|^    .*?$", " ", page, flags=re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize(
    "text", ["a victim of it", "the roofs", "each turn", "It waits for data", "what this rests on"]
)
def test_what_is_not_said_is_found(text: str) -> None:
    assert find_not_said(text)


@pytest.mark.parametrize(
    "text", ["see roofs.schema.json", "`--blamer`", "turn on", "stalled on data", "gpa_lsp.diagnosis.blame.blame"]
)
def test_names_and_plain_english_are_left_alone(text: str) -> None:
    assert not find_not_said(text)


def test_docstrings_and_logging_are_no_texts() -> None:
    tree = ast.parse('"""The roof of it."""\nlog.debug("a roof of %s", x)\nprint(f"a roof of {x}")\n')
    assert list(list_sentences(tree)) == [(3, "a roof of ")]


def test_docstrings_begin_with_a_verb_or_a_noun() -> None:
    beginning = rf"""(?i:(?:\A|:)\s*r?\"{{3}}[\s,.:;`"']*(?:{NO_OPENING.pattern})(?!\w))"""
    trees = parse_where(beginning, "gpa_lsp", "tests")
    openings = ((path, one) for path, tree in trees for one in list_openings(tree))
    assert [
        f"{path.relative_to(ROOT)}:{line}: {word}" for path, (line, word) in openings if NO_OPENING.fullmatch(word)
    ] == []


def test_openings_of_all_docstrings_are_found() -> None:
    text = (
        "'Of a module.'\nclass A:\n    '`It`.'\n    async def f():\n        'What.'\n    x = 1\n    'No docstring.'\n"
    )
    assert list(list_openings(ast.parse(text))) == [(1, "of"), (3, "it"), (5, "what")]


def test_texts_of_the_program_keep_to_it() -> None:
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        if name not in READ_BY_NOBODY:
            sentences = list_sentences(ast.parse(path.read_text(encoding="utf-8")))
            found += [f"{name}:{line}: {one}" for line, text in sentences for one in find_not_said(text)]
    assert found == []


TABLES = [
    path for path in sorted(PACKAGE.rglob("*.toml")) if path.relative_to(PACKAGE).as_posix() not in READ_BY_NOBODY
]


@pytest.mark.parametrize("path", TABLES, ids=lambda path: path.name)
def test_tables_keep_to_it(path: Path) -> None:
    assert [
        one for text in list_texts(tomli.loads(path.read_text())) if " " in text for one in find_not_said(text)
    ] == []


def test_the_extensions_manifest_keeps_to_it() -> None:
    manifest = json.loads((ROOT / "editors/vscode/package.json").read_text())
    assert [one for text in list_texts(manifest) if " " in text for one in find_not_said(text)] == []


@pytest.mark.parametrize("page", PAGES)
def test_pages_for_users_keep_to_it(page: str) -> None:
    lines = enumerate(drop_code((ROOT / page).read_text(encoding="utf-8")).splitlines(), start=1)
    assert [f"{number}: {one}" for number, line in lines for one in find_not_said(line)] == []
