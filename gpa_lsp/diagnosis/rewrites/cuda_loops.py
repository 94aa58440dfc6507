"""Loops of CUDA C++ functions: where they begin, the pragma before them, whether their iterations are counted at compile time."""

from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from gpa_lsp.code.sources.cuda_declarations import Names, list_words
from gpa_lsp.code.sources.directives import Pragma, find_directives
from gpa_lsp.code.sources.trees import SourceTree, list_ancestors, read_text, walk_lines
from gpa_lsp.diagnosis.rewrites.code import read_code
from gpa_lsp.diagnosis.rewrites.model import TextEdit, TextPlace, insert_line_above, quote, read_indentation
from gpa_lsp.foundation.prose import Sentence, say

if TYPE_CHECKING:
    from tree_sitter import Node


LOOPS = frozenset({"for_statement", "while_statement", "do_statement", "for_range_loop"})

_STEPS = frozenset({"++", "--", "+=", "-="})
_CONDITIONS = frozenset({"<", "<=", ">", ">=", "!="})
_DEEPEST = 10


class UnrollPragma(Struct, frozen=True, kw_only=True):
    """Unrolling that a pragma in front of a loop asks for."""

    line: Pragma  # the directive
    # the factor; 1 where unrolling is switched off, None where it is to be complete, where the factor is no number, and for a macro
    copies: int | None
    is_complete: bool  # it gives no factor


def find_loops_beginning(tree: SourceTree, lines: frozenset[int]) -> Iterator["Node"]:
    """Loops whose head, from its keyword to its body, touches some lines (1-based); outermost first."""
    seen = set()
    for node in walk_lines(tree.root, lines):
        for loop in (node, *list_ancestors(node)):
            if loop.type not in LOOPS:
                continue
            body = loop.child_by_field_name("body")
            last = loop.start_point[0] if body is None or loop.type == "do_statement" else body.start_point[0]
            # The head of a loop whose body begins on a line of its own ends before that line.
            is_apart = body is not None and last > loop.start_point[0] and body.type != "compound_statement"
            rows = range(loop.start_point[0], last + (0 if is_apart else 1))
            if loop.id not in seen and any(row + 1 in lines for row in rows):
                seen.add(loop.id)
                yield loop
            break


def find_unroll_pragma(tree: SourceTree, loop: "Node") -> UnrollPragma | None:
    """The ``#pragma unroll`` or ``nounroll`` in front of a loop, or a macro for one; comments and other pragmas may stand between."""
    for line in list_pragmas(tree, loop):
        if line.is_macro:
            return UnrollPragma(line=line, copies=None, is_complete=False)
        name, _, factor = line.words.replace("(", " ").replace(")", " ").partition(" ")
        factor = factor.strip()
        if name == "nounroll":
            return UnrollPragma(line=line, copies=1, is_complete=False)
        if name == "unroll":
            copies = int(factor) if factor.isdecimal() else None
            return UnrollPragma(line=line, copies=copies, is_complete=not factor)
    return None


def list_pragmas(tree: SourceTree, statement: "Node") -> tuple[Pragma, ...]:
    """The pragmas, and macros for them, directly in front of a statement, the nearest first.

    Comments, and the head of an ``#if``, may stand between.
    """
    start = _find_gap(statement)
    between = (one for one in _find_directives(tree) if start <= one.start_byte < statement.start_byte)
    return tuple(one for one in between if not _is_in_comment(tree, one))[::-1]


@lru_cache(maxsize=16)
def _find_directives(tree: SourceTree) -> tuple[Pragma, ...]:
    return find_directives(tree.content)


def _find_gap(statement: "Node") -> int:
    """The byte behind the last token in front of a statement that is no comment and no head of an ``#if``."""
    node: Node | None = statement
    for _ in range(_DEEPEST):
        if node is None:
            break
        before = node.prev_sibling
        while before is not None and before.type == "comment":
            before = before.prev_sibling
        parent = node.parent
        if before is not None and (parent is None or not parent.type.startswith("preproc") or _is_statement(before)):
            return before.end_byte
        node = parent
    return statement.start_byte


def _is_statement(node: "Node | None") -> bool:
    return node is not None and node.type.endswith(
        ("statement", "declaration", "definition", "loop", "preproc_if", "preproc_ifdef")
    )


def _is_in_comment(tree: SourceTree, pragma: Pragma) -> bool:
    node = tree.root.descendant_for_byte_range(pragma.start_byte, pragma.start_byte + 1)
    return node is not None and (node.type == "comment" or "string" in node.type)


def has_constant_turns(loop: "Node", names: Names) -> bool:
    """Whether the compiler can count a loop's iterations: it begins, ends and steps by constants.

    >>> from gpa_lsp.code.sources.cuda_declarations import read_names
    >>> from gpa_lsp.code.sources.trees import read_tree, walk
    >>> def judge(loop: str) -> bool:
    ...     tree = read_tree("k.cu", f"void f(int n) {{ constexpr int m = 8; {loop}; }}")
    ...     return has_constant_turns(next(node for node in walk(tree.root) if node.type in LOOPS), read_names(tree, 0))
    >>> [judge(f"for (int i = 0; i < {end}; i += 2)") for end in ("16", "m * 2", "n")]
    [True, True, False]
    """
    if loop.type != "for_statement":
        return False
    counter = _find_counter(loop)
    condition, update = loop.child_by_field_name("condition"), loop.child_by_field_name("update")
    if counter is None or condition is None or update is None:
        return False
    name, first = counter
    if condition.type != "binary_expression" or read_text(condition.child_by_field_name("operator")) not in _CONDITIONS:
        return False
    end, step = condition.child_by_field_name("right"), update.child_by_field_name("right")
    changed = update.child_by_field_name("left") or update.child_by_field_name("argument")
    if read_text(condition.child_by_field_name("left")) != name or read_text(changed) != name:
        return False
    if read_text(update.child_by_field_name("operator")) not in _STEPS:
        return False
    return all(is_constant(one, names) for one in (first, end) + ((step,) if step is not None else ()))


def _find_counter(loop: "Node") -> tuple[str, "Node"] | None:
    """The one variable a ``for`` declares, and what it begins with."""
    start = loop.child_by_field_name("initializer")
    declarators = (
        start.children_by_field_name("declarator") if start is not None and start.type == "declaration" else []
    )
    if len(declarators) != 1:
        return None
    value = declarators[0].child_by_field_name("value")
    name = declarators[0].child_by_field_name("declarator")
    return None if value is None or name is None or name.type != "identifier" else (read_text(name), value)


def is_constant(node: "Node | None", names: Names, depth: int = 0) -> bool:
    """Whether the compiler knows an integer: literals, constants, template parameters, macros for a number, and operations on these."""
    if node is None or depth > _DEEPEST:
        return False
    if node.type == "number_literal":
        return True
    if node.type in ("parenthesized_expression", "binary_expression"):
        return all(is_constant(child, names, depth + 1) for child in node.named_children)
    if node.type != "identifier":
        return False
    name = read_text(node)
    if name in names.macros:
        return all(word.isdecimal() for word in list_words(names.macros[name])) and bool(names.macros[name])
    declaration = names.find(node)
    if declaration is None or not declaration.type.is_integer:
        return False
    if declaration.scope.type == "template_declaration" or "constexpr" in declaration.qualifiers:
        return True
    return "const" in declaration.qualifiers and is_constant(declaration.value, names, depth + 1)


def write_pragma(copies: int | None) -> str:
    """Unroll directive with a factor; None unrolls fully.

    >>> write_pragma(4), write_pragma(None)
    ('#pragma unroll 4', '#pragma unroll')
    """
    return "#pragma unroll" if copies is None else f"#pragma unroll {copies}"


def put_pragma(tree: SourceTree, loop: "Node", copies: int | None) -> TextEdit | None:
    """Put a pragma on the line above a loop; None where the loop is not first on its line, because a directive needs its own line."""
    code, indentation = read_code(tree, loop), read_indentation(tree, loop)
    parent = loop.parent
    if code is None or indentation is None or parent is None or parent.type == "attributed_statement":
        return None
    if _stands_at_margin(tree, code.function.node):
        indentation = b""
    return insert_line_above(tree, loop, write_pragma(copies), indentation=indentation)


def change_pragma(tree: SourceTree, loop: "Node", pragma: UnrollPragma, copies: int) -> TextEdit | None:
    """Change the factor in the pragma in front of a loop; None where it contains a comment or a continued line."""
    line = pragma.line
    words = tree.content[line.words_byte : line.end_byte].decode("utf-8", "replace")
    if read_code(tree, loop) is None or " ".join(words.split()) != line.words:
        return None
    column = line.words_byte - tree.content.rfind(b"\n", 0, line.words_byte) - 1
    start = TextPlace(line=line.row + 1, column=column)
    return TextEdit(start=start, end=replace(start, column=column + len(words.rstrip())), text=f"unroll {copies}")


def _stands_at_margin(tree: SourceTree, function: "Node") -> bool:
    """Whether the function's other pragmas are not indented; many formatters write them so."""
    return tree.content.find(b"\n#pragma", function.start_byte, function.end_byte) >= 0


def propose_factor(
    tree: SourceTree, loop: "Node", pragma: UnrollPragma | None, copies: int | None
) -> tuple[Sentence, TextEdit | None]:
    """A title and an edit that give a loop a factor: in the pragma it has, or in a new one."""
    new = quote(write_pragma(copies))
    if pragma is None or copies is None:
        return say("Put {pragma} before the loop", pragma=new), put_pragma(tree, loop, copies)
    old = quote(f"#pragma {pragma.line.words}")
    return say("Replace {old} by {new}", old=old, new=new), change_pragma(tree, loop, pragma, copies)
