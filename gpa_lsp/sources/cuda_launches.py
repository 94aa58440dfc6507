"""The block sizes that the host code of a CUDA C++ text launches a kernel with, as far as the text says them in numbers."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.sources.cuda_declarations import read_macros
from gpa_lsp.sources.cuda_functions import find_kernel_calls
from gpa_lsp.sources.cuda_values import read_number
from gpa_lsp.sources.trees import SourceTree, list_ancestors, read_text, read_tree, walk

if TYPE_CHECKING:
    from tree_sitter import Node

_DEEPEST = 12
"""Names of names and parentheses in parentheses, from the launch to the number."""

_MOST_THREADS = 1024
_OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "+": lambda left, right: left + right,
    "-": lambda left, right: left - right,
    "*": lambda left, right: left * right,
    "/": lambda left, right: left // right if right > 0 else 0,
    "<<": lambda left, right: left << right if 0 <= right < 16 else 0,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchSize:
    """One launch of a kernel, ``kernel<<<grid, block, shared>>>(…)``.

    Attributes:
        line: of the launch, 1-based.
        block: threads in x, y, z.
        dynamic_shared_bytes: 0 where the launch names none; None where it names something that is no number of the text.
    """

    line: int
    block: tuple[int, int, int]
    dynamic_shared_bytes: int | None

    @property
    def threads(self) -> int:
        """Of one block."""
        return self.block[0] * self.block[1] * self.block[2]


def find_launch_sizes(file: str, text: str, kernel: str) -> tuple[LaunchSize, ...]:
    """The launches of a kernel whose block is made of numbers, constants and macros of the text, in its order.

    Args:
        file: its name, for the language.
        text: of the whole file.
        kernel: plain name, without namespace or template arguments.

    Returns:
        Empty for texts without such a launch, and for those that are not parsed. A variable counts as a number when it is declared with one
        and nothing in its function writes to it afterwards.

    >>> text = "#define T 16\\nvoid f() { dim3 block(T, T); k<<<9, block>>>(); k<<<9, 2 * 64, n>>>(); k<<<9, threads>>>(); }"
    >>> [(one.block, one.dynamic_shared_bytes) for one in find_launch_sizes("k.cu", text, "k")]
    [((16, 16, 1), 0), ((128, 1, 1), None)]
    """
    tree = read_tree(file, text)
    if tree is None:
        return ()
    found = (_read_launch(tree, call) for call in find_kernel_calls(tree, kernel))
    return tuple(launch for launch in found if launch is not None)


def _read_launch(tree: SourceTree, call: "Node") -> LaunchSize | None:
    syntax = next((child for child in call.named_children if child.type == "kernel_call_syntax"), None)
    settings = [] if syntax is None else [child for child in syntax.named_children if child.type != "comment"]
    if len(settings) < 2:
        return None
    block = _Evaluator(tree).read_size(settings[1])
    if block is None or not 0 < block[0] * block[1] * block[2] <= _MOST_THREADS or min(block) < 1:
        return None
    shared = 0 if len(settings) < 3 else _Evaluator(tree).read_number(settings[2])
    return LaunchSize(
        line=call.start_point[0] + 1,
        block=block,
        dynamic_shared_bytes=shared if shared is not None and shared >= 0 else None,
    )


class _Evaluator:
    """Numbers of expressions; None for everything that is not made of numbers of the text."""

    def __init__(self, tree: SourceTree) -> None:
        self._tree = tree

    def read_size(self, node: "Node", depth: int = 0) -> tuple[int, int, int] | None:
        """A ``dim3``, or a number for its x."""
        parts = self._list_parts(node, depth)
        if parts is None or not 0 < len(parts) <= 3:
            return None
        numbers = [self.read_number(part, depth + 1) for part in parts]
        if any(number is None for number in numbers):
            return None
        x, y, z = [number or 0 for number in numbers] + [1] * (3 - len(numbers))
        return x, y, z

    def _list_parts(self, node: "Node", depth: int) -> "list[Node] | None":
        """What the x, y and z of a size are written as."""
        if depth > _DEEPEST:
            return None
        if node.type == "call_expression" and read_text(node.child_by_field_name("function")) == "dim3":
            arguments = node.child_by_field_name("arguments")
            return None if arguments is None else _list_values(arguments)
        if node.type == "compound_literal_expression" and read_text(node.child_by_field_name("type")) == "dim3":
            value = node.child_by_field_name("value")
            return None if value is None else _list_values(value)
        if node.type in ("initializer_list", "argument_list"):
            return _list_values(node)
        declared = _find_declarator(self._tree, node) if node.type == "identifier" else None
        if declared is None or read_text(_find_declaration(declared).child_by_field_name("type")) != "dim3":
            return [node]
        if declared.type == "function_declarator":  # ``dim3 block(T, T)`` looks like a function of two types
            parameters = declared.child_by_field_name("parameters")
            types = [] if parameters is None else parameters.named_children
            return [child.named_children[0] for child in types if child.named_children]
        value = declared.child_by_field_name("value")
        return None if value is None else self._list_parts(value, depth + 1)

    def read_number(self, node: "Node", depth: int = 0) -> int | None:
        """The value of an expression of whole numbers."""
        if depth > _DEEPEST:
            return None
        if node.type == "number_literal":
            return _read_whole(read_text(node))
        if node.type in ("parenthesized_expression", "initializer_list") and len(node.named_children) == 1:
            return self.read_number(node.named_children[0], depth + 1)
        if node.type == "binary_expression":
            return self._calculate(node, depth)
        if node.type in ("identifier", "type_identifier"):
            return self._look_up(node, depth)
        return None

    def _calculate(self, node: "Node", depth: int) -> int | None:
        operation = _OPERATIONS.get(read_text(node.child_by_field_name("operator")))
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        if operation is None or left is None or right is None:
            return None
        numbers = self.read_number(left, depth + 1), self.read_number(right, depth + 1)
        return None if numbers[0] is None or numbers[1] is None else operation(numbers[0], numbers[1])

    def _look_up(self, node: "Node", depth: int) -> int | None:
        macro = read_macros(self._tree).get(read_text(node))
        if macro is not None:
            return _read_whole(macro.strip("() "))
        declared = _find_declarator(self._tree, node)
        value = None if declared is None else declared.child_by_field_name("value")
        return None if value is None else self.read_number(value, depth + 1)


def _list_values(node: "Node") -> "list[Node]":
    return [child for child in node.named_children if child.type != "comment"]


def _read_whole(text: str) -> int | None:
    value = read_number(text).value
    return int(value) if value is not None and abs(value) < 1 << 31 and value == int(value) else None


def _find_declarator(tree: SourceTree, name: "Node") -> "Node | None":
    """What gives a name its value for good: its only declaration in the function around, else in the file; None where something writes to it."""
    function = next((one for one in list_ancestors(name) if one.type == "function_definition"), None)
    wanted = read_text(name)
    for scope in (function, tree.root):
        if scope is None:
            continue
        found = [one for one in _list_declarators(scope, wanted) if scope is function or _is_of_file(one)]
        if found:
            return found[0] if len(found) == 1 and not _is_written(scope, wanted) else None
    return None


def _list_declarators(scope: "Node", name: str) -> "Iterator[Node]":
    for node in walk(scope):
        if node.type == "declaration":
            for declarator in node.children_by_field_name("declarator"):
                if read_text(declarator.child_by_field_name("declarator")) == name:
                    yield declarator


def _is_of_file(declarator: "Node") -> bool:
    return all(one.type != "function_definition" for one in list_ancestors(declarator))


def _find_declaration(declarator: "Node") -> "Node":
    return next((one for one in list_ancestors(declarator) if one.type == "declaration"), declarator)


def _is_written(scope: "Node", name: str) -> bool:
    """Something in a scope assigns to a name or one of its members, counts it up or down, or takes its address."""
    for node in walk(scope):
        if node.type in ("assignment_expression", "update_expression", "pointer_expression"):
            target = node.child_by_field_name("left") or node.child_by_field_name("argument")
            if target is not None and target.type == "field_expression":
                target = target.child_by_field_name("argument")
            is_reading = node.type == "pointer_expression" and read_text(node).startswith("*")
            if read_text(target) == name and not is_reading:
                return True
    return False
