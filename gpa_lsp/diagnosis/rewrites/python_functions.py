"""Functions of a Python text that a decorator compiles for a GPU, and the meaning of their names."""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

from msgspec import Struct

from gpa_lsp.code.sources.trees import SourceTree, is_sound, list_ancestors, read_text, walk, walk_lines
from gpa_lsp.diagnosis.rewrites.model import Site, TextEdit, insert_behind, replace_node

if TYPE_CHECKING:
    from tree_sitter import Node

NUMBA_KERNEL = "numba.cuda.jit"
TRITON_KERNEL = "triton.jit"

# Node types that give names a value
BINDING = frozenset({"assignment", "augmented_assignment", "for_statement", "named_expression", "as_pattern_target"})

_MOST_IN_BRANCH = 500  # Nodes looked at for imports that the file makes only sometimes


class PythonFunction(Struct, frozen=True, kw_only=True, eq=False):
    """A decorated function."""

    tree: SourceTree  # the text
    node: "Node"  # its definition
    name: str
    decorator: "Node"  # the expression behind ``@`` that compiles it
    compiler: str  # full name of the decorator, e.g. ``numba.cuda.jit``.
    bound: frozenset[str]  # names that the function binds itself: parameters and variables

    def find_meaning(self, node: "Node | None") -> str | None:
        """The full name that a name or attribute stands for, by the file's imports: ``numpy.float32`` for ``np.float32``; None otherwise.

        Builtin names mean themselves unless the file binds them.
        """
        parts = []
        while node is not None and node.type == "attribute":
            parts.append(read_text(node.child_by_field_name("attribute")))
            node = node.child_by_field_name("object")
        if node is None or node.type != "identifier" or read_text(node) in self.bound:
            return None
        name = read_text(node)
        origin = read_imports(self.tree).get(name)
        if origin is None:
            return name if name == "range" and not parts and name not in find_module_names(self.tree) else None
        return ".".join([origin, *reversed(parts)])


@lru_cache(maxsize=16)
def read_imports(tree: SourceTree) -> Mapping[str, str]:
    """Name at the file's own level → what it was imported as, in full. A name that is imported as two things means neither.

    >>> from gpa_lsp.code.sources.trees import read_tree
    >>> dict(read_imports(read_tree("k.py", "import numpy as np, os.path\\nfrom numba import cuda as c\\n")))
    {'np': 'numpy', 'os': 'os', 'c': 'numba.cuda'}
    """
    found: dict[str, set[str]] = {}
    for statement in tree.root.named_children:
        is_branching = statement.type in ("try_statement", "if_statement", "with_statement")
        for node in walk(statement, most=_MOST_IN_BRANCH) if is_branching else (statement,):
            for name, origin in _list_imported(node):
                found.setdefault(name, set()).add(origin)
    return {name: next(iter(origins)) for name, origins in found.items() if len(origins) == 1}


def _list_imported(node: "Node") -> Iterator[tuple[str, str]]:
    if node.type not in ("import_statement", "import_from_statement"):
        return
    module = read_text(node.child_by_field_name("module_name"))
    for imported in node.children_by_field_name("name"):
        alias = imported.child_by_field_name("alias")
        name = read_text(imported.child_by_field_name("name")) if alias is not None else read_text(imported)
        origin = f"{module}.{name}" if module else name
        if alias is not None:
            yield read_text(alias), origin
        elif module:
            yield name, origin
        else:
            # ``import a.b`` binds a.
            yield name.partition(".")[0], name.partition(".")[0]


@lru_cache(maxsize=16)
def find_module_names(tree: SourceTree) -> frozenset[str]:
    """Names the file binds at its own level, imports left out."""
    names = set()
    for node in tree.root.named_children:
        inner = node.child_by_field_name("definition") if node.type == "decorated_definition" else node
        if inner is not None and inner.type in ("function_definition", "class_definition"):
            names.add(read_text(inner.child_by_field_name("name")))
        elif node.type == "expression_statement":
            names |= set(_list_bound(node))
    return frozenset(names)


def find_compiled_around(tree: SourceTree, node: "Node") -> PythonFunction | None:
    """The innermost function around a node, where it is compiled for a GPU and parsed as a whole."""
    found = next((one for one in (node, *list_ancestors(node)) if one.type == "function_definition"), None)
    return None if found is None else _read_compiled(tree, found)


def find_compiled(tree: SourceTree, name: str) -> tuple[PythonFunction, ...]:
    """The functions of a name at the file's own level that are compiled for a GPU."""
    found = []
    for node in tree.root.named_children:
        inner = node.child_by_field_name("definition") if node.type == "decorated_definition" else None
        if inner is not None and read_text(inner.child_by_field_name("name")) == name:
            function = _read_compiled(tree, inner)
            if function is not None:
                found.append(function)
    return tuple(found)


def _read_compiled(tree: SourceTree, node: "Node") -> PythonFunction | None:
    around = node.parent
    if around is None or around.type != "decorated_definition" or not is_sound(around):
        return None
    outside = PythonFunction(tree=tree, node=node, name="", decorator=node, compiler="", bound=frozenset())
    for decorator in around.named_children:
        if decorator.type != "decorator" or not decorator.named_children:
            continue
        called = decorator.named_children[0]
        compiler = called.child_by_field_name("function") if called.type == "call" else called
        meaning = outside.find_meaning(compiler)
        if meaning in (NUMBA_KERNEL, TRITON_KERNEL, "triton.runtime.jit.jit"):
            return PythonFunction(
                tree=tree,
                node=node,
                name=read_text(node.child_by_field_name("name")),
                decorator=called,
                compiler=NUMBA_KERNEL if meaning == NUMBA_KERNEL else TRITON_KERNEL,
                bound=frozenset(_list_bound(node)),
            )
    return None


def _list_bound(root: "Node") -> Iterator[str]:
    """Names a piece of code binds."""
    for node in walk(root):
        if node.type == "parameters":
            for parameter in node.named_children:
                name = next((read_text(one) for one in walk(parameter) if one.type == "identifier"), None)
                yield from () if name is None else (name,)
        elif node.type in BINDING:
            yield from list_targets(node)


def list_targets(binding: "Node") -> Iterator[str]:
    """Names that an assignment, a loop or another binding gives a value; elements and attributes are left out."""
    stack = [binding.child_by_field_name("left") or binding.child_by_field_name("name") or binding]
    while stack:
        node = stack.pop()
        if node.type == "identifier":
            yield read_text(node)
        elif node.type not in ("attribute", "subscript"):
            stack.extend(reversed(node.named_children))


def find_argument(call: "Node", name: str) -> "Node | None":
    """The value of a keyword argument; None without it."""
    for one in list_arguments(call):
        if one.type == "keyword_argument" and read_text(one.child_by_field_name("name")) == name:
            return one.child_by_field_name("value")
    return None


def list_arguments(call: "Node") -> "list[Node]":
    """The arguments of a call, comments left out."""
    arguments = call.child_by_field_name("arguments")
    return [] if arguments is None else [one for one in arguments.named_children if one.type != "comment"]


def find_numba_kernel(site: Site) -> PythonFunction | None:
    """The Numba kernel of a site: the one of its name, else the one around its lines; None for device functions, which take no options."""
    named = find_compiled(site.tree, site.context.kernel) if site.context.kernel else ()
    near = (find_compiled_around(site.tree, node) for node in walk_lines(site.tree.root, site.lines))
    found = named[0] if len(named) == 1 else next((one for one in near if one is not None), None)
    if found is None or found.compiler != NUMBA_KERNEL or _is_device_function(found):
        return None
    return found


def _is_device_function(function: PythonFunction) -> bool:
    device = find_argument(function.decorator, "device")
    return device is not None and read_text(device) != "False"


def add_jit_option(site: Site, function: PythonFunction, name: str, value: str) -> TextEdit | None:
    """Add an option to the decorator; None where it has it, or may have it in an unpacked dictionary."""
    decorator = function.decorator
    if decorator.type != "call":
        return insert_behind(site.tree, decorator, f"({name}={value})")
    given = list_arguments(decorator)
    if find_argument(decorator, name) is not None or any("splat" in one.type for one in given):
        return None
    if given:
        return insert_behind(site.tree, given[-1], f", {name}={value}")
    arguments = decorator.child_by_field_name("arguments")
    return None if arguments is None else replace_node(site.tree, arguments, f"({name}={value})")


_LANGUAGE = "triton.language"
_RANGE = f"{_LANGUAGE}.range"


class RangeLoop(Struct, frozen=True, kw_only=True, eq=False):
    """Loop ``for name in range(…)`` or ``tl.range(…)`` in a Triton function."""

    function: PythonFunction
    node: "Node"  # the loop
    call: "Node"  # the range
    language: str  # name of ``triton.language`` in the file
    is_triton: bool  # it is Triton's own range, which takes options

    def has_option(self, name: str) -> bool:
        """Whether the range has an option already."""
        return find_argument(self.call, name) is not None

    def has_call(self, name: str) -> bool:
        """Whether the body calls a function of ``triton.language``."""
        body = self.node.child_by_field_name("body")
        calls = (one for one in walk(body) if one.type == "call") if body is not None else ()
        wanted = f"{_LANGUAGE}.{name}"
        return any(self.function.find_meaning(one.child_by_field_name("function")) == wanted for one in calls)


def find_range_loops(site: Site) -> Iterator[RangeLoop]:
    """Find range loops that begin on the site's lines."""
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
    """Name of ``triton.language`` in the file; None where the function gives that name another meaning."""
    names = (name for name, origin in read_imports(function.tree).items() if origin == _LANGUAGE)
    return next((name for name in names if name not in function.bound), None)


def _is_plain(call: "Node") -> bool:
    """Whether a call has one to three positional arguments, none of them unpacked from a list."""
    given = list_arguments(call)
    positions = [one for one in given if one.type != "keyword_argument"]
    return 1 <= len(positions) <= 3 and not any("splat" in one.type for one in given)


def add_option(site: Site, loop: RangeLoop, option: str) -> tuple[TextEdit, ...]:
    """Add an option to a range, which becomes Triton's own."""
    behind = insert_behind(site.tree, list_arguments(loop.call)[-1], f", {option}")
    name = loop.call.child_by_field_name("function")
    if loop.is_triton or name is None:
        return (behind,)
    return replace_node(site.tree, name, f"{loop.language}.range"), behind


def is_constant(function: PythonFunction, node: "Node") -> bool:
    """Whether an expression is made of whole numbers and parameters declared ``tl.constexpr``."""
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
