"""What an emulated program did wrong, as an answer."""

import re

from gpa_lsp.analyses.answers import Answer, Column, Finding, Table, Weight
from gpa_lsp.basis.locations import InlineChain
from gpa_lsp.basis.numbers import Quantity
from gpa_lsp.emulator.model import Fault, FaultKind
from gpa_lsp.emulator.trace import StaticInstruction

NAME = "faults"
_TITLE = "What the run showed (emulated)"

ENDINGS = frozenset(
    {
        FaultKind.TIME_BUDGET,
        FaultKind.INSTRUCTION_BUDGET,
        FaultKind.MEMORY_BUDGET,
        FaultKind.TRACE_BUDGET,
        FaultKind.UNSUPPORTED,
    }
)
"""Kinds that say where the emulator ended, and nothing against the program."""

REMEDIES = {
    FaultKind.OUT_OF_BOUNDS: "guard the access, or correct the size of the array in the launch description",
    FaultKind.MISALIGNED: "align the address to the size of the access, or read narrower elements",
    FaultKind.SHARED_RACE: "put __syncthreads() between the two accesses",
    FaultKind.WARP_RACE: "put __syncwarp() between the two accesses",
    FaultKind.GLOBAL_RACE: "use atomics, or give each block elements of its own",
    FaultKind.DIVERGENT_BARRIER: "move the barrier out of the branch, so that all threads of the block reach it",
    FaultKind.UNINITIALISED: "write the shared memory before it is read",
    FaultKind.DIVISION_BY_ZERO: "guard the division",
    FaultKind.DEADLOCK: "let every thread that others wait for reach the barrier or set the flag",
    FaultKind.TIME_BUDGET: "give a smaller launch, fewer blocks or more time",
    FaultKind.INSTRUCTION_BUDGET: "give a smaller launch, fewer blocks or a larger budget",
    FaultKind.MEMORY_BUDGET: "give smaller arrays, fewer blocks or more memory",
    FaultKind.TRACE_BUDGET: "trace fewer blocks, or give more memory or time",
    FaultKind.CALL_DEPTH: "end the recursion earlier",
    FaultKind.BAD_LAUNCH: "correct the launch description",
}
"""What to do about each kind, where something is to be done."""


_NO_RACES = "Races were not looked for"
_UNWATCHED = re.compile(r"mbarrier\b|(bar|barrier)\.(\w+\.)*arrive\b")
"""Opcodes of kernels whose synchronisation the checks for races know nothing of; see ``find_unit_bytes`` of the emulator."""


def explain_unchecked_races(instructions: tuple[StaticInstruction, ...], *, checks_races: bool) -> str:
    """Why races were not looked for, as a sentence; empty where they were.

    Args:
        instructions: of the kernel and all it calls.
        checks_races: the setting.

    >>> explain_unchecked_races((), checks_races=True), explain_unchecked_races((), checks_races=False)
    ('', 'Races were not looked for.')
    """
    if not checks_races:
        return f"{_NO_RACES}."
    if any(_UNWATCHED.match(one.text) for one in instructions):
        return f"{_NO_RACES}: the kernel synchronises by mbarrier or by arriving at barriers, which the checks do not follow."
    return ""


def answer_faults(faults: tuple[Fault, ...], *, unchecked_races: str = "") -> Answer:
    """One finding per fault, those of the program before those of the emulator.

    Args:
        faults: that were found.
        unchecked_races: of :func:`explain_unchecked_races`.
    """
    own = [fault for fault in faults if fault.kind not in ENDINGS]
    if not faults:
        seen = "misplaced barrier" if unchecked_races else "race or misplaced barrier"
        summary = f"Every access stayed in bounds and aligned, and no {seen} was seen in what was executed."
        return Answer(analysis=NAME, title=_TITLE, summary=f"{summary} {unchecked_races}".rstrip())
    ordered = [*own, *(fault for fault in faults if fault.kind in ENDINGS)]
    if not own:
        summary = "Nothing was seen to go wrong, but not all of the chosen blocks ran to their end."
    else:
        summary = f"{len(own)} fault{'' if len(own) == 1 else 's'} of the program in what was executed."
    return Answer(
        analysis=NAME,
        title=_TITLE,
        summary=f"{summary} {unchecked_races}".rstrip(),
        findings=tuple(_describe(fault) for fault in ordered),
        tables=(_tabulate(ordered),),
    )


def _describe(fault: Fault) -> Finding:
    where = f" ({name_place(fault.chain)})" if fault.chain else ""
    weight = Weight.PLAIN if fault.kind in ENDINGS else Weight.HIGH
    text = f"{fault.kind.value.capitalize()}{where}: {fault.message}"
    return Finding(text=text, weight=weight, remedy=REMEDIES.get(fault.kind, ""))


def _tabulate(faults: list[Fault]) -> Table:
    rows = tuple(
        (
            fault.kind.value,
            name_place(fault.chain),
            name_place(fault.other_chain),
            fault.count,
            None if fault.block is None else str(fault.block),
            None if fault.thread is None else ", ".join(str(part) for part in fault.thread),
        )
        for fault in faults
    )
    columns = (
        Column(name="what"),
        Column(name="line"),
        Column(name="the other access"),
        Column(name="times", quantity=Quantity.COUNT),
        Column(name="first block"),
        Column(name="first thread"),
    )
    return Table(title="Faults", columns=columns, rows=rows)


def name_place(chain: InlineChain | None) -> str:
    """``file.cu:12``, without folders; empty where nothing is known.

    >>> from gpa_lsp.basis.locations import Frame
    >>> name_place((Frame(file="/a/b.cu", line=3),))
    'b.cu:3'
    """
    if not chain:
        return ""
    frame = chain[0]
    return f"{frame.file.replace(chr(92), '/').rpartition('/')[2]}:{frame.line}"
