"""Name lookup in a CUDA C++ function: the variables and parameters that its text declares, and macros.

Only the file itself is read. What a header declares is unknown, and a name that is a macro here is never taken for a variable.
"""

import re
from collections.abc import Iterator, Mapping
from enum import Enum
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct, field

from gpa_lsp.code.sources.cuda_functions import (
    CudaFunction,
    find_function_around,
    find_functions_on_lines,
    list_file_nodes,
)
from gpa_lsp.code.sources.trees import MOST_NODES, SourceTree, find_nodes_at, list_ancestors, read_text, read_tree

if TYPE_CHECKING:
    from tree_sitter import Node


class Scalar(Enum):
    """Kind of number that arithmetic is done in."""

    FLOAT = "float"
    DOUBLE = "double"
    INTEGER = "integer"  # Any width and sign, and bool
    FLOAT_VECTOR = "float vector"  # float1 to float4
    DOUBLE_VECTOR = "double vector"
    INTEGER_VECTOR = "integer vector"
    AUTO = "auto"  # That of its initial value
    UNKNOWN = "unknown"


# Kind of ``.x`` of a vector
VECTOR_ELEMENTS = {
    Scalar.FLOAT_VECTOR: Scalar.FLOAT,
    Scalar.DOUBLE_VECTOR: Scalar.DOUBLE,
    Scalar.INTEGER_VECTOR: Scalar.INTEGER,
}


class ValueType(Struct, frozen=True, kw_only=True):
    """The type of a value."""

    scalar: Scalar  # what is there after all levels
    levels: int = 0  # how often it must be indexed or dereferenced to get there; arrays and pointers are the same here

    @property
    def is_float(self) -> bool:
        """Whether it is a single precision number, not a pointer to one."""
        return self == FLOAT

    @property
    def is_double(self) -> bool:
        """Whether it is a double precision number."""
        return self == DOUBLE

    @property
    def is_integer(self) -> bool:
        """Whether it is an integer."""
        return self == INTEGER


FLOAT = ValueType(scalar=Scalar.FLOAT)
DOUBLE = ValueType(scalar=Scalar.DOUBLE)
INTEGER = ValueType(scalar=Scalar.INTEGER)
UNKNOWN = ValueType(scalar=Scalar.UNKNOWN)

_VECTORS = {
    **{f"float{n}": Scalar.FLOAT_VECTOR for n in range(1, 5)},
    **{f"double{n}": Scalar.DOUBLE_VECTOR for n in range(1, 5)},
    **{
        f"{element}{n}": Scalar.INTEGER_VECTOR
        for element in ("char", "uchar", "short", "ushort", "int", "uint", "long", "ulong", "longlong", "ulonglong")
        for n in range(1, 5)
    },
    "dim3": Scalar.INTEGER_VECTOR,
}
_NO_INTEGERS = frozenset({"void", "nullptr_t", "max_align_t"})


def read_scalar(node: "Node | None") -> Scalar:
    """Kind of a type specifier; UNKNOWN for names that are no builtin type of CUDA C++, which may be template parameters."""
    if node is None:
        return Scalar.UNKNOWN
    text = read_text(node)
    if node.type == "primitive_type":
        known = {"float": Scalar.FLOAT, "double": Scalar.DOUBLE}
        return known.get(text, Scalar.UNKNOWN if text in _NO_INTEGERS else Scalar.INTEGER)
    if node.type == "sized_type_specifier":
        return Scalar.UNKNOWN if "double" in text.split() else Scalar.INTEGER
    if node.type == "type_identifier":
        return _VECTORS.get(text, Scalar.UNKNOWN)
    return Scalar.AUTO if node.type == "placeholder_type_specifier" and text == "auto" else Scalar.UNKNOWN


def read_descriptor(node: "Node | None") -> ValueType:
    """The type in a cast.

    >>> from gpa_lsp.code.sources.trees import read_tree, walk
    >>> casts = walk(read_tree("k.cu", "int a = (float*)p;").root)
    >>> read_descriptor(next(node for node in casts if node.type == "type_descriptor"))
    ValueType(scalar=<Scalar.FLOAT: 'float'>, levels=1)
    """
    if node is None or node.type != "type_descriptor":
        return UNKNOWN
    levels = 0
    declarator = node.child_by_field_name("declarator")
    while declarator is not None:
        if declarator.type not in ("abstract_pointer_declarator", "abstract_reference_declarator"):
            return UNKNOWN
        levels += declarator.type == "abstract_pointer_declarator"
        declarator = declarator.child_by_field_name("declarator")
    return ValueType(scalar=read_scalar(node.child_by_field_name("type")), levels=levels)


class NumberLiteral(Struct, frozen=True, kw_only=True):
    """A number as it is written."""

    type: ValueType  # FLOAT, DOUBLE, INTEGER, or UNKNOWN for long doubles and other suffixes
    value: float | None  # rounded to double; None for what cannot be read

    @property
    def is_exact_in_float(self) -> bool:
        """Whether a float holds the same number."""
        return self.value is not None and _round_to_float(self.value) == self.value

    @property
    def fits_float(self) -> bool:
        """Whether a float holds it with all its 24 bits: neither too large nor so small that bits are lost."""
        if self.value is None:
            return False
        size = abs(_round_to_float(self.value))
        return self.value == 0.0 or float(np.finfo(np.float32).tiny) <= size < np.inf


def read_number(text: str) -> NumberLiteral:
    """Type and value of a C++ number literal.

    >>> [read_number(one).type.scalar.value for one in ("1.", "1e3f", "0x1p-3", "0x1f", "1.0L", "2u")]
    ['double', 'float', 'double', 'integer', 'unknown', 'integer']
    >>> read_number("1'000.5").value, read_number("0.1").is_exact_in_float, read_number("1e-60").fits_float
    (1000.5, False, False)
    """
    digits = text.replace("'", "").lower().lstrip("+-")
    is_hexadecimal = digits.startswith("0x")
    is_real = "p" in digits if is_hexadecimal else not digits.startswith("0b") and ("." in digits or "e" in digits)
    if not is_real:
        suffix = digits.lstrip("0123456789abcdefx") if is_hexadecimal else digits.lstrip("0123456789b")
        return NumberLiteral(
            type=INTEGER if set(suffix) <= set("ulz") else UNKNOWN, value=_parse(digits[: len(digits) - len(suffix)])
        )
    suffix = digits[len(digits.rstrip("abcdefghijklmnopqrstuvwxyz")) :] if is_hexadecimal else _find_suffix(digits)
    types = {"": DOUBLE, "f": FLOAT}
    return NumberLiteral(type=types.get(suffix, UNKNOWN), value=_parse(digits[: len(digits) - len(suffix)]))


def _find_suffix(digits: str) -> str:
    """The letters behind the last digit or dot; ``bf16`` and its like end in digits and are found by their first letter."""
    mantissa = digits.lstrip("0123456789.")
    return mantissa.lstrip("e").lstrip("+-").lstrip("0123456789") if mantissa.startswith("e") else mantissa


def _parse(digits: str) -> float | None:
    try:
        if digits.startswith("0x"):
            return float.fromhex(digits)
        if digits.startswith("0b"):
            return float(int(digits, 2))
        return float(int(digits, 8) if digits.isdigit() and digits.startswith("0") else digits)
    except (ValueError, OverflowError):
        return None


def _round_to_float(value: float) -> float:
    with np.errstate(over="ignore", under="ignore"):
        return float(np.float32(value))


# Names declared in these end with them. A parameter list is the scope of names in the type of a pointer to a function.
_SCOPES = frozenset({
    "compound_statement", "for_statement", "for_range_loop", "if_statement", "while_statement", "switch_statement",
    "lambda_expression", "function_definition", "template_declaration", "catch_clause", "parameter_list",
    "field_declaration_list",
})  # fmt: skip

_DECLARING = frozenset({
    "declaration", "parameter_declaration", "optional_parameter_declaration", "variadic_parameter_declaration",
    "for_range_loop", "field_declaration",
})  # fmt: skip
_NAMES = frozenset({"identifier", "field_identifier"})


class Declaration(Struct, frozen=True, kw_only=True, eq=False):
    """One declaration of one name."""

    name: str  # as declared
    type: ValueType  # of the variable; AUTO where it is that of ``value``
    node: "Node"  # the declaration as a whole
    start_byte: int  # from here on the name is known
    scope: "Node"  # where it is known
    value: "Node | None"  # what it begins with; None without, and where it is a list in braces or parentheses
    is_reference: bool  # another name for something
    is_array: bool  # its elements are its own, not somewhere it points to
    qualifiers: frozenset[str]  # ``const``, ``constexpr``, ``volatile``, ``__shared__`` and their like


class Names(Struct, frozen=True, kw_only=True, eq=False):
    """The names a function's text can use."""

    function: CudaFunction  # whose
    # every declaration in the function and its head, in the order of the text
    by_name: Mapping[str, tuple[Declaration, ...]]
    # name → its identifiers in the function and its head, in the order of the text; declarations too
    places: Mapping[str, tuple["Node", ...]]
    has_jumps: bool  # it jumps to labels, so that what stands first need not run first
    # at the level of the file; empty for members of classes, whose names may be the class's
    of_file: Mapping[str, tuple[Declaration, ...]]
    macros: Mapping[str, str]  # name → what it stands for; the names the file defines as macros

    def find(self, node: "Node") -> Declaration | None:
        """The declaration an identifier refers to; None where none is in sight, and where several could be meant that disagree."""
        name = read_text(node)
        if name in self.macros:
            return None
        for known in (self.by_name, self.of_file):
            visible = [one for one in known.get(name, ()) if _is_visible(one, node.start_byte)]
            if visible:
                innermost = max(one.scope.start_byte for one in visible)
                nearest = [one for one in visible if one.scope.start_byte == innermost]
                return nearest[-1] if len({(one.type, one.is_reference) for one in nearest}) == 1 else None
        return None

    def is_in_macros(self, name: str) -> bool:
        """Whether a macro of the file mentions the name, so that some uses are hidden."""
        return name in self.macros or any(name in list_words(value) for value in self.macros.values())


def _is_visible(declaration: Declaration, place: int) -> bool:
    return declaration.scope.start_byte <= place < declaration.scope.end_byte and declaration.start_byte <= place


@lru_cache(maxsize=64)
def read_names(tree: SourceTree, function_start: int) -> Names | None:
    """The names of a function.

    Args:
        tree: the text.
        function_start: byte where the function's definition begins.

    Returns:
        None where no function begins there, and for one that is too long to be looked through.
    """
    node = tree.root.descendant_for_byte_range(function_start, function_start + 1)
    function = None if node is None else find_function_around(node)
    if function is None or function.node.start_byte != function_start:
        return None
    found = _Found()
    for around in list_ancestors(function.node):
        if around.type == "template_declaration":
            found.collect(around.child_by_field_name("parameters"), around)
    if not found.collect(function.node, function.node):
        return None
    return Names(
        function=function,
        by_name={name: tuple(some) for name, some in found.declarations.items()},
        places={name: tuple(some) for name, some in found.places.items()},
        has_jumps=found.has_jumps,
        of_file={} if function.is_member else read_file_names(tree),
        macros=read_macros(tree),
    )


@lru_cache(maxsize=16)
def read_file_names(tree: SourceTree) -> Mapping[str, tuple[Declaration, ...]]:
    """Variables declared at the level of the file or in its namespaces, by name."""
    found: dict[str, list[Declaration]] = {}
    for node in list_file_nodes(tree):
        if node.type == "declaration":
            scopes = (
                around for around in list_ancestors(node) if around.type in ("declaration_list", "translation_unit")
            )
            for declaration in _read_declaration(node, next(scopes, tree.root)):
                found.setdefault(declaration.name, []).append(declaration)
    return {name: tuple(some) for name, some in found.items()}


@lru_cache(maxsize=16)
def read_macros(tree: SourceTree) -> Mapping[str, str]:
    """Every name the file defines as a macro, wherever it does, and what it stands for (all its definitions, where there are several)."""
    found: dict[str, str] = {}
    for node in find_nodes_at(tree, b"define"):
        macro = next((one for one in (node, *list_ancestors(node)) if "preproc" in one.type), None)
        macro = macro.parent if macro is not None and macro.type == "preproc_directive" else macro
        if macro is not None and macro.type in ("preproc_def", "preproc_function_def"):
            name = read_text(macro.child_by_field_name("name"))
            found[name] = f"{found.get(name, '')} {read_text(macro.child_by_field_name('value')).strip()}".strip()
    return found


def list_words(text: str) -> frozenset[str]:
    """The identifiers and numbers in a text that is not parsed.

    >>> sorted(list_words("(a1*b) + c"))
    ['a1', 'b', 'c']
    """
    return frozenset("".join(one if one.isalnum() or one == "_" else " " for one in text).split())


class _Found(Struct):
    """Declarations and identifiers of a function."""

    declarations: dict[str, list[Declaration]] = field(default_factory=dict)
    places: "dict[str, list[Node]]" = field(default_factory=dict)
    has_jumps: bool = False

    def collect(self, root: "Node | None", scope: "Node") -> bool:
        """Add all below a node; False when there is too much to look at."""
        stack = [(root, scope)] if root is not None else []
        for _ in range(MOST_NODES):
            if not stack:
                return True
            node, around = stack.pop()
            if node.type == "identifier":
                self.places.setdefault(read_text(node), []).append(node)
                continue
            self.has_jumps = self.has_jumps or node.type == "goto_statement"
            inner = _find_inner_scope(node, around)
            for declaration in _read_names_of(node, inner):
                self.declarations.setdefault(declaration.name, []).append(declaration)
            stack.extend((child, inner) for child in reversed(node.named_children))
        return False


def _find_inner_scope(node: "Node", around: "Node") -> "Node":
    return around if node.type not in _SCOPES or (node.type == "parameter_list" and _is_of_body(node)) else node


def _is_of_body(parameters: "Node") -> bool:
    """Whether parameters belong to a function or lambda with a body, and not to the type of a function pointer."""
    owner = parameters.parent
    while owner is not None and owner.type.endswith("_declarator") and owner.type != "lambda_declarator":
        owner = owner.parent
    return owner is not None and owner.type in ("function_definition", "lambda_declarator")


def _read_names_of(node: "Node", scope: "Node") -> Iterator[Declaration]:
    if node.type in _DECLARING:
        yield from _read_declaration(node, scope)
    elif node.type == "lambda_capture_initializer":
        name = next((child for child in node.named_children if child.type == "identifier"), None)
        if name is not None:
            yield _declare(node, name, UNKNOWN, scope)


def _read_declaration(node: "Node", scope: "Node") -> Iterator[Declaration]:
    """The names that a declaration introduces."""
    scalar = read_scalar(node.child_by_field_name("type"))
    qualifiers = frozenset(
        read_text(child) for child in node.children if child.type in ("type_qualifier", "storage_class_specifier")
    )
    for declarator in node.children_by_field_name("declarator"):
        yield from _read_declarator(node, declarator, scalar, qualifiers, scope)


def _read_declarator(
    node: "Node", declarator: "Node", scalar: Scalar, qualifiers: frozenset[str], scope: "Node"
) -> Iterator[Declaration]:
    value = node.child_by_field_name("default_value") or node.child_by_field_name("value")
    levels, is_reference, is_array, inner = 0, False, False, declarator
    while inner.type not in _NAMES:
        if inner.type == "init_declarator":
            value = inner.child_by_field_name("value")
        elif inner.type == "reference_declarator":
            is_reference = True
        elif inner.type in ("pointer_declarator", "array_declarator"):
            levels += 1
            # The declarator next to the name says what the variable is itself.
            is_array = inner.type == "array_declarator"
        elif inner.type != "parenthesized_declarator":
            # Functions, structured bindings and what else there may be: the names are taken, their types unknown.
            for name in _list_names(inner):
                yield _declare(node, name, UNKNOWN, scope)
            return
        following = inner.child_by_field_name("declarator") or _find_inner_declarator(inner)
        if following is None:
            return
        inner = following
    is_plain = value is None or value.type not in ("argument_list", "initializer_list")
    yield Declaration(
        name=read_text(inner),
        type=ValueType(scalar=scalar, levels=levels),
        node=node,
        start_byte=inner.end_byte,
        scope=scope,
        value=value if is_plain else None,
        is_reference=is_reference,
        is_array=is_array,
        qualifiers=qualifiers,
    )


def _find_inner_declarator(node: "Node") -> "Node | None":
    """The child of a reference or parenthesis that holds the name; it has no field of its own in the grammar."""
    return next((one for one in node.named_children if one.type in _NAMES or one.type.endswith("declarator")), None)


def _list_names(node: "Node") -> Iterator["Node"]:
    """The names a declarator of an unusual shape introduces."""
    inner = node.child_by_field_name("declarator")
    if inner is not None:
        while inner is not None and inner.type not in _NAMES:
            inner = inner.child_by_field_name("declarator") or _find_inner_declarator(inner)
        if inner is not None:
            yield inner
        return
    yield from (child for child in node.named_children if child.type in _NAMES)


def _declare(node: "Node", name: "Node", kind: ValueType, scope: "Node") -> Declaration:
    return Declaration(
        name=read_text(name),
        type=kind,
        node=node,
        start_byte=name.end_byte,
        scope=scope,
        value=None,
        is_reference=False,
        is_array=False,
        qualifiers=frozenset(),
    )


_ELSEWHERE = frozenset({"__shared__", "__constant__", "static", "extern"})  # Arrays of these are not a thread's own

_NAME = re.compile(r"\b[A-Za-z_]\w*")


def find_array_declaration(file: str, text: str, line: int, name: str) -> int | None:
    """The line on which the array is declared that a name means on a line.

    Args:
        line: 1-based, where the name is used.

    Returns:
        1-based; None where no array of that name is in sight there, or several are, or it is shared or static.

    >>> text = "__global__ void k(int* x) {\\n  int counts[16];\\n  __shared__ int s[9];\\n  counts[*x] = s[*x];\\n}"
    >>> find_array_declaration("k.cu", text, 4, "counts"), find_array_declaration("k.cu", text, 4, "s"), find_array_declaration("k.cu", text, 4, "x")
    (2, None, None)
    """
    tree = read_tree(file, text)
    if tree is None:
        return None
    for function in find_functions_on_lines(tree, frozenset({line})):
        names = read_names(tree, function.node.start_byte)
        declared = () if names is None else names.by_name.get(name, ())
        found = [one for one in declared if one.is_array and _is_in_sight(one, line)]
        if len(found) == 1:
            is_elsewhere = bool(found[0].qualifiers & _ELSEWHERE) or any(
                child.type in _ELSEWHERE for child in found[0].node.children
            )
            return None if is_elsewhere else found[0].node.start_point[0] + 1
    return None


def list_line_arrays(file: str, text: str, line: int) -> tuple[tuple[int, str], ...]:
    """The arrays of its own that a function names on a line: the line of each one's declaration, and its name, in the order they stand there.

    Args:
        file: the text's name, for the language.
        text: of the whole file.
        line: 1-based.

    >>> list_line_arrays("k.cu", "__global__ void k(int* x) {\\n  int a[16], b[8];\\n  fill(a, b, x); // c\\n}", 3)
    ((2, 'a'), (2, 'b'))
    """
    lines = [] if read_tree(file, text) is None else text.split("\n")  # a text that is not parsed may be very long
    if not 0 < line <= len(lines):
        return ()
    names = dict.fromkeys(_NAME.findall(lines[line - 1].partition("//")[0]))
    found = ((find_array_declaration(file, text, line, name), name) for name in names)
    return tuple((declared, name) for declared, name in found if declared is not None)


def _is_in_sight(declaration: Declaration, line: int) -> bool:
    scope = declaration.scope
    first = declaration.node.start_point[0] + 1
    return first <= line and scope.start_point[0] + 1 <= line <= scope.end_point[0] + 1
