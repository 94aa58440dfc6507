"""Finds the host code in a CUDA C++ text, so that a device compiler can read the rest.

What is left out is overwritten with blanks, so every line and column stays where it was. Functions count as the host's that no mark says
otherwise of; members of classes and ``constexpr`` functions are left in place, because device code may use them, and are compiled as device code.

Approximation: the text is read before the preprocessor has been over it. Macros that stand for marks are found where they are defined in the text
or in a header that was given; of others the name decides.
"""

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from msgspec import Struct

from gpa_lsp.code.sources.cuda_functions import find_function_declarator, list_file_nodes, read_own_name
from gpa_lsp.code.sources.trees import SourceTree, list_ancestors, read_text, read_tree

if TYPE_CHECKING:
    from tree_sitter import Node

_MARK = re.compile(
    rb"__(?:global|device|constant|shared|managed|tile_global|tile|host__\s+__device)__|\btexture\s*<|\bsurface\s*<"
)
_MARK_MACRO = re.compile(
    rb"^[ \t]*#[ \t]*define[ \t]+(\w+)(?:\([^()\n]*\))?[ \t]+[^\n]*?(?:__(?:global|device|constant|shared)__)",
    re.MULTILINE,
)
_WORD = re.compile(rb"[A-Za-z_]\w*")
# In front of a parenthesis it is what is declared
_SPEAKING_NAME = re.compile(rb"\b[A-Z0-9_]*(?:DEVICE|KERNEL|GLOBAL|CUDA|HD|GPU)[A-Z0-9_]*\b(?!\s*\()")
_CONSTANT = re.compile(rb"\b(?:const|constexpr|consteval|enum|using|typedef|static_assert)\b")
_CONSTEXPR = re.compile(rb"\b(?:constexpr|consteval)\b")
_ASCII = bytes(range(128)) + b"_" * 128
_OTHER = re.compile(rb"[^\r\n]")
_REMOVABLE = frozenset(
    {"declaration", "using_declaration", "alias_declaration", "type_definition", "field_declaration"}
)
_CONDITIONAL = re.compile(r"\s*#\s*(ifdef|ifndef|if|elif|else|endif)\b(.*)")
_PLAIN_CONDITION = re.compile(r"(?:defined|&&|[\s()]|[A-Za-z_]\w*)+")
_WORD_TEXT = re.compile(r"[A-Za-z_]\w*")
_CLASSES = frozenset({"class_specifier", "struct_specifier", "union_specifier"})


class HostCode(Struct, frozen=True, kw_only=True):
    """Host code of a text."""

    content: bytes  # the text
    # its syntax tree, in which letters beyond ASCII are underscores; its bytes are those of ``content``
    tree: SourceTree
    spans: tuple[tuple[int, int], ...]  # (first byte, byte behind) of host code, ascending by start
    mark_names: frozenset[bytes]  # macros that stand for marks

    @property
    def has_host(self) -> bool:
        """Whether there are host functions, declarations or variables."""
        return bool(self.spans)


def find_host_code(content: bytes, headers: Iterable[bytes] = ()) -> HostCode | None:
    r"""Find the host's part of a text.

    Returns:
        None for a text that is too large or too hard to parse.

    >>> found = find_host_code(b"__global__ void k() {}\nint main() {\n  k<<<1, 1>>>();\n}\n")
    >>> blank_out(found.content, found.spans)
    b'__global__ void k() {}\n            \n                \n \n'
    """
    tree = read_tree("source.cu", content.translate(_ASCII).decode("ascii"))
    if tree is None:
        return None
    names = frozenset(found[1] for text in (content, *headers) for found in _MARK_MACRO.finditer(text))
    return HostCode(content=content, tree=tree, spans=tuple(sorted(_find_spans(tree, names))), mark_names=names)


def blank_out(content: bytes, spans: Iterable[tuple[int, int]]) -> bytes:
    """Text with spans, ascending by start, overwritten with blanks; line ends stay."""
    parts, position = [], 0
    for start, end in spans:
        parts += [content[position:start], _OTHER.sub(b" ", content[max(start, position) : end])]
        position = max(position, end)
    return b"".join([*parts, content[position:]])


def is_marked(text: bytes, mark_names: frozenset[bytes]) -> bool:
    """Whether the head of a definition or declaration marks it as device code.

    >>> is_marked(b"__device__ float", frozenset()), is_marked(b"HD float", frozenset({b"HD"})), is_marked(b"static float", frozenset())
    (True, True, False)
    >>> is_marked(b"SUM_DEVICE float sum(int n)", frozenset()), is_marked(b"float SUM_CUDA (int n)", frozenset())
    (True, False)
    """
    return bool(
        _MARK.search(text) or _SPEAKING_NAME.search(text) or any(word in mark_names for word in _WORD.findall(text))
    )


def find_conditions(content: bytes) -> tuple[str, ...]:
    r"""Macros to define so that the first conditional kernel is compiled; empty for none.

    >>> find_conditions(b"#if defined(A) && B\n#ifndef C\n__global__ void k() {}\n#endif\n#endif\n")
    ('A', 'B')
    >>> find_conditions(b"#ifndef D\n#else\n__global__ void k() {}\n#endif\n"), find_conditions(b"#if !A || N > 3\n__global__ void k() {}\n#endif\n")
    (('D',), ())
    """
    open_: list[tuple[str, ...]] = []
    others: list[tuple[str, ...]] = []
    for line in content.decode("utf-8", "replace").split("\n"):
        directive = _CONDITIONAL.match(line)
        if directive is None:
            if "__global__" in line and any(open_):
                return tuple(dict.fromkeys(name for names in open_ for name in names))
            continue
        word, rest = directive[1], directive[2].partition("//")[0].strip()
        if word in ("ifdef", "ifndef", "if"):
            is_plain = _PLAIN_CONDITION.fullmatch(rest) is not None
            names = tuple(one for one in _WORD_TEXT.findall(rest) if one != "defined") if is_plain else ()
            open_.append(() if word == "ifndef" else names)
            others.append(names if word == "ifndef" else ())
        elif word == "endif" and open_:
            open_.pop()
            others.pop()
        elif open_:
            open_[-1], others[-1] = (others[-1] if word == "else" else ()), ()
    return ()


def find_removable(host: HostCode, line: int, column: int | None) -> tuple[tuple[int, int], ...]:
    """Further code that can be left out after a device compiler's error.

    Args:
        line: 1-based.
        column: 1-based; None when it is not known.

    Returns:
        The body of an unmarked member function or of a ``constexpr`` function, an unmarked declaration, or a class with a member of a type that is
        not there (never the member alone: the others would move). Empty where it is device code, or nothing that can be left out alone.
    """
    node = _find_node_at(host.tree, line, column)
    chain = () if node is None else (node, *list_ancestors(node))
    for index, around in enumerate(chain):
        if around.type == "function_definition":
            return _find_removable_body(host, around)
        if around.type in _REMOVABLE:
            return _find_removable_declaration(host, around, chain[index + 1 :])
    return ()


def _find_removable_declaration(host: HostCode, node: "Node", outer: "tuple[Node, ...]") -> tuple[tuple[int, int], ...]:
    if is_marked(host.content[node.start_byte : node.end_byte], host.mark_names):
        return ()
    function = next((one for one in outer if one.type == "function_definition"), None)
    if function is not None:
        return _find_removable_body(host, function)
    if node.type == "field_declaration" and find_function_declarator(node) is None:
        node = next((one for one in outer if one.type in _CLASSES), node)
        if _MARK.search(host.content[node.start_byte : node.end_byte]):
            return ()  # device code would miss it
    return (_widen(node),)


def _find_removable_body(host: HostCode, function: "Node") -> tuple[tuple[int, int], ...]:
    """Statements of a function, and a constructor's initializers."""
    body = function.child_by_field_name("body")
    if body is None or is_marked(host.content[function.start_byte : body.start_byte], host.mark_names):
        return ()
    inside = (body.start_byte + 1, max(body.start_byte + 1, body.end_byte - 1))
    before = [child for child in function.named_children if child.type == "field_initializer_list"]
    return (*((child.start_byte, child.end_byte) for child in before), inside)


def _find_node_at(tree: SourceTree, line: int, column: int | None) -> "Node | None":
    """Smallest node at a place; without a column, the smallest that holds the whole line."""
    lines = tree.content.split(b"\n", line)
    if line < 1 or line > len(lines):
        return None
    text = lines[line - 1]
    start = sum(len(one) + 1 for one in lines[: line - 1])
    if column is not None and column <= len(text):
        return tree.root.descendant_for_byte_range(start + column - 1, start + column - 1)
    start += len(text) - len(text.lstrip())
    return tree.root.descendant_for_byte_range(start, max(start, start + len(text.strip()) - 1))


def _find_spans(tree: SourceTree, names: frozenset[bytes]) -> Iterator[tuple[int, int]]:
    functions: dict[bool, set[str]] = {True: set(), False: set()}
    for node in list_file_nodes(tree):
        if node.type == "function_definition":
            is_host = _is_host_function(tree, node, names)
            functions[is_host].add(_find_own_name(node))
            if is_host:
                yield _widen(node)
        elif node.type == "declaration" and _is_host_declaration(tree, node, names):
            yield _widen(node)
    for node in list_file_nodes(tree):
        if node.type == "template_instantiation" and _find_own_name(node) in functions[True] - functions[False]:
            yield node.start_byte, node.end_byte


def _find_own_name(node: "Node") -> str:
    declarator = find_function_declarator(node)
    return "" if declarator is None else read_own_name(declarator)


def _is_host_function(tree: SourceTree, node: "Node", names: frozenset[bytes]) -> bool:
    body = node.child_by_field_name("body")
    outer = _widen(node)[0]
    head = tree.content[outer : body.start_byte if body is not None else node.end_byte]
    if is_marked(head, names) or _CONSTEXPR.search(head):
        return False
    declarator = find_function_declarator(node)
    # A macro that is not known may stand for a mark, when what follows it does not parse with it.
    is_doubtful = any(child.type == "ERROR" for child in node.children) and _starts_with_capitals(head)
    return declarator is not None and not is_doubtful


def _starts_with_capitals(head: bytes) -> bool:
    word = _WORD.search(head)
    return word is not None and word.group().isupper() and len(word.group()) > 1


def _is_host_declaration(tree: SourceTree, node: "Node", names: frozenset[bytes]) -> bool:
    text = tree.content[_widen(node)[0] : node.end_byte]
    if is_marked(text, names):
        return False
    if find_function_declarator(node) is not None:
        return not _CONSTEXPR.search(text)
    declarator = node.child_by_field_name("declarator")
    kind = node.child_by_field_name("type")
    is_type = kind is not None and kind.type.endswith("_specifier") and kind.child_by_field_name("body") is not None
    return declarator is not None and not is_type and not _CONSTANT.search(text) and read_text(declarator) != ""


def _widen(node: "Node") -> tuple[int, int]:
    """Span of a definition including ``template <…>`` and ``extern "C"`` in front of it."""
    whole = node
    parent = node.parent
    while parent is not None and parent.type in ("template_declaration", "linkage_specification"):
        if parent.type == "linkage_specification" and any(
            child.type == "declaration_list" for child in parent.children
        ):
            break
        whole, parent = parent, parent.parent
    return whole.start_byte, whole.end_byte
