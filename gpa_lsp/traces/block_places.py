"""The source lines of basic blocks: :func:`list_block_chains`."""

from gpa_lsp.basis.locations import InlineChain
from gpa_lsp.ptx.blocks import find_blocks
from gpa_lsp.ptx.model import PtxModule
from gpa_lsp.ptx.reachable import list_reachable


def list_block_chains(module: PtxModule, kernel: str) -> tuple[InlineChain | None, ...]:
    """For each basic block of a kernel and of what it can call, by the number it has in traces, the inline chain of its first instruction with one.

    Args:
        module: the code that was traced.
        kernel: mangled name.
    """
    chains: list[InlineChain | None] = []
    for function in list_reachable(module, kernel):
        blocks = find_blocks(function)
        for first, last in zip(blocks.first, blocks.last, strict=True):
            body = function.instructions[first : last + 1]
            chains.append(next((one.chain for one in body if one.chain is not None), None))
    return tuple(chains)
