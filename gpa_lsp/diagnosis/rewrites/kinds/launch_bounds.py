"""``__launch_bounds__`` on a kernel, so that the compiler gives its threads the registers that its launches allow."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gpa_lsp.code.sources.cuda_functions import find_function_declarator, list_file_nodes, read_own_name
from gpa_lsp.code.sources.trees import read_text
from gpa_lsp.diagnosis.rewrites.code import Code, find_kernel
from gpa_lsp.diagnosis.rewrites.model import (
    Rewrite,
    RewriteKind,
    Site,
    TextEdit,
    insert_before,
    insert_behind,
    quote,
    replace_node,
)
from gpa_lsp.foundation.prose import Sentence, count, say

if TYPE_CHECKING:
    from tree_sitter import Node

_OCCUPANCY = "thread_increase"


def _propose(site: Site) -> Iterator[Rewrite]:
    threads, blocks = site.context.threads_per_block, None
    if site.context.optimizer == _OCCUPANCY:
        blocks = site.context.min_blocks
    if not threads or (blocks is None and site.context.optimizer == _OCCUPANCY):
        return
    code = find_kernel(site)
    if code is None:
        return
    words = f"__launch_bounds__({threads})" if blocks is None else f"__launch_bounds__({threads}, {blocks})"
    bounds = _find_bounds(code)
    edit = _bound(site, code, words) if not bounds else _change(site, code, bounds, threads, blocks)
    if edit is not None:
        title = say(
            "Change the launch bounds to {bounds}" if bounds else "Declare the kernel {bounds}", bounds=quote(words)
        )
        yield Rewrite(title=title, explanation=_explain(threads, blocks), edits=(edit,))


def _find_bounds(code: Code) -> "list[Node]":
    """Every ``__launch_bounds__`` of the kernel and of its other declarations in the file."""
    found = []
    for node in list_file_nodes(code.tree):
        if node.type in ("function_definition", "declaration"):
            declarator = find_function_declarator(node)
            if declarator is not None and read_own_name(declarator) == code.function.name:
                found += [child for child in node.children if child.type == "launch_bounds"]
    return found


def _bound(site: Site, code: Code, words: str) -> TextEdit | None:
    node = code.function.node
    is_plain = node.child_by_field_name("declarator") == code.function.declarator
    attributes = [child for child in node.children if "attribute" in child.type]
    if not is_plain or attributes or read_text(node.child_by_field_name("type")) != "void":
        return None
    return insert_before(site.tree, code.function.declarator, f"{words} ")


def _change(site: Site, code: Code, bounds: "list[Node]", threads: int, blocks: int | None) -> TextEdit | None:
    """Other numbers in the kernel's only bounds: fewer threads where more are written there, blocks where none are."""
    given = bounds[0].named_children if len(bounds) == 1 and bounds[0].parent == code.function.node else []
    if len(given) != 1:
        return None
    if blocks is not None:
        return insert_behind(site.tree, given[0], f", {blocks}") if read_text(given[0]) == str(threads) else None
    written = read_text(given[0])
    is_larger = given[0].type == "number_literal" and written.isdecimal() and int(written) > threads
    return replace_node(site.tree, given[0], str(threads)) if is_larger else None


def _explain(threads: int, blocks: int | None) -> Sentence:
    largest = say(
        "The largest measured launch has {threads} per block; a launch with more will fail. Results do not change.",
        threads=count(threads, "thread"),
    )
    if blocks is None:
        return say(
            "A bound for larger blocks or {option} holds the compiler to few registers. A bound of the kernel's own overrides both and allows each "
            "thread all the registers that blocks of {threads} leave. {largest}",
            option=quote("-maxrregcount"),
            threads=count(threads, "thread"),
            largest=largest,
        )
    return say(
        "The compiler then uses few enough registers for {blocks} to fit on an SM. If the kernel needs more, values spill to local memory, "
        "which can cost more than the additional warps gain. {largest}",
        blocks=count(blocks, "block"),
        largest=largest,
    )


REWRITE = RewriteKind(language="cuda", optimizers=(_OCCUPANCY, "register_reuse"), propose=_propose)
