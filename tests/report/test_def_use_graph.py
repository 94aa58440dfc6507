"""The graph of causes: samples are conserved, words are those of the heaviest reason, parts are cut out around lines."""

import networkx as nx
import pytest

from gpa_lsp.foundation.errors import InputError
from gpa_lsp.report.pairs import build_def_use_graph, cut_around
from tests.conftest import ROOT
from tests.report.test_pairs import BLAME, LISTING
from tests.report_builder import build_kernel


def test_samples_are_conserved() -> None:
    from gpa_lsp import api

    for kernel in api.load(ROOT / "fixtures" / "example.gpa-profile.json").kernels:
        graph = build_def_use_graph(kernel)
        assert sum(known["samples"] for _, known in graph.nodes(data=True)) == kernel.total_samples
        for row, known in graph.nodes(data=True):
            arrived = sum(edge["samples"] for _, _, edge in graph.in_edges(row, data=True))
            assert arrived + known["own_samples"] + known["unattributed_samples"] == pytest.approx(known["samples"])
            left = sum(edge["samples"] for _, _, edge in graph.out_edges(row, data=True))
            assert left == pytest.approx(known["caused_samples"])
            assert sum(known["by_reason"].values()) == known["samples"]


def test_an_edge_leads_from_the_cause_to_who_waits() -> None:
    graph = build_def_use_graph(build_kernel(LISTING, blame=BLAME))
    assert isinstance(graph, nx.DiGraph) and graph.graph["unit"] == "samples"
    assert set(graph.edges) == {(0, 2), (1, 2), (2, 3), (3, 4), (4, 5)}
    shared = graph.edges[0, 2]
    assert (shared["samples"], shared["latency_samples"], shared["is_shared"]) == (40, 30, True)
    assert (shared["category"], shared["dependency"], shared["resource"]) == ("memory_global", "read_after_write", "R2")
    assert (shared["distance_cycles"], shared["distance_instructions"]) == (8, 2)
    assert graph.edges[2, 3]["dependency"] == "guard" and not graph.edges[2, 3]["is_shared"]
    assert "resource" not in graph.edges[3, 4], "what is not known is absent"
    assert graph.nodes[2]["unattributed_samples"] == 2 and graph.nodes[2]["line"] == 5
    assert "line" not in graph.nodes[4]


def test_a_part_around_a_line() -> None:
    graph = build_def_use_graph(build_kernel(LISTING, blame=BLAME))
    assert set(cut_around(graph, [("k.cu", 3)], 0)) == {0}
    assert set(cut_around(graph, [(None, 3)], 1)) == {0, 2}
    assert set(cut_around(graph, [(None, 3)], 2)) == {0, 1, 2, 3}
    with pytest.raises(InputError, match=r"m\.cu:3"):
        cut_around(graph, [("m.cu", 3)], 2)


def test_a_kernel_that_was_not_sampled_has_none() -> None:
    with pytest.raises(InputError, match="no def-use graph"):
        build_def_use_graph(build_kernel(LISTING))
