"""The blamed def-use graph of a kernel as networkx has it: instructions, and which of them makes which wait.

An edge leads from the cause (def) to the instruction that was stalled (use), as in GPA, section IV and Figure 4. Samples are conserved: those
that arrive at an instruction over its edges, its own and its unattributed ones are the samples that were taken there.
"""

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from gpa_lsp.code.binary.model import name_resource
from gpa_lsp.diagnosis.blame.model import BlameCategory, BlameEdges, Dependency
from gpa_lsp.foundation.errors import InputError
from gpa_lsp.foundation.locations import is_path_end, write_place
from gpa_lsp.foundation.ownership import choose_frame
from gpa_lsp.report.model import InstructionColumns, KernelReport

if TYPE_CHECKING:
    import networkx as nx


def build_def_use_graph(kernel: KernelReport) -> "nx.DiGraph[int]":
    """The instructions of a kernel that were sampled or blamed, and who makes whom wait.

    Nodes are rows of ``kernel.instructions``; what is not known is absent. A node has ``function``, ``pc_offset`` (bytes), ``text`` (SASS),
    ``samples``, ``by_reason`` (stall reason → samples), ``own_samples`` (its own matter), ``unattributed_samples``, ``caused_samples`` (of others,
    blamed on it), ``file``, ``line`` (1-based, innermost frame) and ``executions`` (of warps, all launches). An edge has ``samples``,
    ``latency_samples`` (without issue), ``by_reason``, ``category`` and ``dependency`` of its heaviest reason, ``is_shared`` (several causes were
    waited for together: the split is a convention), ``resource`` (register), ``distance_instructions`` and ``distance_cycles``.

    Args:
        kernel: of a report.

    Returns:
        A graph whose attributes are ``kernel``, ``mangled_name``, ``unit`` ("samples") and ``total_samples``.

    Raises:
        InputError: nothing was blamed: the kernel has no samples, or its code is not in the report.
    """
    blame = kernel.blame
    if blame is None:
        raise InputError(
            f"{kernel.name} has no def-use graph: it has no samples, or no causes were found",
            remedy="give a report with sampled stalls and its code",
        )
    import networkx as nx  # as slow to import as numpy

    columns, edges = kernel.instructions, blame.edges
    graph: nx.DiGraph[int] = nx.DiGraph(
        kernel=kernel.name, mangled_name=kernel.mangled_name, unit="samples", total_samples=kernel.total_samples
    )
    count = len(columns)
    moved = edges.is_moved
    own = np.bincount(edges.use_row[~moved], edges.all_samples[~moved], count)
    caused = np.bincount(edges.def_row[moved], edges.all_samples[moved], count)
    lost = np.bincount(blame.unattributed.row, blame.unattributed.all_samples, count)
    sampled = columns.all_samples.sum(axis=1)
    for row in np.flatnonzero((sampled > 0) | (caused > 0)).tolist():
        known = _describe_instruction(columns, row)
        graph.add_node(
            row,
            **known,
            samples=int(sampled[row]),
            own_samples=float(own[row]),
            unattributed_samples=float(lost[row]),
            caused_samples=float(caused[row]),
        )
    _add_edges(graph, edges, columns.reasons)
    return graph


def cut_around(graph: "nx.DiGraph[int]", lines: Collection[tuple[str | None, int]], steps: int) -> "nx.DiGraph[int]":
    """The part of a graph around source lines: their instructions, and what can be reached in some steps along or against edges.

    Args:
        graph: of :func:`build_def_use_graph`.
        lines: file (any end of its path; None for every file) and 1-based line.
        steps: at least 0.

    Raises:
        InputError: no instruction of the graph is of these lines.
    """
    import networkx as nx

    near = {
        row
        for row, known in graph.nodes(data=True)
        for file, line in lines
        if known.get("line") == line and (file is None or is_path_end(known["file"], file))
    }
    if not near:
        raise InputError(
            f"no sampled instruction of {graph.graph['kernel']} is of "
            + ", ".join(write_place(file or "line", line) for file, line in lines),
            remedy="lines are those that were measured; gpa-lsp check lists the hot ones",
        )
    found = set(near)
    for _ in range(steps):
        near = {other for row in near for other in (*graph.successors(row), *graph.predecessors(row))} - found
        found |= near
    return nx.DiGraph(graph.subgraph(found))


def _describe_instruction(columns: InstructionColumns, row: int) -> dict[str, Any]:
    known: dict[str, Any] = {
        "function": columns.functions[columns.function_index[row]],
        "pc_offset": int(columns.pc_offsets[row]),
        "text": columns.texts[row],
        "by_reason": _count_reasons(columns.reasons, columns.all_samples[row].tolist()),
    }
    chain = int(columns.chain_index[row])
    if chain >= 0:
        frame = choose_frame(columns.chains[chain])
        known |= {"file": frame.file, "line": frame.line}
    executions = int(columns.executions[row])
    if executions >= 0:
        known["executions"] = executions
    return known


def _count_reasons(reasons: tuple[str, ...], samples: list[int]) -> Mapping[str, int]:
    return {reason: count for reason, count in zip(reasons, samples, strict=True) if count}


def _add_edges(graph: "nx.DiGraph[int]", edges: BlameEdges, reasons: tuple[str, ...]) -> None:
    """One edge for a pair of instructions, whatever the number of reasons; its words are those of the heaviest."""
    moved = np.flatnonzero(edges.is_moved)
    groups, sizes = np.unique(edges.group, return_counts=True)
    size_of = dict(zip(groups.tolist(), sizes.tolist(), strict=True))
    for edge in moved[np.argsort(-edges.all_samples[moved], kind="stable")].tolist():
        pair = int(edges.def_row[edge]), int(edges.use_row[edge])
        samples, reason = float(edges.all_samples[edge]), reasons[edges.reason[edge]]
        latency = None if edges.latency_samples is None else float(edges.latency_samples[edge])
        if graph.has_edge(*pair):
            known = graph.edges[pair]
            known["samples"] += samples
            known["by_reason"][reason] = known["by_reason"].get(reason, 0.0) + samples
            if latency is not None:
                known["latency_samples"] += latency
            continue
        known = {
            "samples": samples,
            "by_reason": {reason: samples},
            "category": BlameCategory(edges.category[edge]).name.lower(),
            "dependency": Dependency(edges.dependency[edge]).name.lower(),
            "is_shared": size_of[int(edges.group[edge])] > 1,
        }
        if latency is not None:
            known["latency_samples"] = latency
        if edges.resource[edge] >= 0:
            known["resource"] = name_resource(int(edges.resource[edge]))
        for name, distance in (
            ("distance_instructions", edges.distance_instructions[edge]),
            ("distance_cycles", edges.distance_cycles[edge]),
        ):
            if distance >= 0:
                known[name] = int(distance)
        graph.add_edge(*pair, **known)
