"""The samples of a kernel by line and by what Starlight's Table 1 would count them as. Every sample counts once."""

from dataclasses import dataclass
from itertools import chain

import numpy as np
import numpy.typing as npt

from gpa_lsp.analyses.facts import KernelFacts
from gpa_lsp.analyses.starlight.suggestions import Bottleneck, Part, WaiterKind, classify_waiter, find_target
from gpa_lsp.kernel.model import FunctionSamples
from gpa_lsp.locations import SourceLine

_TARGETS: tuple[Bottleneck | Part, ...] = (*Part, *Bottleneck)
_KINDS = tuple(WaiterKind)


@dataclass(frozen=True, slots=True, kw_only=True)
class LineSamples:
    """The samples of one source line, or of one instruction that has none.

    Attributes:
        line: None for an instruction without a line.
        function: mangled name of the section of its instruction with most samples.
        is_own: that section is the kernel's own.
        pc_offset: that instruction, bytes from the section's start.
        operations: N_op.
        stalls: N by row of Table 1; rows without a sample are missing.
        unattributed: stalls that no row is about.
    """

    line: SourceLine | None
    function: str
    is_own: bool
    pc_offset: int
    operations: int
    stalls: dict[Bottleneck, int]
    unattributed: int

    @property
    def all_stalls(self) -> int:
        """N_stall."""
        return self.unattributed + sum(self.stalls.values())

    @property
    def samples(self) -> int:
        """N_op + N_stall."""
        return self.operations + self.all_stalls


def count_lines(facts: KernelFacts) -> tuple[LineSamples, ...]:
    """The sampled lines of a kernel (instructions where there is no line), most samples first; all its samples are in them."""
    samples = facts.all_samples
    rows = np.flatnonzero(samples.sum(axis=1)) if samples.size else np.zeros(0, dtype=np.int64)
    if not len(rows):
        return ()
    counted = _count_targets(facts, rows)
    groups: dict[SourceLine | int, list[int]] = {}
    for position, place in enumerate(_find_lines(facts, rows)):
        groups.setdefault(int(rows[position]) if place is None else place, []).append(position)
    lines = [_gather(facts, key, rows[positions], counted[positions]) for key, positions in groups.items()]
    return tuple(sorted(lines, key=lambda one: (-one.samples, one.function, one.pc_offset)))


def _count_targets(facts: KernelFacts, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """int64[m, t]: samples of each row by target."""
    kinds = np.concatenate([_classify(facts, function) for function in facts.kernel.functions])[rows]
    taken = facts.all_samples[rows]
    counted = np.zeros((len(rows), len(_TARGETS)), dtype=np.int64)
    for number, kind in enumerate(_KINDS):
        at = kinds == number
        for column, reason in enumerate(facts.kernel.reasons):
            counted[at, _TARGETS.index(find_target(reason, kind))] += taken[at, column]
    return counted


def _classify(facts: KernelFacts, function: FunctionSamples) -> npt.NDArray[np.int8]:
    """int8[n]: number of each instruction's kind."""
    instructions = function.instructions
    if instructions is None:
        return np.full(len(function.pc_offsets), _KINDS.index(WaiterKind.UNKNOWN), dtype=np.int8)
    numbers = [_KINDS.index(classify_waiter(facts.opcodes.get(name))) for name in instructions.mnemonics]
    return np.array(numbers, dtype=np.int8)[instructions.mnemonic_index]


def _find_lines(facts: KernelFacts, rows: npt.NDArray[np.int64]) -> list[SourceLine | None]:
    """The line of each row, innermost frame; None where the compiler gave none."""
    by_function = [_name_chains(function) for function in facts.kernel.functions]
    starts = np.concatenate([[0], np.cumsum([len(lines) for lines in by_function])])
    every = list(chain.from_iterable(by_function))
    owners = np.searchsorted(facts.first_rows, rows, side="right") - 1
    chains = np.concatenate([function.chain_index for function in facts.kernel.functions])[rows]
    # The last name of each function stands for "no line", which index -1 finds.
    places = np.where(chains < 0, starts[owners + 1] - 1, starts[owners] + chains)
    return [every[place] for place in places.tolist()]


def _name_chains(function: FunctionSamples) -> list[SourceLine | None]:
    chains = () if function.lines is None else function.lines.chains
    return [*(frames[0].source_line if frames[0].line > 0 else None for frames in chains), None]


def _gather(
    facts: KernelFacts, key: SourceLine | int, rows: npt.NDArray[np.int64], counted: npt.NDArray[np.int64]
) -> LineSamples:
    sums: list[int] = counted.sum(axis=0).tolist()
    by_target = dict(zip(_TARGETS, sums, strict=True))
    hottest = int(rows[int(counted.sum(axis=1).argmax())])
    function = facts.function_of(hottest)
    return LineSamples(
        line=None if isinstance(key, int) else key,
        function=function.name,
        is_own=function is facts.kernel.functions[0],
        pc_offset=int(function.pc_offsets[facts.index_of(hottest)]),
        operations=by_target[Part.OPERATION],
        stalls={row: by_target[row] for row in Bottleneck if by_target[row]},
        unattributed=by_target[Part.NONE],
    )
