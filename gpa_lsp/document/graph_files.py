"""A def-use graph as files that other programs read: DOT for Graphviz, GraphML for Gephi, yEd and Cytoscape, JSON for networkx and D3."""

import json
from collections.abc import Iterator, Mapping
from io import BytesIO
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from gpa_lsp.foundation.locations import write_place
from gpa_lsp.foundation.numbers import format_count_of, format_file_value, format_percent
from gpa_lsp.foundation.visible_text import make_values_visible, make_visible

if TYPE_CHECKING:
    import networkx as nx

GRAPH_FORMATS = ("dot", "graphml", "json")

_HOT_SHARE = 0.05  # Of the kernel's samples; instructions with more stand out in a picture

_LEAST_PEN, _MOST_PEN = 0.5, 6.0


def write_graph(graph: "nx.DiGraph[int]", form: str) -> str:
    """A def-use graph in one of :data:`GRAPH_FORMATS`.

    Args:
        graph: of :func:`gpa_lsp.report.pairs.build_def_use_graph`.
        form: one of the formats. GraphML knows no mappings: samples by reason are one text there. DOT holds what a picture shows.
    """
    if form == "dot":
        return "".join(line + "\n" for line in _write_dot(graph))
    import networkx as nx

    if form == "graphml":
        written = BytesIO()
        nx.write_graphml(_flatten(graph), written)
        return written.getvalue().decode("utf-8") + "\n"
    document = nx.node_link_data(graph, edges="edges")
    return json.dumps(make_values_visible(document), indent=1) + "\n"


def _flatten(graph: "nx.DiGraph[int]") -> "nx.DiGraph[int]":
    import networkx as nx

    flat: nx.DiGraph[int] = nx.DiGraph(**_make_scalar(graph.graph))
    flat.add_nodes_from((row, _make_scalar(known)) for row, known in graph.nodes(data=True))
    flat.add_edges_from((cause, victim, _make_scalar(known)) for cause, victim, known in graph.edges(data=True))
    return flat


def _make_scalar(known: Mapping[str, Any]) -> dict[str, Any]:
    """Attributes for GraphML: texts without characters that XML cannot hold, mappings written out."""
    return {
        name: _write_counts(value)
        if isinstance(value, Mapping)
        else make_visible(value)
        if isinstance(value, str)
        else value
        for name, value in known.items()
    }


def _write_counts(counts: Mapping[str, float]) -> str:
    return make_visible(", ".join(f"{reason}: {format_file_value(count)}" for reason, count in counts.items()))


def _write_dot(graph: "nx.DiGraph[int]") -> Iterator[str]:
    total = max(1, graph.graph["total_samples"])
    most = max((known["samples"] for _, _, known in graph.edges(data=True)), default=1.0) or 1.0
    yield f"digraph {_quote(graph.graph['kernel'])} {{"
    yield '  node [shape=box, fontname="monospace", style=filled, fillcolor=white];'
    yield '  edge [fontname="sans-serif"];'
    for row, known in graph.nodes(data=True):
        share = known["samples"] / total
        lines = [f"0x{known['pc_offset']:x}  {known['text']}"]
        if "line" in known:
            lines.append(write_place(PurePosixPath(known["file"].replace("\\", "/")).name, known["line"]))
        lines.append(f"{format_count_of(known['samples'], 'sample')} ({format_percent(share)})")
        colour = ", fillcolor=mistyrose" if share >= _HOT_SHARE else ""
        yield f"  n{row} [label={_quote(*lines)}{colour}];"
    for cause, victim, known in graph.edges(data=True):
        reason = next(iter(known["by_reason"]))
        pen = _LEAST_PEN + (_MOST_PEN - _LEAST_PEN) * known["samples"] / most
        label = _quote(f"{format_percent(known['samples'] / total)} {reason}", known.get("resource", ""))
        yield f"  n{cause} -> n{victim} [label={label}, penwidth={format_file_value(pen)}];"
    yield "}"


def _quote(*lines: str) -> str:
    """Lines as one quoted DOT text, quotes and backslashes escaped."""
    written = (make_visible(line).replace("\\", "\\\\").replace('"', '\\"') for line in lines if line)
    return '"' + "\\n".join(written) + '"'
