"""The hardware's approximation in place of an accurate function: ``__sinf`` for ``sinf``."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec import Struct

from gpa_lsp.code.sources.trees import walk_lines
from gpa_lsp.diagnosis.rewrites.code import Code, read_code
from gpa_lsp.diagnosis.rewrites.model import Rewrite, RewriteKind, Site, quote, replace_node
from gpa_lsp.foundation.prose import say

if TYPE_CHECKING:
    from tree_sitter import Node


class _Intrinsic(Struct, frozen=True, kw_only=True):
    """An approximation."""

    name: str  # of the intrinsic
    accuracy: str  # its documented error, behind "Its error is"


_SINE = "within 2^-21.4 for angles from -π to π and grows outside them"
# By the function's name without the ``f``. Source: CUDA C++ Programming Guide, table of single precision intrinsics with their error bounds.
_INTRINSICS = {
    "cos": _Intrinsic(name="__cosf", accuracy="within 2^-21.2 for angles from -π to π and grows outside them"),
    "exp": _Intrinsic(name="__expf", accuracy="up to 2 + |1.17 x| ULP"),
    "exp10": _Intrinsic(name="__exp10f", accuracy="up to 2 + |2.97 x| ULP"),
    "log": _Intrinsic(name="__logf", accuracy="within 2^-21.4 for x from 0.5 to 2, and up to 3 ULP elsewhere"),
    "log10": _Intrinsic(name="__log10f", accuracy="within 2^-24 for x from 0.5 to 2, and up to 3 ULP elsewhere"),
    "log2": _Intrinsic(name="__log2f", accuracy="within 2^-22 for x from 0.5 to 2, and up to 2 ULP elsewhere"),
    "pow": _Intrinsic(name="__powf", accuracy="that of an approximate 2^(y · log2(x)): large for large results"),
    "sin": _Intrinsic(name="__sinf", accuracy=_SINE),
    "sincos": _Intrinsic(name="__sincosf", accuracy=_SINE),
    "tan": _Intrinsic(name="__tanf", accuracy="that of an approximate sine over an approximate cosine"),
}


def _propose(site: Site) -> Iterator[Rewrite]:
    for node in walk_lines(site.tree.root, site.lines):
        code = read_code(site.tree, node) if node.type == "call_expression" else None
        # Intrinsics exist on the device only.
        if code is None or not code.function.is_device_only:
            continue
        name = code.types.read_called_name(node)
        intrinsic = _find_intrinsic(code, node, name)
        function = node.child_by_field_name("function")
        if intrinsic is None or function is None:
            continue
        yield Rewrite(
            title=say("Use {intrinsic} for {function}", intrinsic=quote(intrinsic.name), function=quote(name or "")),
            explanation=say(
                "{intrinsic} is a few instructions around one of the special-function unit. Its error is {accuracy}. {fast_math} does this to "
                "all functions, divisions and roots of a file.",
                intrinsic=quote(intrinsic.name),
                accuracy=intrinsic.accuracy,
                fast_math=quote("-use_fast_math"),
            ),
            edits=(replace_node(site.tree, function, intrinsic.name),),
            changes_results=True,
        )


def _find_intrinsic(code: Code, call: "Node", name: str | None) -> _Intrinsic | None:
    """The approximation of a function of single precision; None for one that has none, and where single precision is not certain."""
    if name is None:
        return None
    if name.endswith("f") and name[:-1] in _INTRINSICS:
        return _INTRINSICS[name[:-1]]
    arguments = call.child_by_field_name("arguments")
    if arguments is None or name not in _INTRINSICS or name == "sincos":
        return None
    # Without the f the arguments choose the precision.
    return _INTRINSICS[name] if all(code.types.find(one).is_float for one in arguments.named_children) else None


REWRITE = RewriteKind(language="cuda", optimizers=("fast_math",), propose=_propose)
