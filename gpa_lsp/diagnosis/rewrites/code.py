"""Facts that the text of a CUDA C++ function proves: the types of its expressions, its floating-point divisions.

Facts that the text of one file does not prove are unknown.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field

from gpa_lsp.code.sources.cuda_declarations import (
    DOUBLE,
    FLOAT,
    INTEGER,
    UNKNOWN,
    VECTOR_ELEMENTS,
    Names,
    Scalar,
    ValueType,
    read_descriptor,
    read_names,
    read_number,
    read_scalar,
)
from gpa_lsp.code.sources.cuda_functions import (
    CudaFunction,
    find_function_around,
    find_function_names,
    find_functions_on_lines,
    find_kernels,
)
from gpa_lsp.code.sources.trees import SourceTree, is_sound, list_ancestors, read_text, walk_lines
from gpa_lsp.diagnosis.rewrites.model import Site
from gpa_lsp.foundation.toml_tables import read_own_table

if TYPE_CHECKING:
    from tree_sitter import Node

_DEEPEST = 40  # Levels of an expression that are looked at; a deeper one is of unknown type

_ARITHMETIC = frozenset({"+", "-", "*", "/"})
_OF_INTEGERS = frozenset({"%", "&", "|", "^", "<<", ">>"})
_TRUTHS = frozenset({"<", ">", "<=", ">=", "==", "!=", "&&", "||"})
_BUILTIN_VARIABLES = {
    "warpSize": INTEGER,
    **dict.fromkeys(("threadIdx", "blockIdx", "blockDim", "gridDim"), ValueType(scalar=Scalar.INTEGER_VECTOR)),
}
_CASTS = frozenset({"static_cast", "reinterpret_cast", "const_cast"})


class KnownFunctions(Struct, frozen=True, kw_only=True):
    """Functions by the type of their result; see ``cuda_functions.toml``."""

    single: frozenset[str]  # single precision, from single precision
    converting: frozenset[str]  # single precision, from another type
    overloaded: frozenset[str]  # the precision of the arguments
    integer: frozenset[str]  # whole numbers
    loads: frozenset[str]  # the type that the first argument points to
    second: frozenset[str]  # the type of the second argument
    of_numbers: frozenset[str]  # functions whose result depends only on their arguments, which they take by value
    # all functions; they write nothing, but may load from memory, and read what other threads wrote
    reading: frozenset[str]


@cache
def load_known_functions() -> KnownFunctions:
    """The functions of ``cuda_functions.toml``."""
    table = read_own_table(Path(__file__).with_name("cuda_functions.toml"))
    groups = {group: frozenset(names) for group, names in table.items()}
    of_numbers = groups["single"] | groups["converting"] | groups["overloaded"] | groups["integer"]
    return KnownFunctions(**groups, of_numbers=of_numbers, reading=of_numbers | groups["loads"] | groups["second"])


class ExpressionTypes(Struct, kw_only=True):
    """Types of the expressions of one function, found when asked for and then kept."""

    tree: SourceTree  # the text
    names: Names  # of the function
    _found: dict[int, ValueType] = field(default_factory=dict)

    def find(self, node: "Node | None", depth: int = 0) -> ValueType:
        """The type of an expression; UNKNOWN where the text does not prove it.

        >>> from gpa_lsp.code.sources.cuda_declarations import read_names
        >>> from gpa_lsp.code.sources.trees import read_tree, walk
        >>> tree = read_tree("k.cu", "void f(const float *x, int n) { x[n] * 2 + threadIdx.x; }")
        >>> types = ExpressionTypes(tree=tree, names=read_names(tree, 0))
        >>> found = {read_text(node): types.find(node).scalar.value for node in walk(tree.root) if node.type.endswith("expression")}
        >>> found["x[n]"], found["x[n] * 2 + threadIdx.x"], found["threadIdx.x"]
        ('float', 'float', 'integer')
        """
        if node is None or depth > _DEEPEST:
            return UNKNOWN
        found = self._found.get(node.id)
        if found is None:
            rule = _RULES.get(node.type)
            found = _LITERALS.get(node.type, UNKNOWN) if rule is None else rule(self, node, depth + 1)
            self._found[node.id] = found
        return found

    def read_called_name(self, call: "Node") -> str | None:
        """The plain name of the function that a call calls, ``std::`` and ``::`` left out.

        None for members and other namespaces, and for names that the file itself declares.
        """
        function = call.child_by_field_name("function")
        if function is not None and function.type == "qualified_identifier":
            if read_text(function.child_by_field_name("scope")) not in ("", "std"):
                return None
            function = function.child_by_field_name("name")
        if function is None or function.type != "identifier":
            return None
        name = read_text(function)
        is_own = name in self.names.macros or name in self.names.by_name or name in find_function_names(self.tree)
        return None if is_own else name

    def _find_number(self, node: "Node", _depth: int) -> ValueType:
        return read_number(read_text(node)).type

    def _find_inner(self, node: "Node", depth: int) -> ValueType:
        return self.find(node.named_children[0], depth) if len(node.named_children) == 1 else UNKNOWN

    def _find_choice(self, node: "Node", depth: int) -> ValueType:
        sides = (node.child_by_field_name("consequence"), node.child_by_field_name("alternative"))
        return join_types(*(self.find(side, depth) for side in sides))

    def _find_target(self, node: "Node", depth: int) -> ValueType:
        return self.find(node.child_by_field_name("left") or node.child_by_field_name("argument"), depth)

    def _find_cast(self, node: "Node", _depth: int) -> ValueType:
        return read_descriptor(node.child_by_field_name("type"))

    def _find_name(self, node: "Node", depth: int) -> ValueType:
        declaration = self.names.find(node)
        if declaration is None:
            return _BUILTIN_VARIABLES.get(read_text(node), UNKNOWN)
        if declaration.type.scalar is not Scalar.AUTO:
            return declaration.type
        if declaration.value is None or declaration.type.levels or declaration.node.type == "for_range_loop":
            return UNKNOWN
        return self.find(declaration.value, depth)

    def _find_operation(self, node: "Node", depth: int) -> ValueType:
        operator = read_text(node.child_by_field_name("operator"))
        if node.type == "unary_expression":
            operand = self.find(node.child_by_field_name("argument"), depth)
            if operator == "!":
                return INTEGER
            return operand if operator in ("+", "-") or operand.is_integer else UNKNOWN
        if operator in _TRUTHS:
            return INTEGER
        left, right = (self.find(node.child_by_field_name(side), depth) for side in ("left", "right"))
        if operator in _OF_INTEGERS:
            return INTEGER if left.is_integer and right.is_integer else UNKNOWN
        if operator not in _ARITHMETIC:
            return UNKNOWN
        if left.levels and right.is_integer and operator in "+-":
            return left
        return right if right.levels and left.is_integer and operator == "+" else join_types(left, right)

    def _find_access(self, node: "Node", depth: int) -> ValueType:
        target = self.find(node.child_by_field_name("argument"), depth)
        if target.scalar in (Scalar.UNKNOWN, Scalar.AUTO):
            return UNKNOWN
        if node.type == "field_expression":
            is_there = target.levels == (1 if read_text(node.child_by_field_name("operator")) == "->" else 0)
            is_element = read_text(node.child_by_field_name("field")) in ("x", "y", "z", "w")
            element = VECTOR_ELEMENTS.get(target.scalar)
            return ValueType(scalar=element) if element is not None and is_there and is_element else UNKNOWN
        if node.type == "pointer_expression" and read_text(node.child_by_field_name("operator")) == "&":
            return ValueType(scalar=target.scalar, levels=target.levels + 1)
        if node.type == "subscript_expression":
            indices = node.child_by_field_name("indices")
            if indices is None or len(indices.named_children) != 1:
                return UNKNOWN
        return ValueType(scalar=target.scalar, levels=target.levels - 1) if target.levels else UNKNOWN

    def _find_call(self, node: "Node", depth: int) -> ValueType:
        function, arguments = node.child_by_field_name("function"), node.child_by_field_name("arguments")
        operands = arguments.named_children if arguments is not None else []
        if function is None or not operands:
            return UNKNOWN
        if function.type == "primitive_type":
            return ValueType(scalar=read_scalar(function)) if len(operands) == 1 else UNKNOWN
        if function.type == "template_function" and read_text(function.child_by_field_name("name")) in _CASTS:
            types = function.child_by_field_name("arguments")
            return read_descriptor(types.named_children[0] if types is not None and types.named_children else None)
        name = self.read_called_name(node)
        return UNKNOWN if name is None else self._find_result(name, [self.find(one, depth) for one in operands])

    def _find_result(self, name: str, operands: list[ValueType]) -> ValueType:
        known = load_known_functions()
        if name in known.integer:
            return INTEGER
        if name in known.single or name in known.converting:
            return FLOAT
        if name in known.loads:
            return (
                ValueType(scalar=operands[0].scalar, levels=operands[0].levels - 1) if operands[0].levels else UNKNOWN
            )
        if name in known.second:
            return operands[1] if len(operands) > 1 else UNKNOWN
        return _choose_overload(operands) if name in known.overloaded else UNKNOWN


_LITERALS = dict.fromkeys(("char_literal", "true", "false", "sizeof_expression"), INTEGER)
_RULES: "Mapping[str, Callable[[ExpressionTypes, Node, int], ValueType]]" = {
    "number_literal": ExpressionTypes._find_number,
    "identifier": ExpressionTypes._find_name,
    "parenthesized_expression": ExpressionTypes._find_inner,
    "binary_expression": ExpressionTypes._find_operation,
    "unary_expression": ExpressionTypes._find_operation,
    "conditional_expression": ExpressionTypes._find_choice,
    "assignment_expression": ExpressionTypes._find_target,
    "update_expression": ExpressionTypes._find_target,
    "subscript_expression": ExpressionTypes._find_access,
    "pointer_expression": ExpressionTypes._find_access,
    "field_expression": ExpressionTypes._find_access,
    "cast_expression": ExpressionTypes._find_cast,
    "call_expression": ExpressionTypes._find_call,
}


def join_types(left: ValueType, right: ValueType) -> ValueType:
    """Type in which arithmetic with two operands is done; UNKNOWN for pointers and vectors."""
    kinds = {left, right}
    if not kinds <= {FLOAT, DOUBLE, INTEGER}:
        return UNKNOWN
    return DOUBLE if DOUBLE in kinds else FLOAT if FLOAT in kinds else INTEGER


def _choose_overload(operands: list[ValueType]) -> ValueType:
    """Type of an overloaded function's result: an integer argument chooses double in some functions and an integer in others, so UNKNOWN."""
    if all(operand.is_float for operand in operands):
        return FLOAT
    is_double = any(operand.is_double for operand in operands)
    return DOUBLE if is_double and all(operand.is_double or operand.is_float for operand in operands) else UNKNOWN


class Code(Struct, frozen=True, kw_only=True, eq=False):
    """A function that parsed as a whole."""

    tree: SourceTree  # the text
    names: Names  # declarations of its names
    types: ExpressionTypes  # types of its expressions

    @property
    def function(self) -> CudaFunction:
        """Definition and signature of the function."""
        return self.names.function


def read_code(tree: SourceTree, node: "Node") -> Code | None:
    """The function around a node; None outside functions, and for one that did not parse or is too long to be looked through."""
    function = find_function_around(node)
    return None if function is None else _read_code_at(tree, function.node.start_byte)


@lru_cache(maxsize=64)
def _read_code_at(tree: SourceTree, start_byte: int) -> Code | None:
    names = read_names(tree, start_byte)
    if names is None or not is_sound(names.function.node):
        return None
    return Code(tree=tree, names=names, types=ExpressionTypes(tree=tree, names=names))


def find_kernel(site: Site) -> Code | None:
    """The kernel a site is about: the one of its name that has a body here, else the one around its lines; None where that is not one."""
    kernels = find_kernels(site.tree, site.context.kernel) if site.context.kernel else ()
    if len(kernels) != 1:
        named = {kernel.node.id for kernel in kernels}
        near = [one for one in find_functions_on_lines(site.tree, site.lines) if one.is_kernel]
        kernels = tuple(one for one in near if not site.context.kernel or one.node.id in named)
    return read_code(site.tree, kernels[0].node) if len(kernels) == 1 else None


def find_lambda_around(node: "Node") -> "Node | None":
    """The innermost lambda around a node within its function."""
    for around in list_ancestors(node):
        if around.type == "function_definition":
            return None
        if around.type == "lambda_expression":
            return around
    return None


class Division(Struct, frozen=True, kw_only=True, eq=False):
    """``dividend / divisor`` or ``dividend /= divisor``."""

    code: Code  # the function it is in
    node: "Node"  # the whole
    dividend: "Node"
    operator: "Node"  # the token between
    divisor: "Node"
    type: ValueType  # in which it is done; UNKNOWN where that is not certain

    @property
    def is_assignment(self) -> bool:
        """Whether it changes the dividend."""
        return self.node.type == "assignment_expression"

    @property
    def literal_divisor(self) -> float | None:
        """The divisor's value, where it is a literal."""
        inner = self.divisor
        return read_number(read_text(inner)).value if inner.type == "number_literal" else None


def find_divisions(tree: SourceTree, lines: frozenset[int]) -> Iterator[Division]:
    """Divisions that begin, or whose divisor begins, on some lines (1-based); outermost first."""
    seen = set()
    for node in walk_lines(tree.root, lines):
        for near in (node, node.parent):
            if near is None or near.id in seen or not _is_division(near):
                continue
            seen.add(near.id)
            code = read_code(tree, near)
            found = None if code is None else read_division(code, near)
            if found is not None:
                yield found


def read_division(code: Code, node: "Node") -> Division | None:
    """A node as a division; None for anything else, and for one with a comment in it."""
    if not _is_division(node) or node.child_count != 3:
        return None
    dividend, operator, divisor = node.children
    left, right = code.types.find(dividend), code.types.find(divisor)
    joined = join_types(left, right)
    is_narrowed = node.type == "assignment_expression" and joined != left
    return Division(
        code=code,
        node=node,
        dividend=dividend,
        operator=operator,
        divisor=divisor,
        type=UNKNOWN if is_narrowed else joined,
    )


def _is_division(node: "Node") -> bool:
    if node.type not in ("binary_expression", "assignment_expression"):
        return False
    return read_text(node.child_by_field_name("operator")) in ("/", "/=")
