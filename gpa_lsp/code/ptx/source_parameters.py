"""Names and types of a kernel's parameters from its source; PTX does not keep them."""

from typing import TYPE_CHECKING

from msgspec import Struct

from gpa_lsp.code.binary.linkage_names import find_bare_name
from gpa_lsp.code.sources.cuda_functions import find_kernels
from gpa_lsp.code.sources.trees import read_text, read_tree

if TYPE_CHECKING:
    from tree_sitter import Node


class SourceParameter(Struct, frozen=True, kw_only=True):
    """A parameter as the source declares it."""

    name: str  # empty where it has none
    type: str  # of the value, or of what the pointer points to, without ``const``; as written, e.g. ``float4`` or ``Particle``.
    is_pointer: bool  # its value is an address
    is_reference: bool = False  # the address of one value
    leads_to_pointers: bool = False  # the address of addresses of that type, as of ``float** rows``


def read_source_parameters(file: str, text: str, kernel: str) -> tuple[SourceParameter, ...]:
    """The parameters of a kernel of a CUDA C++ text.

    Args:
        file: its name, for its language.
        text: the whole text.
        kernel: plain or mangled name.

    Returns:
        In order; none where the text has no such kernel, or several that disagree.

    >>> for one in read_source_parameters("k.cu", "__global__ void k(float* const __restrict x, const int* const* rows, unsigned int n) {}", "k"):
    ...     print(one.type, one.name, one.is_pointer, one.leads_to_pointers)
    float x True False
    int rows True True
    unsigned int n False False
    """
    tree = read_tree(file, text)
    if tree is None:
        return ()
    found = {_read_parameters(one.parameters) for one in find_kernels(tree, find_bare_name(kernel))}
    return found.pop() if len(found) == 1 else ()


def _read_parameters(nodes: "tuple[Node, ...]") -> tuple[SourceParameter, ...]:
    return tuple(
        _read_parameter(node)
        for node in nodes
        if node.type in ("parameter_declaration", "optional_parameter_declaration")
    )


def _read_parameter(node: "Node") -> SourceParameter:
    declarator = node.child_by_field_name("declarator")
    levels: list[str] = []
    name, is_reference = "", False
    while declarator is not None and not name:
        is_reference |= "reference" in declarator.type
        levels += [word for word in ("pointer", "array") if word in declarator.type]
        if declarator.type == "identifier":
            name = read_text(declarator)
        inner = declarator.child_by_field_name("declarator")
        declarator = inner or next(
            (one for one in declarator.named_children if one.type == "identifier" or one.type.endswith("declarator")),
            None,
        )
    kind = " ".join(read_text(node.child_by_field_name("type")).split())
    leads_to_pointers = len(levels) == 2 and levels[0] == "pointer"  # not (*rows)[4], which are rows of numbers
    return SourceParameter(
        name=name,
        type=kind,
        is_pointer=bool(levels),
        is_reference=is_reference,
        leads_to_pointers=leads_to_pointers,
    )
