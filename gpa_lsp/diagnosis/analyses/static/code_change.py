"""Effect of an edit on compiled code: two versions of a kernel, compared in words."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum

import numpy as np
from msgspec import Struct

from gpa_lsp.code.binary.opcodes import Access, MemorySpace
from gpa_lsp.diagnosis.analyses.static.model import KernelStatics
from gpa_lsp.foundation.prose import NOTHING, Code, Sentence, count, factor, join, list_of, number, percent, say, size
from gpa_lsp.kernel.dataflow.instruction_kinds import InstructionKind, find_kind
from gpa_lsp.kernel.dataflow.staged_copies import count_loads_in_flight
from gpa_lsp.kernel.dataflow.unrolling import find_unrolling
from gpa_lsp.kernel.model import KernelRows
from gpa_lsp.kernel.scopes import ScopeTree, find_scopes

_SPACES = frozenset({MemorySpace.GLOBAL, MemorySpace.GENERIC, MemorySpace.SHARED, MemorySpace.LOCAL})
_MOVES = frozenset({Access.LOAD, Access.STORE, Access.ATOMIC, Access.REDUCTION, Access.COPY})
# Instructions of low throughput that edits of the source add and take away
COSTLY_KINDS = (InstructionKind.FP64, InstructionKind.CONVERSION, InstructionKind.SPECIAL_FUNCTION)

_PADDING = "NOP"


class CodeFacts(Struct, frozen=True, kw_only=True):
    """A kernel as compiled, and the part of it that is looked at closely: a loop without the loops in it, or all of it."""

    statics: KernelStatics  # registers, spills, occupancy
    code: tuple[str, ...]  # of all instructions, as text; two kernels with the same do the same
    is_loop: bool  # the part is a loop
    instructions: int  # of the part, without padding
    copies: int | None  # iterations of the source's loop in one pass; 1 for a whole kernel, None where nothing tells
    loads_in_flight: int  # most loads from global memory at once, in the part
    accesses: Mapping[str, int]  # mnemonic → number of the part's instructions that move data to and from memory
    costly: Mapping[InstructionKind, int]  # kind → number of the part's instructions of low throughput


def find_code_facts(rows: KernelRows, statics: KernelStatics, *, file: str, lines: Sequence[int]) -> CodeFacts:
    """The facts of a kernel.

    Args:
        rows: of it.
        statics: of it.
        file: as compiled, which the lines are of.
        lines: where to look for the loop, the best one first; the whole kernel is looked at where none of them is in a loop.
    """
    scopes = find_scopes(rows)
    loop = _find_loop(rows, scopes, file, lines)
    part = np.arange(len(rows)) if loop is None else np.flatnonzero(scopes.innermost == loop)
    mnemonics = [(row, rows.mnemonic(row)) for row in part.tolist() if rows.mnemonic(row) != _PADDING]
    accesses = Counter(name for row, name in mnemonics if _is_access(rows, row))
    costly = Counter(kind for _, name in mnemonics if (kind := find_kind(name)) in COSTLY_KINDS)
    return CodeFacts(
        statics=statics,
        code=rows.texts,
        is_loop=loop is not None,
        instructions=len(mnemonics),
        copies=1 if loop is None else _count_copies(rows, loop),
        loads_in_flight=count_loads_in_flight(rows, part.tolist()),
        accesses=accesses,
        costly=costly,
    )


def _count_copies(rows: KernelRows, loop: int) -> int | None:
    found = find_unrolling(rows, loop)
    return found.copies if found.copies > 1 or found.repeats == 1 or found.counter_step is not None else None


def _is_access(rows: KernelRows, row: int) -> bool:
    opcode = rows.opcode(row)
    return opcode.memory in _SPACES and opcode.access in _MOVES


def _find_loop(rows: KernelRows, scopes: ScopeTree, file: str, lines: Sequence[int]) -> int | None:
    """The loop of the first line that has one; the largest where the compiler made several of it, as for a remainder."""
    for line in lines:
        own = {
            number
            for number in np.flatnonzero(scopes.is_loop).tolist()
            if (scopes.scopes[number].file, scopes.scopes[number].line) == (file, line)
        }
        inner = {scopes.loop_of(row) for row in range(len(rows)) if _is_of_line(rows, row, file, line)} - {-1}
        found = own or inner
        if found:
            sizes = {number: int((scopes.innermost == number).sum()) for number in found}
            return max(sizes, key=lambda number: (sizes[number], -number))
    return None


def _is_of_line(rows: KernelRows, row: int, file: str, line: int) -> bool:
    chain = rows.chain(row)
    return chain is not None and any(frame.file == file and frame.line == line for frame in chain)


_MOST_KINDS = 2
_MOST_IN_SHORT = 3
_KINDS = {
    InstructionKind.FP64: say("double precision"),
    InstructionKind.CONVERSION: say("conversions"),
    InstructionKind.SPECIAL_FUNCTION: say("special functions"),
}
_LEAST_MORE = 1.02  # From so many times the instructions on there are more of them


class Effect(Enum):
    """Effect of a difference."""

    GAIN = "gain"
    LOSS = "loss"
    PLAIN = "plain"  # Neither by itself


class Difference(Struct, frozen=True, kw_only=True):
    """One thing that is not as it was."""

    words: Sentence  # a clause: what it was → what it is
    effect: Effect = Effect.PLAIN  # what that is good for


class CodeChange(Struct, frozen=True, kw_only=True):
    """Differences between two versions of a kernel."""

    # those that a person weighs, in the order to be read; empty where the code is the same
    differences: tuple[Difference, ...]
    details: tuple[Sentence, ...] = ()  # more of them, sentences

    @property
    def has_losses(self) -> bool:
        """Whether anything became worse."""
        return any(one.effect is Effect.LOSS for one in self.differences)

    @property
    def is_worse(self) -> bool:
        """Whether something became worse, and nothing better."""
        return self.has_losses and all(one.effect is not Effect.GAIN for one in self.differences)

    @property
    def words(self) -> Sentence:
        """All differences as one clause, losses last."""
        return self._say(None)

    @property
    def short_words(self) -> Sentence:
        """The first differences as one clause, and all losses."""
        return self._say(_MOST_IN_SHORT)

    def _say(self, most: int | None) -> Sentence:
        losses = [one.words for one in self.differences if one.effect is Effect.LOSS]
        others = [one for one in self.differences if one.effect is not Effect.LOSS]
        kept = join((one.words for one in others[:most]), ", ")
        if not losses:
            return kept
        if self.is_worse:
            return say("worse: {all}", all=join([*losses, *(one.words for one in others[:most])], ", "))
        return say("{kept}, but {losses}", kept=kept, losses=join(losses, ", "))


def compare_code(before: CodeFacts, after: CodeFacts) -> CodeChange:
    """The differences between two versions of a kernel."""
    if before.code == after.code:
        return CodeChange(differences=())
    found = (*_compare_resources(before, after), *_compare_parts(before, after))
    if not found:
        found = (Difference(words=say("other instructions, as many as before")),)
    return CodeChange(differences=found, details=tuple(_list_details(before, after)))


def _compare_resources(before: CodeFacts, after: CodeFacts) -> Iterator[Difference]:
    old, new = before.statics, after.statics
    if old.registers != new.registers:
        words = say("{old} → {new}", old=count(old.registers), new=count(new.registers, "register"))
        yield Difference(words=words)
    if old.occupancy is not None and new.occupancy is not None:
        yield from _compare_occupancy(old.occupancy.ratio, new.occupancy.ratio, is_told=old.registers != new.registers)
    if old.spill_bytes != new.spill_bytes:
        effect = Effect.LOSS if new.spill_bytes > old.spill_bytes else Effect.GAIN
        words = say("{old} → {new} spilled", old=size(old.spill_bytes), new=size(new.spill_bytes))
        yield Difference(words=words, effect=effect)


def _compare_occupancy(old: float, new: float, *, is_told: bool) -> Iterator[Difference]:
    if old != new:
        effect = Effect.GAIN if new > old else Effect.LOSS
        yield Difference(words=say("occupancy {old} → {new}", old=percent(old), new=percent(new)), effect=effect)
    elif is_told:
        yield Difference(words=say("occupancy unchanged"))


def _compare_parts(before: CodeFacts, after: CodeFacts) -> Iterator[Difference]:
    if before.is_loop and not after.is_loop:
        yield Difference(words=say("the loop is gone, all its iterations are written out"), effect=Effect.GAIN)
        return
    old_loads, new_loads = before.loads_in_flight, after.loads_in_flight
    if old_loads != new_loads:
        effect = Effect.GAIN if new_loads > old_loads else Effect.LOSS
        words = say("loads in flight {old} → {new}", old=count(old_loads), new=count(new_loads))
        yield Difference(words=words, effect=effect)
    yield from _compare_instructions(before, after)
    yield from _compare_kinds(before, after)


def find_scale(before: CodeFacts, after: CodeFacts) -> float | None:
    """Ratio of source work that one pass through the part does, after to before; None where nothing tells.

    Where all accesses are there so many times, it is so many times the work. Else the copies of a loop's body tell.
    """
    old, new = before.accesses, after.accesses
    if old and old.keys() == new.keys():
        ratios = {new[name] / old[name] for name in old}
        if len(ratios) == 1:
            return ratios.pop()
    if before.copies is not None and after.copies is not None:
        return after.copies / before.copies
    return None


def _compare_instructions(before: CodeFacts, after: CodeFacts) -> Iterator[Difference]:
    old, new = before.instructions, after.instructions
    if old == new or before.is_loop != after.is_loop:
        return
    scale = find_scale(before, after)
    effect = Effect.PLAIN
    if scale is not None and new < old * scale:
        effect = Effect.GAIN
    elif scale is not None and new > old * scale * _LEAST_MORE and after.loads_in_flight <= before.loads_in_flight:
        effect = Effect.LOSS  # more in flight is worth an instruction or two
    yield Difference(words=_say_instructions(before, after, scale), effect=effect)


def _say_instructions(before: CodeFacts, after: CodeFacts, scale: float | None) -> Sentence:
    old, new = before.instructions, after.instructions
    if not before.is_loop:
        return say("{old} → {new}", old=count(old), new=count(new, "instruction"))
    if before.copies is not None and scale is not None and (before.copies, scale) != (1, 1.0):
        each = say("{new} per iteration", new=number(new / (before.copies * scale), "instruction"))
        return say("{old} → {each}", old=number(old / before.copies), each=each)
    return say("loop {old} → {new}{times}", old=count(old), new=count(new, "instruction"), times=_say_times(scale))


def _say_times(scale: float | None) -> Sentence:
    if scale is None or scale == 1.0:
        return NOTHING
    if scale > 1 and scale == int(scale):
        return say(" for {times} times the iterations", times=count(scale))
    if scale < 1 and 1 / scale == int(1 / scale):
        return say(" for 1/{part} of the iterations", part=count(1 / scale))
    return say(" for {times} the iterations", times=factor(scale))


def _compare_kinds(before: CodeFacts, after: CodeFacts) -> Iterator[Difference]:
    """Kinds of low throughput of which there are more or fewer for the same work."""
    scale = find_scale(before, after)
    changed = []
    for kind, name in _KINDS.items():
        old, new = before.costly.get(kind, 0), after.costly.get(kind, 0)
        is_told = scale == 1.0 or not old or not new
        if is_told and old != new:
            words = say("{name} {old} → {new}", name=name, old=count(old), new=count(new))
            changed.append((abs(new - old), Difference(words=words, effect=Effect.GAIN if new < old else Effect.LOSS)))
    changed.sort(key=lambda one: -one[0])
    yield from (one for _, one in changed[:_MOST_KINDS])


def _list_details(before: CodeFacts, after: CodeFacts) -> Iterator[Sentence]:
    if before.is_loop and after.is_loop:
        yield say("The loop has {old}, and would have {new}.", old=_say_pass(before), new=_say_pass(after))
    changed = [
        say("{name} {old} → {new}", name=Code(text=name), old=count(before.accesses.get(name, 0)), new=count(now))
        for name in sorted({*before.accesses, *after.accesses})
        if (now := after.accesses.get(name, 0)) != before.accesses.get(name, 0)
    ]
    if changed:
        where = "of the loop" if before.is_loop and after.is_loop else "of the kernel"
        yield say("Memory instructions {where}: {changed}.", where=where, changed=list_of(changed))


def _say_pass(facts: CodeFacts) -> Sentence:
    instructions = count(facts.instructions, "instruction")
    if facts.copies is None:
        return say("{instructions}", instructions=instructions)
    return say("{instructions} for {copies}", instructions=instructions, copies=count(facts.copies, "iteration"))
