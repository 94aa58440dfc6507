"""The call graph of an image: its procedures, who calls whom, and which of them are recursive."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gpa_lsp.binary.model import INSTRUCTION_BYTES, Cubin
from gpa_lsp.program.call_model import CallEdge, CallGraph, CallKind, CallNode, PointerCalls, Recursion
from gpa_lsp.program.cfg import ProcedureStart, find_procedure_starts
from gpa_lsp.program.components import find_cyclic_nodes
from gpa_lsp.program.model import CallSite, FlowGraph


@dataclass(frozen=True, slots=True, kw_only=True)
class _Places:
    """Where the procedures of an image are among the nodes.

    Attributes:
        starts: for each node its function's name and its start.
        at: (function name, index of the first instruction) → node.
        named: procedure name → node. A function's own routine goes before sub-functions of the same name in other sections, and of those
            the first counts: names of local sub-functions are unique in what compilers write.
    """

    starts: tuple[tuple[str, ProcedureStart], ...]
    at: Mapping[tuple[str, int], int]
    named: Mapping[str, int]


def build_call_graph(cubin: Cubin, graphs: Mapping[str, FlowGraph]) -> CallGraph:
    """The call graph over all functions of an image.

    Args:
        cubin: the image.
        graphs: flow graphs of the functions that were disassembled; the calls of the others are known only as far as ``.nv.callgraph``
            declares them, which leaves out calls to local sub-functions.
    """
    places = _place_procedures(cubin)
    edges = _list_sites(graphs, places)
    edges += _list_declared(cubin, edges, places)
    pointer_calls = _list_pointer_calls(cubin, places)
    recursions = _find_recursions(len(places.starts), edges, pointer_calls)
    by_caller: list[list[int]] = [[] for _ in places.starts]
    by_callee: list[list[int]] = [[] for _ in places.starts]
    for number, edge in enumerate(edges):
        by_caller[edge.caller].append(number)
        if edge.callee is not None:
            by_callee[edge.callee].append(number)
    return CallGraph(
        nodes=tuple(
            CallNode(
                function=function,
                name=start.name,
                start_offset=start.instruction * INSTRUCTION_BYTES,
                is_entry=start.instruction == 0 and cubin.functions[function].is_entry,
                recursion=recursion,
            )
            for (function, start), recursion in zip(places.starts, recursions, strict=True)
        ),
        edges=tuple(edges),
        edges_by_caller=tuple(map(tuple, by_caller)),
        edges_by_callee=tuple(map(tuple, by_callee)),
        pointer_calls=pointer_calls,
    )


def _place_procedures(cubin: Cubin) -> _Places:
    starts = [
        (name, start)
        for name, function in cubin.functions.items()
        for start in find_procedure_starts(function, function.size_bytes // INSTRUCTION_BYTES)
    ]
    at = {(name, start.instruction): node for node, (name, start) in enumerate(starts)}
    named = {name: at[name, 0] for name in cubin.functions if (name, 0) in at}
    for name, function in cubin.functions.items():
        for sub in function.sub_functions:
            # Not from ``starts``: a second name for an address is a name to call it by, too.
            node = at.get((name, sub.start_offset // INSTRUCTION_BYTES))
            if node is not None:
                named.setdefault(sub.name, node)
    return _Places(starts=tuple(starts), at=at, named=named)


def _list_sites(graphs: Mapping[str, FlowGraph], places: _Places) -> list[CallEdge]:
    """The calls whose instruction is known, by caller and address."""
    found = []
    for function, graph in graphs.items():
        for site in graph.calls:
            procedure = graph.procedures[graph.procedure_of_block[graph.block_of_instruction[site.instruction]]]
            caller = places.at[function, procedure.start_offset // INSTRUCTION_BYTES]
            found.append(_describe_site(caller, graph, site, places))
    return sorted(found, key=lambda edge: (edge.caller, edge.pc_offset or 0))


def _describe_site(caller: int, graph: FlowGraph, site: CallSite, places: _Places) -> CallEdge:
    if site.callee_procedure is not None:
        procedure = graph.procedures[site.callee_procedure]
        callee: int | None = places.at[graph.function, procedure.start_offset // INSTRUCTION_BYTES]
        name: str | None = procedure.name
    else:
        name = site.symbol
        callee = places.named.get(name) if name is not None else None
    if site.symbol is not None:
        kind = CallKind.SYMBOL
    else:
        kind = CallKind.INDIRECT if site.is_indirect else CallKind.DIRECT
    return CallEdge(
        caller=caller,
        callee=callee,
        callee_name=name,
        pc_offset=site.instruction * INSTRUCTION_BYTES,
        kind=kind,
        is_outside_module=name is not None and callee is None,
        is_tail=site.is_tail,
    )


def _list_declared(cubin: Cubin, sites: Sequence[CallEdge], places: _Places) -> list[CallEdge]:
    """The calls of ``.nv.callgraph`` that no known call site of the caller's section accounts for."""
    known = {(places.starts[edge.caller][0], edge.callee_name) for edge in sites}
    found = []
    for caller_name, callee_name in dict.fromkeys(cubin.calls):
        caller = places.named.get(caller_name)
        if caller is None or (places.starts[caller][0], callee_name) in known:
            continue
        callee = places.named.get(callee_name)
        found.append(
            CallEdge(
                caller=caller,
                callee=callee,
                callee_name=callee_name,
                pc_offset=None,
                kind=CallKind.DECLARED,
                is_outside_module=callee is None,
                is_tail=False,
            )
        )
    return found


def _list_pointer_calls(cubin: Cubin, places: _Places) -> tuple[PointerCalls, ...]:
    return tuple(
        PointerCalls(
            callers=tuple(sorted({places.named[name] for name in calls.callers if name in places.named})),
            callees=tuple(sorted({places.named[name] for name in calls.callees if name in places.named})),
        )
        for calls in cubin.indirect_calls
    )


def _find_recursions(
    node_count: int, edges: Sequence[CallEdge], pointer_calls: Sequence[PointerCalls]
) -> list[Recursion]:
    """Pointer calls of one prototype pass through one extra node, so that callers × callees is not multiplied out."""
    successors: list[list[int]] = [[] for _ in range(node_count)]
    for edge in edges:
        if edge.callee is not None:
            successors[edge.caller].append(edge.callee)
    certain = find_cyclic_nodes(successors)
    for number, calls in enumerate(pointer_calls):
        successors.append(list(calls.callees))
        for caller in calls.callers:
            successors[caller].append(node_count + number)
    possible = find_cyclic_nodes(successors)
    return [
        Recursion.CERTAIN if certain[node] else Recursion.POSSIBLE if possible[node] else Recursion.NONE
        for node in range(node_count)
    ]
