"""Sources with other values of macros and other unroll factors: what is asked for, and the texts they make."""

import re
from collections.abc import Iterable
from itertools import product
from math import prod
from pathlib import Path

from msgspec import Struct

from gpa_lsp.code.sources.directives import find_pragmas
from gpa_lsp.code.sources.trees import SourceTree, read_text, read_tree, walk
from gpa_lsp.execution.prediction.exploration.model import Configuration, Definition, Unroll
from gpa_lsp.foundation.errors import InputError
from gpa_lsp.foundation.numbers import format_count

MOST_VARIANTS = 4096

_NAME = re.compile(r"[A-Za-z_]\w{0,99}")
_VALUE = re.compile(r"[\w.()+*/%<>:\- ]{1,60}")
_UNROLL = re.compile(r"([1-9]\d{0,6})=([1-9]\d{0,3}(?:,[1-9]\d{0,3})*)")
_LOOPS = frozenset({"for_statement", "while_statement", "do_statement", "for_range_loop"})
_PRAGMAS = ("unroll", "nounroll")
_DEFINE_REMEDY = "write NAME=VALUE or NAME=VALUE,VALUE, such as TILE=8,16,32"
_UNROLL_REMEDY = "write the line of a loop and its factors, such as 12=1,2,4"


class Variant(Struct, frozen=True, kw_only=True):
    """One version of a source."""

    definitions: tuple[Definition, ...] = ()  # macros and their values, in the order they were asked for
    unrolls: tuple[Unroll, ...] = ()  # lines of loops and their factors, in the same form

    def write(self, block: str) -> str:
        """A block as people ask for it, names of macros replaced by their values.

        >>> Variant(definitions=(("TILE", "16"),)).write("TILExTILE")
        '16x16'
        """
        for name, value in sorted(self.definitions, key=lambda one: -len(one[0])):
            block = block.replace(name, value)
        return block


def list_variants(definitions: Iterable[str], unrolls: Iterable[str]) -> tuple[Variant, ...]:
    """Every combination; the source as it is where nothing is asked for.

    Args:
        definitions: ``NAME=VALUE,VALUE``.
        unrolls: ``LINE=FACTOR,FACTOR``.

    Raises:
        InputError: a text means nothing, or there are more than :data:`MOST_VARIANTS`.

    >>> [one.definitions for one in list_variants(["TILE=8,16"], [])]
    [(('TILE', '8'),), (('TILE', '16'),)]
    >>> list_variants([], ["12=1,4"])[1].unrolls
    ((12, 4),)
    """
    macros = [_parse_definition(text) for text in definitions]
    loops = [_parse_unroll(text) for text in unrolls]
    if prod(map(len, macros)) * prod(map(len, loops)) > MOST_VARIANTS:
        message = f"there are more than {format_count(MOST_VARIANTS)} versions of the source"
        raise InputError(message, remedy="name fewer values")
    return tuple(
        Variant(definitions=chosen, unrolls=factors) for chosen in product(*macros) for factors in product(*loops)
    )


def _parse_definition(text: str) -> list[Definition]:
    name, equals, values = text.partition("=")
    listed = [one.strip() for one in values.split(",")]
    if not equals or not _NAME.fullmatch(name) or not all(_VALUE.fullmatch(one) for one in listed):
        raise InputError(f"{text[:80]!r} defines nothing", place="--define", remedy=_DEFINE_REMEDY)
    return [(name, value) for value in dict.fromkeys(listed)]


def _parse_unroll(text: str) -> list[Unroll]:
    found = _UNROLL.fullmatch(text.replace(" ", ""))
    if found is None:
        raise InputError(f"{text[:80]!r} names no loop", place="--unroll", remedy=_UNROLL_REMEDY)
    return [(int(found[1]), int(factor)) for factor in dict.fromkeys(found[2].split(","))]


def write_variant(path: Path, text: str, configuration: Configuration) -> str:
    """The text of a source with a configuration's macros and unroll factors; its lines keep their numbers.

    A macro that the source defines gets its value there, another one is defined before its first line.

    Raises:
        InputError: the source cannot be read as CUDA C++, or there is no loop on such a line.
    """
    if not configuration.definitions and not configuration.unrolls:
        return text
    tree = read_tree(path.name, text)
    if tree is None:
        raise InputError("cannot be read as CUDA C++", path=path, remedy="leave out --define and --unroll")
    edits: list[tuple[int, int, bytes]] = []
    before: list[str] = []
    for name, value in configuration.definitions:
        known = list(_find_definitions(tree, name, value))
        edits += known
        if not known:
            before.append(f"#define {name} {value}\n")
    for line, factor in configuration.unrolls:
        edits.append(_find_unroll(tree, path, line, factor))
    content = tree.content
    for start, end, new in sorted(edits, reverse=True):
        content = content[:start] + new + content[end:]
    own = content.decode("utf-8")
    return "".join([*before, "#line 1\n", own]) if before else own


def _find_definitions(tree: SourceTree, name: str, value: str) -> Iterable[tuple[int, int, bytes]]:
    for node in walk(tree.root):
        if node.type != "preproc_def" or read_text(node.child_by_field_name("name")) != name:
            continue
        named, valued = node.child_by_field_name("name"), node.child_by_field_name("value")
        assert named is not None
        end = named.end_byte if valued is None else valued.end_byte
        yield named.end_byte, end, f" {value}".encode()


def _find_unroll(tree: SourceTree, path: Path, line: int, factor: int) -> tuple[int, int, bytes]:
    """In place of the pragma on the line above, or before the loop on its own line."""
    loops = [node.start_byte for node in walk(tree.root) if node.type in _LOOPS and node.start_point[0] == line - 1]
    if not loops:
        raise InputError(f"no loop begins on line {line}", path=path, place="--unroll", remedy=_UNROLL_REMEDY)
    start = min(loops)
    for pragma in find_pragmas(tree.content):
        is_above = pragma.end_byte <= start and not tree.content[pragma.end_byte : start].strip()
        if is_above and pragma.words.startswith(_PRAGMAS):
            return pragma.start_byte, pragma.end_byte, f"#pragma unroll {factor}".encode()
    return start, start, f'_Pragma("unroll {factor}") '.encode()
