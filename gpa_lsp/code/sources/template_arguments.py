"""Template arguments: those in host code, those of a compiled instance, and whether the two agree."""

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from gpa_lsp.code.sources.cuda_functions import find_function_declarator, list_file_nodes, read_own_name
from gpa_lsp.code.sources.host_values import LONG_FORM
from gpa_lsp.code.sources.trees import SourceTree, read_text, walk

if TYPE_CHECKING:
    from tree_sitter import Node

_PARAMETER = re.compile(r"(?P<kind>.*?)\b(?P<name>\w+)\s*(?:=\s*(?P<default>.+))?", re.DOTALL)
_SILENT = re.compile(r"\b(?:const|volatile|struct|class|typename|enum|__restrict__|restrict)\b|&")
_VALUE = re.compile(r"(?:\([\w: ]+\))?(-?\d+)(?:u|U|l|L)*")
# Types that are the same where ``long`` has 64 bits, by the spelling that demanglers use
_OTHER_NAMES = {
    "unsigned": "unsigned int", "uint": "unsigned int", "uint32_t": "unsigned int", "int32_t": "int", "signed": "int", "signed int": "int",
    "uchar": "unsigned char", "uint8_t": "unsigned char", "int8_t": "signed char",
    "ushort": "unsigned short", "uint16_t": "unsigned short", "int16_t": "short",
    "int64_t": "long", "ptrdiff_t": "long", "ssize_t": "long",
    "ulong": "unsigned long", "uint64_t": "unsigned long", "size_t": "unsigned long",
    "half": "__half", "half2": "__half2",
}  # fmt: skip
_NAMED = frozenset(
    {"bool", "char", "signed char", "unsigned char", "short", "unsigned short", "int", "unsigned int", "long", "unsigned long", "long long",
     "unsigned long long", "float", "double", "__half", "__half2", "__nv_bfloat16"}
)  # fmt: skip
_VECTOR = re.compile(r"(?:u?(?:char|short|int|long|longlong)|float|double)[1-4]")


class TemplateParameter(Struct, frozen=True, kw_only=True):
    """One parameter of a template."""

    name: str  # of it
    is_type: bool  # it stands for a type and not for a value
    default: str = ""  # as written; empty for none


def list_template_parameters(function: "Node") -> tuple[TemplateParameter, ...]:
    """The template parameters of a function definition; empty where it is no template, or a variadic one."""
    template = function.parent
    if template is None or template.type != "template_declaration":
        return ()
    parameters = template.child_by_field_name("parameters")
    found = []
    for node in () if parameters is None else parameters.named_children:
        text = " ".join(read_text(node).split())
        match = _PARAMETER.fullmatch(text)
        if node.type == "comment":
            continue
        if match is None or "..." in text or not match["kind"].strip():
            return ()
        is_type = match["kind"].split()[0] in ("class", "typename")
        found.append(TemplateParameter(name=match["name"], is_type=is_type, default=match["default"] or ""))
    return tuple(found)


def find_kernel_templates(tree: SourceTree) -> "dict[str, Node]":
    """Kernels with a body that are templates, by plain name; overloads are left out."""
    found: dict[str, Node | None] = {}
    for node in list_file_nodes(tree):
        declarator = find_function_declarator(node) if node.type == "function_definition" else None
        body = node.child_by_field_name("body")
        if declarator is None or body is None or not list_template_parameters(node):
            continue
        if b"__global__" in tree.content[node.start_byte : body.start_byte]:
            name = read_own_name(declarator)
            found[name] = None if name in found else node
    return {name: node for name, node in found.items() if node is not None}


def list_given(callee: "Node | None") -> list[str]:
    """Template arguments that a call or launch names, as written."""
    node = callee
    while node is not None and node.type == "qualified_identifier":
        node = node.child_by_field_name("name")
    listed = None if node is None or node.type != "template_function" else node.child_by_field_name("arguments")
    return [read_text(one) for one in (() if listed is None else listed.named_children) if one.type != "comment"]


def find_type_names(tree: SourceTree) -> dict[str, str]:
    """Name of each type that a text declares → type it is an alias of, or itself; empty where declarations differ."""
    found: dict[str, str] = {}
    for node in walk(tree.root):
        if node.type in ("struct_specifier", "class_specifier", "enum_specifier"):
            name = told = read_text(node.child_by_field_name("name"))
        elif node.type in ("type_definition", "alias_declaration"):
            name = read_text(node.child_by_field_name("declarator") or node.child_by_field_name("name"))
            inner = node.child_by_field_name("type")
            is_own = inner is not None and inner.type.endswith("_specifier") and inner.type != "sized_type_specifier"
            told = name if is_own else read_text(inner)
        else:
            continue
        if name.isidentifier():
            found[name] = told if found.get(name, told) == told else ""
    return found


def spell_type(text: str, known: Mapping[str, str]) -> str | None:
    """A type as demanglers spell it; None for an unknown one.

    Args:
        known: of :func:`find_type_names`.

    >>> spell_type("unsigned", {}), spell_type("real", {"real": "double"}), spell_type("const float *", {}), spell_type("N", {})
    ('unsigned int', 'double', 'float*', None)
    """
    plain = " ".join(_SILENT.sub(" ", text).replace("*", " * ").split())
    name, star, rest = plain.partition(" *")
    for _ in range(8):
        name = LONG_FORM.sub("", name.removeprefix("std::"))
        name = _OTHER_NAMES.get(name, name)
        if name in _NAMED or _VECTOR.fullmatch(name):
            break
        told = known.get(name.rpartition("::")[2])
        if not told:
            return None
        if told == name.rpartition("::")[2]:
            name = told
            break
        name = told
    else:
        return None
    return name + (star + rest).replace(" ", "")


def list_instance_arguments(name: str) -> tuple[str, ...]:
    """The template arguments in a demangled name of a function; empty where there are none.

    >>> list_instance_arguments("void fold<float, 512u, (bool)1, Pair<int, 2>>(float*, int)")
    ('float', '512', '1', 'Pair<int, 2>')
    >>> list_instance_arguments("plain(float*)"), list_instance_arguments("void ns<int>::scale<true>(int)")
    ((), ('1',))
    """
    depth, start, last = 0, 0, ""
    for place, letter in enumerate(name):
        if letter == "<":
            start = place + 1 if depth == 0 else start
            depth += 1
        elif letter == ">" and depth:
            depth -= 1
            last = name[start:place] if depth == 0 else last
        elif letter == "(" and depth == 0 and not name.startswith("(anonymous", place):
            break
    return tuple(_spell_argument(one) for one in split_arguments(last))


def _spell_argument(text: str) -> str:
    value = _VALUE.fullmatch({"true": "1", "false": "0"}.get(text, text))
    return value[1] if value is not None else text.replace(" *", "*")


def split_arguments(text: str) -> list[str]:
    """Arguments at the commas that stand in no brackets.

    >>> split_arguments("float, S<int, 2>, (N)")
    ['float', 'S<int, 2>', '(N)']
    """
    parts, depth, start = [], 0, 0
    for place, letter in enumerate(text):
        depth += (letter in "<([{") - (letter in ">)]}")
        if letter == "," and depth == 0:
            parts.append(text[start:place].strip())
            start = place + 1
    parts.append(text[start:].strip())
    return [part for part in parts if part]


def match_arguments(said: Sequence[str | None], instance: Sequence[str]) -> bool | None:
    """Whether a launch is of an instance of a template; None where unknown.

    Args:
        said: arguments of the launch, None for each that is unknown.
        instance: of :func:`list_instance_arguments`.

    >>> match_arguments(["float", "512"], ["float", "512"]), match_arguments(["float", None], ["int", "512"]), match_arguments([], ["int"])
    (True, False, None)
    """
    pairs = [(one, other) for one, other in zip(said, instance, strict=False) if one is not None]
    if any(one.rpartition("::")[2] != other.rpartition("::")[2] for one, other in pairs):
        return False
    return True if len(pairs) == len(instance) else None


_QUALIFIERS = re.compile(
    r"\b(?:const|volatile|struct|typename|__restrict__|__restrict|restrict|__grid_constant__|register)\b"
)
_NAME_AT_END = re.compile(r"(?<=[\s*&>])[A-Za-z_]\w*\s*(?:\[\s*\w*\s*\])?$")


def match_parameters(
    parameters: Sequence[TemplateParameter], formal: Sequence[str], types: Sequence[str | None]
) -> tuple[str, ...] | None:
    """The template arguments deduced from the types of the arguments passed.

    Args:
        parameters: of the template.
        formal: the function's parameters, as written.
        types: of the arguments passed; None where unknown.

    Returns:
        One text per template parameter, without those at the end that have defaults; None where one cannot be deduced.

    >>> T, N = TemplateParameter(name="T", default="", is_type=True), TemplateParameter(name="N", default="4", is_type=False)
    >>> match_parameters([T, N], ["const T* __restrict__ x", "int n"], ["float*", "int"])
    ('float',)
    >>> match_parameters([T], ["T x"], [None]) is None
    True
    """
    bound = bind_types(parameters, formal, types)
    if bound is None:
        return None
    arguments: list[str] = []
    for one in parameters:
        if one.name in bound:
            arguments.append(bound[one.name])
        elif one.default:
            break
        else:
            return None
    return tuple(arguments)


def bind_types(
    parameters: Sequence[TemplateParameter], formal: Sequence[str], types: Sequence[str | None]
) -> dict[str, str] | None:
    """Type parameter → type deduced for it; None where deductions contradict each other.

    Args:
        types: of the arguments, in order; None for one that is not known.
    """
    bound: dict[str, str] = {}
    names = {one.name for one in parameters if one.is_type}
    for pattern, actual in zip(formal, types, strict=False):
        if actual is None:
            continue
        found = _unify(_strip(_NAME_AT_END.sub("", pattern.partition("=")[0].strip())), _strip(actual), names)
        for name, value in found.items():
            if bound.setdefault(name, value) != value:
                return None
    return bound


def _unify(pattern: str, actual: str, names: set[str]) -> dict[str, str]:
    """Match a pattern with a type: name → its part of the type; empty where they do not match or the pattern has no name.

    >>> _unify("T*", "float*", {"T"}), _unify("V<T>", "V<int>", {"T"}), _unify("int", "float", {"T"})
    ({'T': 'float'}, {'T': 'int'}, {})
    """
    found: list[str] = []

    def take(word: re.Match[str]) -> str:
        if word.group() not in names:
            return re.escape(word.group())
        if word.group() in found:
            return f"(?P={word.group()})"
        found.append(word.group())
        return f"(?P<{word.group()}>.{{1,200}}?)"

    expression = "".join(
        take(part) if part.group()[0].isalpha() or part.group()[0] == "_" else re.escape(part.group())
        for part in re.finditer(r"\w+|\W", pattern)
    )
    if not found or len(found) > 4:
        return {}
    matched = re.fullmatch(expression, actual)
    return {name: matched[name] for name in found} if matched is not None else {}


def _strip(text: str) -> str:
    """A type without qualifiers, references and redundant blanks.

    >>> _strip("const unsigned  int &"), _strip("T * __restrict__")
    ('unsigned int', 'T*')
    """
    plain = " ".join(_QUALIFIERS.sub(" ", text).replace("&", " ").split())
    return re.sub(r"\s*([*<>,\[\]])\s*", r"\1", plain)
