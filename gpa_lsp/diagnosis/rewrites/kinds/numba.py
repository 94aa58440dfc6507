"""Kernels of Numba: options of the decorator, and literals in single precision."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING

from msgspec import Struct

from gpa_lsp.code.sources.cuda_declarations import read_number
from gpa_lsp.code.sources.trees import read_text, read_tree, walk, walk_lines
from gpa_lsp.diagnosis.rewrites.model import Rewrite, RewriteKind, Site, quote, replace_node, title_literals
from gpa_lsp.diagnosis.rewrites.python_functions import (
    BINDING,
    NUMBA_KERNEL,
    PythonFunction,
    add_jit_option,
    find_argument,
    find_compiled_around,
    find_numba_kernel,
    list_arguments,
    list_targets,
    read_imports,
)
from gpa_lsp.foundation.prose import Sentence, count, say

if TYPE_CHECKING:
    from tree_sitter import Node


def _propose_option(
    site: Site, name: str, value: str, explanation: Sentence, *, changes_results: bool = False
) -> Iterator[Rewrite]:
    kernel = find_numba_kernel(site)
    edit = None if kernel is None else add_jit_option(site, kernel, name, value)
    if kernel is not None and edit is not None:
        title = say("Compile {kernel} with {option}", kernel=quote(kernel.name), option=quote(f"{name}={value}"))
        yield Rewrite(title=title, explanation=explanation, edits=(edit,), changes_results=changes_results)


def _propose_numba_fast_math(site: Site) -> Iterator[Rewrite]:
    """``fastmath=True`` for a Numba kernel."""
    explanation = say(
        "FP32 divisions, roots and functions become approximations of a few instructions, in the kernel and in what it calls; denormals are "
        "flushed to zero, and products and sums are fused. Results differ in the last bits, sine and cosine of large angles by more. FP64 "
        "arithmetic does not change."
    )
    return _propose_option(site, "fastmath", "True", explanation, changes_results=True)


def _propose_numba_max_registers(site: Site) -> Iterator[Rewrite]:
    """``max_registers=N`` for a Numba kernel, so that more of its warps fit on a multiprocessor."""
    registers = site.context.max_registers
    if not registers:
        return iter(())
    explanation = say(
        "With at most {registers} per thread, more blocks fit on an SM. Values beyond them spill to local memory, which can cost more than the "
        "additional warps gain. Results do not change.",
        registers=count(registers, "register"),
    )
    return _propose_option(site, "max_registers", str(registers), explanation)


# Types and conversions of single precision
SINGLE = frozenset({"numpy.float32", "numba.float32", "numba.types.float32"})

_ARRAYS = frozenset({"numba.cuda.shared.array", "numba.cuda.local.array"})
_IN_STRINGS = frozenset({"float32", "f4"})
_OPERATORS = frozenset({"+", "-", "*", "/"})
_DEEPEST = 20


class SinglePrecision(Struct, frozen=True, kw_only=True, eq=False):
    """Variables of one kernel that hold single precision."""

    function: PythonFunction  # the kernel
    dimensions: Mapping[str, int]  # name of a single precision array → its dimensions; 0 for a single number
    values: "Mapping[str, Node]"  # name → its value, for names that are bound once and by an assignment

    def holds(self, node: "Node | None", depth: int = 0) -> bool:
        """Whether an expression is a single precision number."""
        if node is None or depth > _DEEPEST:
            return False
        if node.type == "parenthesized_expression":
            return len(node.named_children) == 1 and self.holds(node.named_children[0], depth + 1)
        if node.type == "unary_operator":
            return self.holds(node.child_by_field_name("argument"), depth + 1)
        if node.type == "binary_operator":
            is_arithmetic = read_text(node.child_by_field_name("operator")) in _OPERATORS
            sides = (node.child_by_field_name("left"), node.child_by_field_name("right"))
            return is_arithmetic and all(self.holds(side, depth + 1) for side in sides)
        if node.type == "subscript":
            return self._holds_elements(node)
        if node.type == "identifier":
            name = read_text(node)
            return self.dimensions.get(name) == 0 or self.holds(self.values.get(name), depth + 1)
        return node.type == "call" and self.function.find_meaning(node.child_by_field_name("function")) in SINGLE

    def _holds_elements(self, node: "Node") -> bool:
        array = node.child_by_field_name("value")
        indices = node.children_by_field_name("subscript")
        if array is None or array.type != "identifier" or any(one.type == "slice" for one in indices):
            return False
        count = len(indices[0].named_children) if len(indices) == 1 and indices[0].type == "tuple" else len(indices)
        return count > 0 and self.dimensions.get(read_text(array)) == count


def read_single_precision(function: PythonFunction) -> SinglePrecision:
    """Collect single precision variables from a kernel's text and signature."""
    values = _find_values(function)
    arrays = {
        name: dimensions for name, value in values.items() if (dimensions := _read_array(function, value)) is not None
    }
    return SinglePrecision(function=function, dimensions={**_read_signature(function), **arrays}, values=values)


def _find_values(function: PythonFunction) -> "dict[str, Node]":
    """Name → value of variables that a single assignment binds."""
    found: dict[str, list[Node | None]] = {name: [None] for name in _list_parameters(function)}
    for node in walk(function.node):
        if node.type in BINDING:
            target = node.child_by_field_name("left")
            is_plain = node.type == "assignment" and target is not None and target.type == "identifier"
            for name in list_targets(node):
                found.setdefault(name, []).append(node.child_by_field_name("right") if is_plain else None)
    return {name: some[0] for name, some in found.items() if len(some) == 1 and some[0] is not None}


def _list_parameters(function: PythonFunction) -> list[str]:
    parameters = function.node.child_by_field_name("parameters")
    return [read_text(one) for one in parameters.named_children] if parameters is not None else []


def _read_array(function: PythonFunction, value: "Node") -> int | None:
    """Dimensions of a single precision array that a kernel creates; None for anything else."""
    if value.type != "call" or function.find_meaning(value.child_by_field_name("function")) not in _ARRAYS:
        return None
    positions = [one for one in list_arguments(value) if one.type != "keyword_argument"]
    shape = find_argument(value, "shape") or (positions[0] if positions else None)
    kind = find_argument(value, "dtype") or (positions[1] if len(positions) > 1 else None)
    if shape is None or function.find_meaning(kind) not in SINGLE:
        return None
    if shape.type == "tuple":
        return len(shape.named_children)
    return 1 if shape.type == "integer" else None


def _read_signature(function: PythonFunction) -> dict[str, int]:
    """The kernel's single precision parameters and their dimensions, where the decorator has one signature."""
    given = list_arguments(function.decorator) if function.decorator.type == "call" else []
    signature = given[0] if given and given[0].type != "keyword_argument" else None
    names, types = _list_parameters(function), []
    if signature is not None:
        types = list(_list_types(function, signature))
    if len(names) != len(types):
        return {}
    assigned = {name for node in walk(function.node) if node.type in BINDING for name in list_targets(node)}
    return {name: kind for name, kind in zip(names, types, strict=True) if kind is not None and name not in assigned}


def _list_types(function: PythonFunction, signature: "Node") -> Iterator[int | None]:
    """Dimensions of each parameter that is single precision; None for those of other types."""
    in_string = signature.type == "string"
    root: Node | None = signature
    if in_string:
        content = next((one for one in signature.named_children if one.type == "string_content"), None)
        tree = read_tree("signature.py", read_text(content))
        root = (
            None
            if tree is None or tree.root.has_error
            else next((one for one in walk(tree.root) if one.type == "call"), None)
        )
    if root is None or root.type != "call":
        return
    for one in list_arguments(root):
        kind = one.child_by_field_name("value") if one.type == "subscript" else one
        is_single = read_text(kind) in _IN_STRINGS if in_string else function.find_meaning(kind) in SINGLE
        yield len(one.children_by_field_name("subscript")) if is_single else None


def find_constructor(function: PythonFunction) -> str | None:
    """Name of the conversion to single precision in a file; None where it imports none."""
    imports = read_imports(function.tree)
    modules = (
        f"{name}.float32" for name, origin in imports.items() if origin == "numpy" and name not in function.bound
    )
    direct = (name for name, origin in imports.items() if origin in SINGLE and name not in function.bound)
    return next(chain(modules, direct), None)


_COMPOUND = frozenset({"+=", "-=", "*=", "/="})
_HIGHEST = 40


def _propose_single_literals(site: Site) -> Iterator[Rewrite]:
    """``np.float32(0.5)`` for literals in arithmetic of a Numba kernel that is otherwise single precision."""
    seen: set[int] = set()
    kernels: dict[int, SinglePrecision] = {}
    for node in walk_lines(site.tree.root, site.lines):
        function = find_compiled_around(site.tree, node) if node.type == "float" else None
        if function is None or function.compiler != NUMBA_KERNEL:
            continue
        root = _find_root(node)
        if root.id in seen:
            continue
        seen.add(root.id)
        if function.node.id not in kernels:
            kernels[function.node.id] = read_single_precision(function)
        known, constructor = kernels[function.node.id], find_constructor(function)
        literals = _find_literals(known, root)
        if literals is not None and constructor is not None and _becomes_single(known, root):
            yield _describe(site, literals, constructor)


def _find_root(literal: "Node") -> "Node":
    node = literal
    for _ in range(_HIGHEST):
        if node.parent is None or not _is_arithmetic(node.parent):
            break
        node = node.parent
    return node


def _is_arithmetic(node: "Node") -> bool:
    if node.type == "binary_operator":
        return read_text(node.child_by_field_name("operator")) in _OPERATORS
    return node.type in ("parenthesized_expression", "unary_operator")


def _find_literals(known: SinglePrecision, root: "Node") -> "list[Node] | None":
    """Double precision literals; None where an operand is not certainly single precision. With integers Numba computes in double precision."""
    found: list[Node] = []
    others = int(root.parent is not None and root.parent.type == "augmented_assignment")
    stack = [root]
    while stack:
        node = stack.pop()
        if _is_arithmetic(node):
            stack.extend(reversed(node.named_children))
        elif node.type == "float":
            found.append(node)
        elif known.holds(node):
            others += 1
        else:
            return None
    fit = all(read_number(read_text(one)).fits_float for one in found)
    return found if others and fit else None


def _becomes_single(known: SinglePrecision, root: "Node") -> bool:
    """Whether a value is stored in a single precision array, or converted."""
    parent = root.parent
    if parent is None:
        return False
    if parent.type in ("assignment", "augmented_assignment"):
        left = parent.child_by_field_name("left")
        operator = parent.child_by_field_name("operator")
        is_known = operator is None or read_text(operator) in _COMPOUND
        return is_known and left is not None and left.type == "subscript" and known.holds(left)
    call = parent.parent
    is_argument = parent.type == "argument_list" and call is not None and call.type == "call"
    if not is_argument or call is None:
        return False
    return known.function.find_meaning(call.child_by_field_name("function")) in SINGLE


def _describe(site: Site, literals: "Sequence[Node]", constructor: str) -> Rewrite:
    texts = [read_text(one) for one in literals]
    is_rounded = any(not read_number(text).is_exact_in_float for text in texts)
    return Rewrite(
        title=title_literals([f"{constructor}({text})" for text in texts], is_rounded=is_rounded),
        explanation=say(
            "The literal makes Numba compute in FP64, although the other operands and the result are FP32. In FP32 intermediate values keep 24 "
            "bits instead of 53, so the last bits of the result can differ."
        ),
        edits=tuple(replace_node(site.tree, node, f"{constructor}({read_text(node)})") for node in literals),
        changes_results=True,
    )


REWRITES = {
    "numba_fast_math": RewriteKind(language="python", optimizers=("fast_math",), propose=_propose_numba_fast_math),
    "numba_max_registers": RewriteKind(
        language="python", optimizers=("thread_increase",), propose=_propose_numba_max_registers
    ),
    "numba_single_precision_literals": RewriteKind(
        language="python",
        optimizers=("strength_reduction", "fast_math"),
        propose=_propose_single_literals,
    ),
}
