"""Graphs as files: other programs read back what was written, whatever names hold."""

import json
import re
from io import BytesIO

import networkx as nx
import pytest
from msgspec.structs import replace

from gpa_lsp.document.graph_files import GRAPH_FORMATS, write_graph
from gpa_lsp.report.model import KernelReport
from gpa_lsp.report.pairs import build_def_use_graph
from tests.hostile_names import EVERYTHING, find_unseen
from tests.report.test_pairs import BLAME, LISTING
from tests.report_builder import build_kernel


@pytest.fixture
def kernel() -> KernelReport:
    return build_kernel(LISTING, blame=BLAME)


def test_json_is_read_back_by_networkx(kernel: KernelReport) -> None:
    graph = build_def_use_graph(kernel)
    again = nx.node_link_graph(json.loads(write_graph(graph, "json")), edges="edges")
    assert nx.utils.graphs_equal(again, graph)


def test_graphml_is_read_back_by_networkx(kernel: KernelReport) -> None:
    graph = build_def_use_graph(kernel)
    again = nx.read_graphml(BytesIO(write_graph(graph, "graphml").encode()), node_type=int)
    assert set(again.edges) == set(graph.edges)
    assert again.nodes[2]["by_reason"] == "long_scoreboard: 60, wait: 6" and again.edges[0, 2]["samples"] == 40


def test_dot_names_instructions_lines_and_reasons(kernel: KernelReport) -> None:
    text = write_graph(build_def_use_graph(kernel), "dot")
    assert text.startswith("digraph ") and text.endswith("}\n")
    assert re.search(
        r'n2 \[label="0x20  FADD R2, R2, R3\\nk\.cu:5\\n66 samples \(\d+ %\)", fillcolor=mistyrose\];', text
    )
    assert re.search(r'n0 -> n2 \[label="\d+ % long_scoreboard\\nR2", penwidth=6\];', text)


@pytest.mark.parametrize("form", GRAPH_FORMATS)
@pytest.mark.parametrize("name", EVERYTHING)
def test_names_are_text(kernel: KernelReport, form: str, name: str) -> None:
    hostile = replace(
        kernel,
        name=name,
        instructions=replace(kernel.instructions, texts=(name, *kernel.instructions.texts[1:])),
    )
    text = write_graph(build_def_use_graph(hostile), form)
    text.encode("utf-8")
    assert find_unseen(text) == []
    if form == "json":
        assert len(json.loads(text)["nodes"]) == 7
    elif form == "graphml":
        assert len(nx.read_graphml(BytesIO(text.encode())).nodes) == 7
    else:
        strings = re.sub(r'"(?:[^"\\]|\\.)*"', "", text)
        assert '"' not in strings and "script" not in strings
