"""Dominators of a block, read off the tree of immediate ones."""

from collections.abc import Iterator

from gpa_lsp.code.control_flow.model import FlowGraph


def list_dominators(graph: FlowGraph, block: int) -> Iterator[int]:
    """The blocks on every path from an entry to a block: itself first, then outwards. Nothing for an unreachable block."""
    while block >= 0 and graph.is_reachable[block]:
        yield block
        block = int(graph.immediate_dominator[block])
