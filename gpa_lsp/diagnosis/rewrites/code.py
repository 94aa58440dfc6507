"""The function around a place of CUDA C++, with what its text proves."""

from functools import lru_cache
from typing import TYPE_CHECKING

from msgspec import Struct

from gpa_lsp.code.sources.cuda_declarations import Names, read_names
from gpa_lsp.code.sources.cuda_functions import (
    CudaFunction,
    find_function_around,
    find_functions_on_lines,
    find_kernels,
)
from gpa_lsp.code.sources.trees import SourceTree, is_sound, list_ancestors
from gpa_lsp.diagnosis.rewrites.cuda_types import ExpressionTypes
from gpa_lsp.diagnosis.rewrites.model import Site

if TYPE_CHECKING:
    from tree_sitter import Node


class Code(Struct, frozen=True, kw_only=True, eq=False):
    """A function that parsed as a whole."""

    tree: SourceTree  # the text
    names: Names  # what its names mean
    types: ExpressionTypes  # what its expressions are

    @property
    def function(self) -> CudaFunction:
        """The function."""
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
