"""``__restrict__`` on a kernel's pointers, and ``const`` on those it only reads."""

from collections.abc import Iterator

from gpa_lsp.code.sources.cuda_functions import (
    count_declarations,
    has_internal_linkage,
    has_own_headers,
    is_kept_as_value,
)
from gpa_lsp.diagnosis.rewrites.code import Code, find_kernel
from gpa_lsp.diagnosis.rewrites.cuda_uses import Deed
from gpa_lsp.diagnosis.rewrites.edits import insert_before
from gpa_lsp.diagnosis.rewrites.model import Proposal, RewriteKind, Site, TextEdit
from gpa_lsp.diagnosis.rewrites.pointers import Pointer, is_only_read, list_pointers, may_be_alone
from gpa_lsp.diagnosis.rewrites.titles import join_code, quote
from gpa_lsp.foundation.prose import Sentence, list_of, say

# Signs of blocks that exchange data while they run, so that what is only read here may be written at the same time elsewhere
_EXCHANGES = (
    b"__threadfence",
    b"this_grid",
    b"atomic_ref",
    b"cuda::atomic",
    b"memory_order",
    b"cudaGridDependencySynchronize",
)

_WRITING = frozenset({Deed.WRITTEN, Deed.PASSED, Deed.COPIED, Deed.BOUND})


def _propose(site: Site) -> Iterator[Proposal]:
    code = find_kernel(site)
    if code is None or any(_is_in_function(code, sign) for sign in _EXCHANGES):
        return
    pointers = list_pointers(code)
    is_written = any(use.deed in _WRITING for pointer in pointers for use in pointer.uses)
    # With one pointer, or without a store, there is nothing that could overlap.
    if len(pointers) < 2 or not is_written:
        return
    names = frozenset(pointer.text for pointer in pointers)
    promised = [one for one in pointers if not one.is_restrict and may_be_alone(code, one, names - {one.text})]
    if not promised:
        return
    constant = (
        [one for one in promised if not one.is_const and is_only_read(code, one)] if _can_change_type(code) else []
    )
    yield Proposal(
        title=_write_title(promised, constant),
        explanation=_explain(constant),
        edits=tuple(edit for one in promised for edit in _promise(site, one, is_constant=one in constant)),
    )


def _is_in_function(code: Code, sign: bytes) -> bool:
    node = code.function.node
    return code.tree.content.find(sign, node.start_byte, node.end_byte) >= 0


def _can_change_type(code: Code) -> bool:
    """Nothing else declares the kernel, or holds a pointer to it: ``const`` changes its type, ``__restrict__`` does not."""
    name = code.function.name
    is_only_one = count_declarations(code.tree, name) == 1 and not is_kept_as_value(code.tree, name)
    return is_only_one and (has_internal_linkage(code.function) or not has_own_headers(code.tree))


def _promise(site: Site, pointer: Pointer, *, is_constant: bool) -> Iterator[TextEdit]:
    pointed = pointer.parameter.child_by_field_name("type")
    if is_constant and pointed is not None:
        yield insert_before(site.tree, pointed, "const ")
    yield insert_before(site.tree, pointer.name, "__restrict__ ")


def _write_title(promised: list[Pointer], constant: list[Pointer]) -> Sentence:
    groups = {"const __restrict__": constant, "__restrict__": [one for one in promised if one not in constant]}
    parts = (
        say("{pointers} {qualifiers}", pointers=join_code([one.text for one in pointers]), qualifiers=quote(qualifiers))
        for qualifiers, pointers in groups.items()
        if pointers
    )
    return say("Declare {parts}", parts=list_of(parts))


def _explain(constant: list[Pointer]) -> Sentence:
    promise = say(
        "{restrict} promises that data reached through one pointer is not changed through another while the kernel runs. Loads can then move "
        "before stores, stay in registers and take the read-only path. Only the author can make this promise: the kernel does not contradict it, "
        "but what callers pass is not known here, and a broken promise gives wrong results.",
        restrict=quote("__restrict__"),
    )
    if not constant:
        return promise
    return say(
        "{promise} {const} marks what the kernel only reads; it becomes part of the kernel's linkage name.",
        promise=promise,
        const=quote("const"),
    )


REWRITE = RewriteKind(
    language="cuda",
    optimizers=("loop_unrolling", "code_reordering", "memory_transaction_reduction"),
    propose=_propose,
)
