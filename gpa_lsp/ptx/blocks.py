"""Basic blocks of a PTX function: control flow, in which order to run, which registers live."""

from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.basis.shared_facts import Remembered
from gpa_lsp.ptx.block_order import rank_blocks
from gpa_lsp.ptx.liveness import find_live_in
from gpa_lsp.ptx.model import PtxFunction, PtxInstruction

_ENDING = frozenset({"ret", "exit"})
_STOPPING = frozenset({"trap"})
_JUMPING = frozenset({"bra", "brx"})


@dataclass(frozen=True, slots=True, kw_only=True)
class PtxBlocks:
    """Basic blocks of a function, in order of the text; b blocks.

    A call, a barrier or an instruction with a guard does not end a block; branches, returns, exits and traps do, with a guard too.

    Attributes:
        first: index of each block's first instruction.
        last: its last one, included.
        successors: blocks that can follow, those jumped to first, each once; what ends the function is none.
        ranks: an order to run blocks in, lower first: a loop's blocks follow its header without a gap, and what comes after it has a higher
            rank; so do the two sides of a branch before the block where they meet. Blocks that are never reached come last.
        live_in: register slots that may be read before they are written, from the block's start, ascending.
        block_of: instruction → block.
    """

    first: tuple[int, ...]
    last: tuple[int, ...]
    successors: tuple[tuple[int, ...], ...]
    ranks: tuple[int, ...]
    live_in: tuple[tuple[int, ...], ...]
    block_of: tuple[int, ...]


@Remembered
def find_blocks(function: PtxFunction) -> PtxBlocks:
    """The basic blocks of a function; none for one without instructions.

    >>> from gpa_lsp.ptx.parse import parse_ptx
    >>> text = '''.version 8.0 .target sm_80 .address_size 64
    ... .entry k() { .reg .pred %p<2>; .reg .b32 %r<3>; @%p1 bra DONE; mov.u32 %r1, %r2; DONE: ret; }'''
    >>> blocks = find_blocks(parse_ptx(text, name="k").functions["k"])
    >>> blocks.first, blocks.successors, blocks.live_in
    ((0, 1, 2), ((2, 1), (2,), ()), ((0, 2), (2,), ()))
    """
    instructions = function.instructions
    first = _find_starts(instructions)
    last = [start - 1 for start in first[1:]] + ([len(instructions) - 1] if first else [])
    block_of = [0] * len(instructions)
    for block, start in enumerate(first):
        block_of[start : last[block] + 1] = [block] * (last[block] + 1 - start)
    successors = tuple(_find_successors(instructions[index], block_of) for index in last)
    return PtxBlocks(
        first=tuple(first),
        last=tuple(last),
        successors=successors,
        ranks=rank_blocks(successors),
        live_in=find_live_in(instructions, first, last, successors),
        block_of=tuple(block_of),
    )


def _find_starts(instructions: tuple[PtxInstruction, ...]) -> list[int]:
    starts = {0} if instructions else set()
    for instruction in instructions:
        if instruction.opcode in _JUMPING or instruction.opcode in _ENDING or instruction.opcode in _STOPPING:
            starts.add(instruction.index + 1)
            starts.update(instruction.targets)
            if instruction.target is not None:
                starts.add(instruction.target)
    starts.discard(len(instructions))
    return sorted(starts)


def _find_successors(instruction: PtxInstruction, block_of: list[int]) -> tuple[int, ...]:
    opcode = instruction.opcode
    jumped = instruction.targets if instruction.target is None else (instruction.target,)
    found = dict.fromkeys(block_of[target] for target in jumped)
    falls_through = instruction.guard is not None or opcode not in _JUMPING | _ENDING | _STOPPING
    if falls_through and instruction.index + 1 < len(block_of):
        found[block_of[instruction.index + 1]] = None
    return tuple(found)
