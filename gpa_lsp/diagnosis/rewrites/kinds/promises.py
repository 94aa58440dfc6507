"""Promises of the source to the compiler: pointers that do not alias, the size of blocks, functions to inline."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec import Struct

from gpa_lsp.code.sources.cuda_declarations import Declaration
from gpa_lsp.code.sources.cuda_functions import (
    count_declarations,
    find_function_declarator,
    find_kernel_calls,
    find_parameter,
    has_internal_linkage,
    has_own_headers,
    is_kept_as_value,
    list_file_nodes,
    read_own_name,
)
from gpa_lsp.code.sources.trees import read_text, walk
from gpa_lsp.diagnosis.rewrites.code import Code, find_kernel, load_known_functions
from gpa_lsp.diagnosis.rewrites.cuda_uses import Deed, Use, find_uses
from gpa_lsp.diagnosis.rewrites.model import (
    Rewrite,
    RewriteKind,
    Site,
    TextEdit,
    insert_before,
    insert_behind,
    join_code,
    quote,
    replace_node,
)
from gpa_lsp.foundation.prose import Sentence, count, list_of, say

if TYPE_CHECKING:
    from tree_sitter import Node


_RESTRICT = frozenset({"__restrict__", "__restrict", "restrict"})
_STEPS = frozenset({"+=", "-="})
_EXCHANGING = frozenset({"swap", "exchange"})
_MOST_NODES = 200


class Pointer(Struct, frozen=True, kw_only=True, eq=False):
    """A parameter ``T *name``."""

    parameter: "Node"  # its declaration
    name: "Node"  # the identifier in it
    is_const: bool  # what it points to is declared constant
    is_restrict: bool  # it has the promise already
    is_volatile: bool  # what it points to may change by itself
    uses: tuple[Use, ...]  # in the kernel
    is_known: bool  # every use is known: no macro of the file mentions it

    @property
    def text(self) -> str:
        """The identifier's text."""
        return read_text(self.name)


def list_pointers(code: Code) -> tuple[Pointer, ...]:
    """The kernel's parameters that are pointers to values (not to pointers), in order."""
    found = []
    for parameter in code.function.parameters:
        declarator = parameter.child_by_field_name("declarator")
        if declarator is None or declarator.type != "pointer_declarator":
            continue
        name = declarator.child_by_field_name("declarator")
        declaration = None if name is None else _find_declaration(code, name)
        if name is None or name.type != "identifier" or declaration is None:
            continue
        qualifiers = {read_text(child) for child in parameter.children if child.type == "type_qualifier"}
        own = {read_text(child) for child in declarator.children if child != name}
        found.append(
            Pointer(
                parameter=parameter,
                name=name,
                is_const="const" in qualifiers,
                is_restrict=bool(own & _RESTRICT),
                is_volatile="volatile" in qualifiers | own,
                uses=tuple(find_uses(code.names, declaration)),
                is_known=not code.names.is_in_macros(read_text(name)),
            )
        )
    return tuple(found)


def _find_declaration(code: Code, name: "Node") -> Declaration | None:
    known = code.names.by_name.get(read_text(name), ())
    return next((one for one in known if one.start_byte == name.end_byte), None)


def may_be_alone(code: Code, pointer: Pointer, others: frozenset[str]) -> bool:
    """Whether the text allows that memory is accessed through this pointer only."""
    if pointer.is_volatile or not pointer.is_known or pointer.text in _find_launched_twice(code):
        return False
    return all(_keeps_apart(code, use, others) for use in pointer.uses)


def _keeps_apart(code: Code, use: Use, others: frozenset[str]) -> bool:
    if use.is_element or use.deed is Deed.READ:
        return True
    if use.deed is Deed.WRITTEN:
        # A step within the buffer is fine, a new address is not.
        return _is_step(use)
    if use.deed is Deed.COMPARED:
        return others.isdisjoint(_list_identifiers(use.through))
    if use.deed is Deed.PASSED:
        return not _is_passed_by_reference(code, use)
    return use.deed is Deed.COPIED and _is_copied_once(code, use, others)


def _is_copied_once(code: Code, use: Use, others: frozenset[str]) -> bool:
    """Whether the copy initialises a variable that is never given another address."""
    if use.through.type != "init_declarator" or not others.isdisjoint(_list_identifiers(use.through)):
        return False
    name = use.through.child_by_field_name("declarator")
    while name is not None and name.type != "identifier":
        name = name.child_by_field_name("declarator")
    copy = None if name is None else _find_declaration(code, name)
    if copy is None:
        return False
    copied = find_uses(code.names, copy)
    return all(one.is_element or one.deed in (Deed.READ, Deed.PASSED) or _is_step(one) for one in copied)


def _is_step(use: Use) -> bool:
    operator = read_text(use.through.child_by_field_name("operator"))
    return use.deed is Deed.WRITTEN and (use.through.type == "update_expression" or operator in _STEPS)


def is_only_read(code: Code, pointer: Pointer) -> bool:
    """Whether the kernel neither writes through a pointer nor passes it to code that could; every use must be known."""
    return all(not use.is_cast and _only_reads(code, use) for use in pointer.uses)


def _only_reads(code: Code, use: Use) -> bool:
    if use.deed in (Deed.READ, Deed.COMPARED):
        return True
    if use.deed is not Deed.PASSED:
        return False
    name, parameter = _find_called(code, use)
    if name in load_known_functions().reading:
        return True
    if parameter is None:
        return False
    declarator = parameter.child_by_field_name("declarator")
    is_reference = declarator is not None and declarator.type == "reference_declarator"
    is_const = any(child.type == "type_qualifier" and read_text(child) == "const" for child in parameter.children)
    return not is_reference if use.is_element else is_const and not is_reference


def _is_passed_by_reference(code: Code, use: Use) -> bool:
    name, parameter = _find_called(code, use)
    if name is None or parameter is None:
        call = use.through.parent
        function = None if call is None else call.child_by_field_name("function")
        return not _EXCHANGING.isdisjoint(_list_identifiers(function)) if function is not None else False
    declarator = parameter.child_by_field_name("declarator")
    return declarator is not None and any(node.type == "reference_declarator" for node in walk(declarator, _MOST_NODES))


def _find_called(code: Code, use: Use) -> "tuple[str | None, Node | None]":
    """The plain name of the function a variable is passed to, and its parameter, where the file has it."""
    arguments, call = use.through, use.through.parent
    function = None if call is None or call.type != "call_expression" else call.child_by_field_name("function")
    if call is None or function is None:
        return None, None
    around = (one.start_byte <= use.node.start_byte < one.end_byte for one in arguments.named_children)
    index = next((number for number, is_here in enumerate(around) if is_here), None)
    own = read_text(function) if function.type == "identifier" else None
    parameter = find_parameter(code.tree, own, index) if own is not None and index is not None else None
    return (own if parameter is not None else code.types.read_called_name(call)), parameter


def _find_launched_twice(code: Code) -> frozenset[str]:
    """Parameters to which a launch in the same file passes the same memory as to another one."""
    found = set()
    parameters = [_name_parameter(one) for one in code.function.parameters]
    for call in find_kernel_calls(code.tree, code.function.name):
        arguments = call.child_by_field_name("arguments")
        given = [_find_origin(one) for one in arguments.named_children] if arguments is not None else []
        found |= {
            name for name, one in zip(parameters, given, strict=False) if one is not None and given.count(one) > 1
        }
    return frozenset(found)


def _name_parameter(parameter: "Node") -> str:
    declarator = parameter.child_by_field_name("declarator")
    names = list(_list_identifiers(declarator)) if declarator is not None else []
    return names[-1] if names else ""


def _find_origin(argument: "Node") -> str | None:
    """Name of the buffer in an address: ``buffer`` in ``buffer + n``; None for a plain number."""
    node: Node | None = argument
    for _ in range(_MOST_NODES):
        if node is None or node.type.endswith("literal") or node.type in ("null", "true", "false"):
            return None
        following = {
            "binary_expression": "left",
            "pointer_expression": "argument",
            "cast_expression": "value",
        }.get(node.type)
        if following is None:
            return read_text(node)
        node = node.child_by_field_name(following)
    return None


def _list_identifiers(node: "Node") -> Iterator[str]:
    return (read_text(one) for one in walk(node, _MOST_NODES) if one.type == "identifier")


# Text of kernels whose blocks exchange data while they run, so that data only read here may be written elsewhere at the same time
_EXCHANGES = (
    b"__threadfence",
    b"this_grid",
    b"atomic_ref",
    b"cuda::atomic",
    b"memory_order",
    b"cudaGridDependencySynchronize",
)

_WRITING = frozenset({Deed.WRITTEN, Deed.PASSED, Deed.COPIED, Deed.BOUND})


def _propose_restrict_pointers(site: Site) -> Iterator[Rewrite]:
    """``__restrict__`` on a kernel's pointers, and ``const`` on those it only reads."""
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
    yield Rewrite(
        title=_write_title(promised, constant),
        explanation=_explain_of_restrict_pointers(constant),
        edits=tuple(edit for one in promised for edit in _promise(site, one, is_constant=one in constant)),
    )


def _is_in_function(code: Code, sign: bytes) -> bool:
    node = code.function.node
    return code.tree.content.find(sign, node.start_byte, node.end_byte) >= 0


def _can_change_type(code: Code) -> bool:
    """Whether no other place declares the kernel or holds a pointer to it: ``const`` changes its type, ``__restrict__`` does not."""
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


def _explain_of_restrict_pointers(constant: list[Pointer]) -> Sentence:
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


_OCCUPANCY = "thread_increase"


def _propose_launch_bounds(site: Site) -> Iterator[Rewrite]:
    """``__launch_bounds__`` on a kernel, so that the compiler gives its threads the registers that its launches allow."""
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
        yield Rewrite(title=title, explanation=_explain_of_launch_bounds(threads, blocks), edits=(edit,))


def _find_bounds(code: Code) -> "list[Node]":
    """All ``__launch_bounds__`` of the kernel and of its other declarations in the file."""
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
    """Change the kernel's only bounds: fewer threads where they give more, blocks where they give none."""
    given = bounds[0].named_children if len(bounds) == 1 and bounds[0].parent == code.function.node else []
    if len(given) != 1:
        return None
    if blocks is not None:
        return insert_behind(site.tree, given[0], f", {blocks}") if read_text(given[0]) == str(threads) else None
    written = read_text(given[0])
    is_larger = given[0].type == "number_literal" and written.isdecimal() and int(written) > threads
    return replace_node(site.tree, given[0], str(threads)) if is_larger else None


def _explain_of_launch_bounds(threads: int, blocks: int | None) -> Sentence:
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


_KEPT_OUT, _FORCED = "__noinline__", "__forceinline__"
_EXPLANATION = say(
    "Calls, returns and the moves of arguments go; each call site holds the code. Results do not change."
)


def _propose_inline_function(site: Site) -> Iterator[Rewrite]:
    """``__forceinline__`` in place of ``__noinline__`` at a device function that is called."""
    for function in walk(site.tree.root):
        rows = range(function.start_point[0] + 1, function.end_point[0] + 2)
        if function.type != "function_definition" or site.lines.isdisjoint(rows):
            continue
        for node in function.children:
            if node.type == _KEPT_OUT:
                title = say("Replace {kept} by {forced}", kept=quote(_KEPT_OUT), forced=quote(_FORCED))
                edit = replace_node(site.tree, node, _FORCED)
                yield Rewrite(title=title, explanation=_EXPLANATION, edits=(edit,), is_preferred=True)


REWRITES = {
    "restrict_pointers": RewriteKind(
        language="cuda",
        optimizers=("loop_unrolling", "code_reordering", "memory_transaction_reduction"),
        propose=_propose_restrict_pointers,
        is_remedy=False,
    ),
    "launch_bounds": RewriteKind(
        language="cuda", optimizers=(_OCCUPANCY, "register_reuse"), propose=_propose_launch_bounds
    ),
    "inline_function": RewriteKind(
        language="cuda", optimizers=("function_inlining",), propose=_propose_inline_function
    ),
}
