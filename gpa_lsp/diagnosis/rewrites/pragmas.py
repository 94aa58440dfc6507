"""Unroll pragmas put in front of loops, or changed."""

from typing import TYPE_CHECKING

from msgspec.structs import replace

from gpa_lsp.code.sources.trees import SourceTree
from gpa_lsp.diagnosis.rewrites.code import read_code
from gpa_lsp.diagnosis.rewrites.cuda_loops import UnrollPragma
from gpa_lsp.diagnosis.rewrites.edits import insert_line_above, read_indentation
from gpa_lsp.diagnosis.rewrites.model import TextEdit, TextPlace

if TYPE_CHECKING:
    from tree_sitter import Node


def write_pragma(copies: int | None) -> str:
    """The directive.

    >>> write_pragma(4), write_pragma(None)
    ('#pragma unroll 4', '#pragma unroll')
    """
    return "#pragma unroll" if copies is None else f"#pragma unroll {copies}"


def put_pragma(tree: SourceTree, loop: "Node", copies: int | None) -> TextEdit | None:
    """A pragma on the line above a loop; None where the loop is not the first thing on its line, because a directive needs a line of its own."""
    code, indentation = read_code(tree, loop), read_indentation(tree, loop)
    parent = loop.parent
    if code is None or indentation is None or parent is None or parent.type == "attributed_statement":
        return None
    if _stands_at_margin(tree, code.function.node):
        indentation = b""
    return insert_line_above(tree, loop, write_pragma(copies), indentation=indentation)


def change_pragma(tree: SourceTree, loop: "Node", pragma: UnrollPragma, copies: int) -> TextEdit | None:
    """Another factor in the pragma in front of a loop; None where a comment or a continued line stands in it."""
    line = pragma.line
    words = tree.content[line.words_byte : line.end_byte].decode("utf-8", "replace")
    if read_code(tree, loop) is None or " ".join(words.split()) != line.words:
        return None
    column = line.words_byte - tree.content.rfind(b"\n", 0, line.words_byte) - 1
    start = TextPlace(line=line.row + 1, column=column)
    return TextEdit(start=start, end=replace(start, column=column + len(words.rstrip())), text=f"unroll {copies}")


def _stands_at_margin(tree: SourceTree, function: "Node") -> bool:
    """The function's other pragmas are not indented, as many formatters have it."""
    return tree.content.find(b"\n#pragma", function.start_byte, function.end_byte) >= 0
