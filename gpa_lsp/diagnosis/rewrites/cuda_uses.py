"""Uses of a variable in the text of its function: whether it is only read, or something else can change it."""

from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from typing import TYPE_CHECKING

from msgspec import Struct

from gpa_lsp.code.sources.cuda_declarations import Declaration, Names
from gpa_lsp.code.sources.trees import list_ancestors, read_text

if TYPE_CHECKING:
    from tree_sitter import Node

_HIGHEST = 60  # Levels of an expression that are climbed; a deeper use counts as bound

_CASTS = frozenset({"static_cast", "reinterpret_cast", "const_cast", "dynamic_cast"})
_COMPARISONS = frozenset({"==", "!=", "<", ">", "<=", ">="})


class Deed(Enum):
    """Effect of a use on a variable, or on what it points to."""

    READ = "read"
    WRITTEN = "written"
    PASSED = "passed"  # As an argument of a call
    COPIED = "copied"  # A pointer's value, into another variable, a result or an initialiser
    COMPARED = "compared"  # A pointer with another value
    # Open to changes that are not seen: its address is taken, a reference is bound to it, a lambda captures it by reference
    BOUND = "bound"
    ASSEMBLED = "assembled"  # As an operand of inline assembly


class Use(Struct, kw_only=True):
    """One occurrence of a name."""

    node: "Node"  # the identifier
    deed: Deed = Deed.BOUND
    is_element: bool = False  # the deed is done to what the variable points to, not to the variable itself
    is_cast: bool = False  # the value goes through a cast
    through: "Node"  # the innermost node around it that decides the deed: an assignment, a call, a declaration


def find_uses(names: Names, declaration: Declaration) -> Iterator[Use]:
    """Uses of a variable in its function, declarations left out, in the order of the text; those that may be of another variable included."""
    declaring = {one.start_byte for one in names.by_name.get(declaration.name, ())}
    for node in names.places.get(declaration.name, ()):
        if node.end_byte in declaring:
            continue
        found = names.find(node)
        if found is None or found.scope == declaration.scope:
            yield classify_use(node)


def classify_use(name: "Node") -> Use:
    """Classify the use of a variable at one occurrence of its name.

    >>> from gpa_lsp.code.sources.trees import read_tree, walk
    >>> def classify(text: str) -> tuple[str, bool]:
    ...     tree = read_tree("k.cu", f"void f() {{ {text}; }}")
    ...     found = classify_use(next(node for node in walk(tree.root) if read_text(node) == "p" and node.type == "identifier"))
    ...     return found.deed.value, found.is_element
    >>> [classify(text) for text in ("y = p[i] * 2", "*(p + i) = 3", "f(p + 1)", "int *q = &p[1]", "p += n")]
    [('read', True), ('written', True), ('passed', False), ('copied', False), ('written', False)]
    """
    use = Use(node=name, through=name)
    for _ in range(_HIGHEST):
        parent = use.through.parent
        if parent is None:
            break
        rule = _RULES.get(parent.type)
        deed = Deed.READ if rule is None else rule(use, parent)
        use.through = parent
        if deed is not None:
            use.deed = deed
            break
    return use


def _judge_subscript(use: Use, parent: "Node") -> Deed | None:
    if parent.child_by_field_name("argument") != use.through:
        return Deed.READ
    use.is_element = True
    return None


def _judge_pointer(use: Use, parent: "Node") -> Deed | None:
    if read_text(parent.child_by_field_name("operator")) == "*":
        use.is_element = True
        return None
    # The address of an element is a pointer like the variable; through that of the variable itself anything can happen to it.
    if not use.is_element:
        return Deed.BOUND
    use.is_element = False
    return None


def _judge_field(use: Use, parent: "Node") -> Deed | None:
    outer = parent.parent
    if outer is not None and outer.type == "call_expression" and outer.child_by_field_name("function") == parent:
        return Deed.BOUND
    use.is_element = use.is_element or read_text(parent.child_by_field_name("operator")) == "->"
    return None


def _judge_assignment(use: Use, parent: "Node") -> Deed:
    return Deed.WRITTEN if parent.child_by_field_name("left") == use.through else _judge_value(use, parent)


def _judge_cast(use: Use, _parent: "Node") -> None:
    use.is_cast = True


def _judge_call(use: Use, _parent: "Node") -> Deed | None:
    """Judge a value below a call: only the argument of a cast comes up to here; others were judged below."""
    return None if use.through.type == "argument_list" else Deed.READ


def _judge_value(use: Use, _parent: "Node") -> Deed:
    """Judge a copied value: copies of elements and numbers are harmless, copies of pointers are not."""
    return Deed.READ if use.is_element else Deed.COPIED


def _judge_initialiser(use: Use, parent: "Node") -> Deed:
    declarator = parent.child_by_field_name("declarator")
    while declarator is not None and declarator.type != "reference_declarator":
        declarator = declarator.child_by_field_name("declarator")
    return Deed.BOUND if declarator is not None else _judge_value(use, parent)


def _judge_operation(use: Use, parent: "Node") -> Deed | None:
    operator = read_text(parent.child_by_field_name("operator"))
    if operator in _COMPARISONS:
        return Deed.READ if use.is_element else Deed.COMPARED
    # A sum with a pointer points to the same memory; whether this is a pointer the caller knows.
    return None if operator in ("+", "-") and not use.is_element else Deed.READ


def _judge_argument(use: Use, arguments: "Node") -> Deed | None:
    call = arguments.parent
    function = None if call is None else call.child_by_field_name("function")
    if function is not None and function.type == "primitive_type":
        return Deed.READ
    if function is not None and read_text(function.child_by_field_name("name")) in _CASTS:
        use.is_cast = True
        return None
    return Deed.PASSED


def _judge_capture(use: Use, parent: "Node") -> Deed:
    before = use.through.prev_sibling
    return Deed.BOUND if before is not None and before.type == "&" else _judge_value(use, parent)


# Node type → what such a parent makes of a name's value: a deed, or None where it hands it on. All others only read it.
_RULES: "Mapping[str, Callable[[Use, Node], Deed | None]]" = {
    "parenthesized_expression": lambda _use, _parent: None,
    "comma_expression": lambda use, parent: None if parent.child_by_field_name("right") == use.through else Deed.READ,
    "conditional_expression": lambda use, parent: (
        Deed.READ if parent.child_by_field_name("condition") == use.through else None
    ),
    "subscript_expression": _judge_subscript,
    "pointer_expression": _judge_pointer,
    "field_expression": _judge_field,
    "assignment_expression": _judge_assignment,
    "update_expression": lambda _use, _parent: Deed.WRITTEN,
    "init_declarator": _judge_initialiser,
    "optional_parameter_declaration": _judge_initialiser,
    "declaration": _judge_initialiser,
    "cast_expression": _judge_cast,
    "binary_expression": _judge_operation,
    "argument_list": _judge_argument,
    "call_expression": _judge_call,
    "return_statement": _judge_value,
    "initializer_list": _judge_value,
    "lambda_capture_initializer": _judge_value,
    "lambda_capture_specifier": _judge_capture,
    "for_range_loop": lambda _use, _parent: Deed.BOUND,
    "gnu_asm_output_operand": lambda _use, _parent: Deed.ASSEMBLED,
    "gnu_asm_input_operand": lambda _use, _parent: Deed.ASSEMBLED,
}


def is_in_lambda(use: Use, around: "Node") -> bool:
    """Whether a use is in a lambda inside some node; a lambda runs wherever it is called."""
    for one in list_ancestors(use.node):
        if one == around:
            return False
        if one.type == "lambda_expression":
            return True
    return False
