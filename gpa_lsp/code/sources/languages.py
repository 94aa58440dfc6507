"""The source languages, as data (``languages.toml``), with their grammars loaded when first needed."""

import importlib
import logging
import re
from functools import cache
from pathlib import Path
from posixpath import splitext
from typing import TYPE_CHECKING

import tomli
from msgspec import Struct

if TYPE_CHECKING:
    from tree_sitter import Parser


logger = logging.getLogger(__name__)


class Language(Struct, frozen=True, kw_only=True):
    """What a language's grammar calls things; see the head of ``languages.toml``."""

    name: str  # as in the table
    suffixes: tuple[str, ...]  # of file names, lower case
    module: str  # Python package of the grammar
    subscripts: frozenset[str]  # node types of an indexed access
    pointers: frozenset[str]  # node types of a pointer operation
    dereference: str  # how a pointer operation begins that dereferences; empty where there is none
    assignments: frozenset[str]  # node types of an assignment
    compound: frozenset[str]  # of those, the ones that read what they write
    compound_operator: str  # field whose text other than ``=`` says the same; empty where there is none
    declarations: frozenset[str]  # node types of a variable with a value
    binary: frozenset[str]  # node types of a binary operation
    calls: frozenset[str]  # node types of a call
    load_calls: frozenset[str]  # functions that load
    store_calls: frozenset[str]  # functions that store
    floats: frozenset[str]  # node types of a floating-point literal
    # what a double-precision literal looks like; None where literals say nothing about precision
    double_pattern: re.Pattern[str] | None
    loops: frozenset[str]  # node types of a loop
    functions: frozenset[str]  # names of functions that look like arrays
    has_pragmas: bool  # lines that begin with ``#pragma`` may stand anywhere, and are not part of the grammar


def find_language(file: str) -> Language | None:
    """The language of a file by its suffix; None for one without a grammar here.

    >>> find_language("/src/k.cu").name, find_language("k.F90").name, find_language("k.ptx") is None
    ('cuda', 'fortran', True)
    """
    return _languages_by_suffix().get(splitext(file.replace("\\", "/"))[1].lower())


@cache
def load_parser(language: Language) -> "Parser | None":
    """A parser of the language; None where its grammar is not installed, or does not fit the parser's version: hints then name lines only.

    The grammar is imported here, not at start: most runs show no hint that needs one.
    """
    try:
        from tree_sitter import Language as Grammar  # see above
        from tree_sitter import Parser

        return Parser(Grammar(importlib.import_module(language.module).language()))
    except (ImportError, ValueError) as error:
        logger.warning("sources in %s are not parsed: %s", language.name, error)
        return None


@cache
def _languages_by_suffix() -> dict[str, Language]:
    table = tomli.loads(Path(__file__).with_name("languages.toml").read_text(encoding="utf-8"))
    found: dict[str, Language] = {}
    for name, row in table.items():
        sets = {key: frozenset(row.get(key, ())) for key in _SETS}
        pattern = row.get("double_pattern")
        language = Language(
            name=name,
            suffixes=tuple(row["suffixes"]),
            module=row["module"],
            dereference=row.get("dereference", ""),
            compound_operator=row.get("compound_operator", ""),
            double_pattern=re.compile(pattern) if pattern else None,
            has_pragmas=row.get("has_pragmas", False),
            **sets,
        )
        found.update(dict.fromkeys(language.suffixes, language))
    return found


_SETS = (
    "subscripts",
    "pointers",
    "assignments",
    "compound",
    "declarations",
    "binary",
    "calls",
    "load_calls",
    "store_calls",
    "floats",
    "loops",
    "functions",
)
