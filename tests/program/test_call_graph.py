"""Who calls whom, in images of a few lines."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from gpa_lsp.binary.model import Cubin, Function, IndirectCalls, Instructions
from gpa_lsp.program.build import build_program
from gpa_lsp.program.call_model import CallGraph, CallKind, Recursion
from tests.program.assembly import assemble

NONE, POSSIBLE, CERTAIN = Recursion.NONE, Recursion.POSSIBLE, Recursion.CERTAIN


def make_cubin(
    functions: Sequence[Function],
    calls: Sequence[tuple[str, str]] = (),
    indirect_calls: Sequence[IndirectCalls] = (),
) -> Cubin:
    return Cubin(
        path=None,
        sm=90,
        is_relocatable=False,
        sha256="0" * 64,
        image=b"",
        functions={function.name: function for function in functions},
        calls=tuple(calls),
        indirect_calls=tuple(indirect_calls),
        has_lines=False,
        has_ptx_lines=False,
    )


def build(
    listings: Mapping[str, str],
    *,
    calls: Sequence[tuple[str, str]] = (),
    indirect_calls: Sequence[IndirectCalls] = (),
    disassembled: Sequence[str] | None = None,
) -> CallGraph:
    """The call graph of an image with one function per listing; the first is a kernel, the others are device functions."""
    functions: list[Function] = []
    instructions: dict[str, Instructions] = {}
    for name, listing in listings.items():
        function, instructions[name] = assemble(listing, name)
        functions.append(replace(function, is_entry=not functions))
    cubin = make_cubin(functions, calls, indirect_calls)
    known = instructions if disassembled is None else {name: instructions[name] for name in disassembled}
    return build_program(cubin, known).call_graph


def list_calls(graph: CallGraph) -> list[tuple[str, str | None, int | None, CallKind, bool]]:
    return [
        (graph.nodes[edge.caller].name, edge.callee_name, edge.pc_offset, edge.kind, edge.is_outside_module)
        for edge in graph.edges
    ]


def recursions(graph: CallGraph) -> dict[str, Recursion]:
    return {node.name: node.recursion for node in graph.nodes}


def test_local_sub_functions_and_recursion():
    graph = build(
        {
            "kernel": """
            CALL.REL.NOINC `($kernel$rec)      // 0
            EXIT
        $kernel$rec:
            CALL.REL.NOINC `($kernel$leaf)     // 2
            @P0 CALL.REL.NOINC `($kernel$rec)  // 3
            RET.REL.NODEC R20 `(kernel)
        $kernel$leaf:
            RET.REL.NODEC R20 `(kernel)        // 5
        """
        }
    )
    assert [(node.function, node.name, node.start_offset, node.is_entry) for node in graph.nodes] == [
        ("kernel", "kernel", 0, True),
        ("kernel", "$kernel$rec", 32, False),
        ("kernel", "$kernel$leaf", 80, False),
    ]
    assert list_calls(graph) == [
        ("kernel", "$kernel$rec", 0, CallKind.DIRECT, False),
        ("$kernel$rec", "$kernel$leaf", 32, CallKind.DIRECT, False),
        ("$kernel$rec", "$kernel$rec", 48, CallKind.DIRECT, False),
    ]
    assert graph.edges_by_caller == ((0,), (1, 2), ())
    assert graph.edges_by_callee == ((), (0, 2), (1,))
    assert recursions(graph) == {"kernel": NONE, "$kernel$rec": CERTAIN, "$kernel$leaf": NONE}


def test_calls_by_symbol_across_sections():
    graph = build(
        {
            "kernel": "CALL.ABS.NOINC `(even)\nCALL.ABS.NOINC `(vprintf)\nBRA `(odd)",
            "even": "CALL.ABS.NOINC `(odd)\nRET.ABS.NODEC R20 0x0",
            "odd": "CALL.ABS.NOINC `(even)\nRET.ABS.NODEC R20 0x0",
        }
    )
    assert list_calls(graph) == [
        ("kernel", "even", 0, CallKind.SYMBOL, False),
        ("kernel", "vprintf", 16, CallKind.SYMBOL, True),
        ("kernel", "odd", 32, CallKind.SYMBOL, False),
        ("even", "odd", 0, CallKind.SYMBOL, False),
        ("odd", "even", 0, CallKind.SYMBOL, False),
    ]
    assert [edge.is_tail for edge in graph.edges] == [False, False, True, False, False]
    assert recursions(graph) == {"kernel": NONE, "even": CERTAIN, "odd": CERTAIN}


def test_indirect_calls_have_no_callee_but_candidates():
    graph = build(
        {
            "kernel": "CALL.REL.NOINC R2 `(kernel)\nEXIT",
            "virtual": "CALL.REL.NOINC R2 `(virtual)\nRET.REL.NODEC R20 `(virtual)",
            "leaf": "RET.REL.NODEC R20 `(leaf)",
        },
        indirect_calls=[IndirectCalls(callers=("kernel", "virtual", "gone"), callees=("leaf", "virtual", "gone"))],
    )
    assert list_calls(graph) == [
        ("kernel", None, 0, CallKind.INDIRECT, False),
        ("virtual", None, 0, CallKind.INDIRECT, False),
    ]
    assert [edge.callee for edge in graph.edges] == [None, None]
    assert [(calls.callers, calls.callees) for calls in graph.pointer_calls] == [((0, 1), (1, 2))]
    assert recursions(graph) == {"kernel": NONE, "virtual": POSSIBLE, "leaf": NONE}


def test_declared_calls_fill_in_for_what_was_not_disassembled():
    listings = {
        "kernel": "CALL.ABS.NOINC `(rec)\nCALL.ABS.NOINC R4\nEXIT",
        "rec": "CALL.ABS.NOINC `(rec)\nRET.ABS.NODEC R20 0x0",
    }
    declared = [("kernel", "rec"), ("kernel", "vprintf"), ("rec", "rec"), ("rec", "rec"), ("gone", "rec")]
    graph = build(listings, calls=declared, disassembled=["kernel"])
    assert list_calls(graph) == [
        ("kernel", "rec", 0, CallKind.SYMBOL, False),
        ("kernel", None, 16, CallKind.INDIRECT, False),
        ("kernel", "vprintf", None, CallKind.DECLARED, True),
        ("rec", "rec", None, CallKind.DECLARED, False),
    ]
    assert recursions(graph) == {"kernel": NONE, "rec": CERTAIN}
    everything = build(listings, calls=declared)
    assert [edge.kind for edge in everything.edges if edge.callee_name == "rec"] == [
        CallKind.SYMBOL,
        CallKind.DIRECT,
    ]


def test_nodes_are_found_by_name():
    graph = build({"kernel": "EXIT\n$kernel$sub:\nRET.REL.NODEC R20 `(kernel)"})
    assert graph.find_node("kernel") == 0
    assert graph.find_node("kernel", "$kernel$sub") == 1
    assert graph.find_node("$kernel$sub") is None


def test_an_image_without_functions():
    graph = build_program(make_cubin([]), {}).call_graph
    assert (graph.nodes, graph.edges, graph.pointer_calls) == ((), (), ())
