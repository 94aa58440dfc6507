"""The loops of Triton kernels over a range, and other words for the range."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec import Struct

from gpa_lsp.code.sources.trees import read_text, walk, walk_lines
from gpa_lsp.diagnosis.rewrites.edits import insert_behind, replace_node
from gpa_lsp.diagnosis.rewrites.model import Site, TextEdit
from gpa_lsp.diagnosis.rewrites.python_functions import (
    TRITON_KERNEL,
    PythonFunction,
    find_argument,
    find_compiled_around,
    list_arguments,
    read_imports,
)

if TYPE_CHECKING:
    from tree_sitter import Node

_LANGUAGE = "triton.language"
_RANGE = f"{_LANGUAGE}.range"


class RangeLoop(Struct, frozen=True, kw_only=True, eq=False):
    """``for name in range(…)`` or ``tl.range(…)`` in a Triton function."""

    function: PythonFunction  # the function
    node: "Node"  # the loop
    call: "Node"  # the range
    language: str  # what the file calls ``triton.language``
    is_triton: bool  # it is Triton's own range, which takes options

    def has_option(self, name: str) -> bool:
        """The range has an option already."""
        return find_argument(self.call, name) is not None

    def has_call(self, name: str) -> bool:
        """The body calls a function of ``triton.language``."""
        body = self.node.child_by_field_name("body")
        calls = (one for one in walk(body) if one.type == "call") if body is not None else ()
        wanted = f"{_LANGUAGE}.{name}"
        return any(self.function.find_meaning(one.child_by_field_name("function")) == wanted for one in calls)


def find_range_loops(site: Site) -> Iterator[RangeLoop]:
    """Such loops that begin on the site's lines."""
    for node in walk_lines(site.tree.root, site.lines):
        call = node.child_by_field_name("right") if node.type == "for_statement" else None
        if call is None or call.type != "call":
            continue
        function = find_compiled_around(site.tree, node)
        if function is None or function.compiler != TRITON_KERNEL:
            continue
        meaning = function.find_meaning(call.child_by_field_name("function"))
        language = _find_language(function)
        if meaning in ("range", _RANGE) and language is not None and _is_plain(call):
            yield RangeLoop(function=function, node=node, call=call, language=language, is_triton=meaning == _RANGE)


def _find_language(function: PythonFunction) -> str | None:
    """What the file calls ``triton.language``, where the function does not use that name for something else."""
    names = (name for name, origin in read_imports(function.tree).items() if origin == _LANGUAGE)
    return next((name for name in names if name not in function.bound), None)


def _is_plain(call: "Node") -> bool:
    """Between one and three positions, and nothing that is spread out of a list."""
    given = list_arguments(call)
    positions = [one for one in given if one.type != "keyword_argument"]
    return 1 <= len(positions) <= 3 and not any("splat" in one.type for one in given)


def add_option(site: Site, loop: RangeLoop, option: str) -> tuple[TextEdit, ...]:
    """Triton's range with one more option."""
    behind = insert_behind(site.tree, list_arguments(loop.call)[-1], f", {option}")
    name = loop.call.child_by_field_name("function")
    if loop.is_triton or name is None:
        return (behind,)
    return replace_node(site.tree, name, f"{loop.language}.range"), behind


def is_constant(function: PythonFunction, node: "Node") -> bool:
    """A whole number or a parameter declared ``tl.constexpr``.

    Sums and other operations of these are constants, too.
    """
    parts = list(walk(node, most=40))
    return all(
        part.type in ("integer", "binary_operator", "parenthesized_expression")
        or (part.type == "identifier" and read_text(part) in _list_constants(function))
        for part in parts
    )


def _list_constants(function: PythonFunction) -> frozenset[str]:
    """Parameters declared ``tl.constexpr``."""
    parameters = function.node.child_by_field_name("parameters")
    names = set()
    for one in parameters.named_children if parameters is not None else ():
        kind = one.child_by_field_name("type")
        meaning = function.find_meaning(kind.named_children[0]) if kind is not None and kind.named_children else None
        if meaning == f"{_LANGUAGE}.constexpr":
            names.add(read_text(one.child_by_field_name("name") or one.named_children[0]))
    return frozenset(names)
