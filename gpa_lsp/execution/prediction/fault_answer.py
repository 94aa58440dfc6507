"""What an emulated program did wrong, as an answer."""

import re

from gpa_lsp.code.ptx.static_instructions import StaticInstruction
from gpa_lsp.diagnosis.analyses.answers import Answer, Column, Finding, Table, Weight
from gpa_lsp.execution.emulator.model import Fault, FaultKind
from gpa_lsp.foundation.locations import InlineChain
from gpa_lsp.foundation.numbers import Quantity
from gpa_lsp.foundation.ownership import choose_frame
from gpa_lsp.foundation.prose import NOTHING, Code, Place, Sentence, count, join, say

NAME = "faults"
_TITLE = "What the run showed (emulated)"

# Kinds that say where the emulator ended, not that the program is wrong
ENDINGS = frozenset(
    {
        FaultKind.TIME_BUDGET,
        FaultKind.INSTRUCTION_BUDGET,
        FaultKind.MEMORY_BUDGET,
        FaultKind.TRACE_BUDGET,
        FaultKind.UNSUPPORTED,
    }
)

# What to do about each kind, where something is to be done
REMEDIES = {
    FaultKind.OUT_OF_BOUNDS: say("Guard the access, or correct the size of the array in the launch description."),
    FaultKind.MISALIGNED: say("Align the address to the size of the access, or access narrower elements."),
    FaultKind.SHARED_RACE: say("Put {barrier} between the two accesses.", barrier=Code(text="__syncthreads()")),
    FaultKind.WARP_RACE: say("Put {barrier} between the two accesses.", barrier=Code(text="__syncwarp()")),
    FaultKind.GLOBAL_RACE: say("Use atomics, or give each block elements of its own."),
    FaultKind.DIVERGENT_BARRIER: say("Move the barrier out of the branch, so that all threads of the block reach it."),
    FaultKind.UNINITIALISED: say("Initialize the shared memory before reading it."),
    FaultKind.DIVISION_BY_ZERO: say("Guard the division."),
    FaultKind.DEADLOCK: say("Let every thread that others wait for reach the barrier or set the flag."),
    FaultKind.TIME_BUDGET: say("Give a smaller launch, fewer blocks or more time."),
    FaultKind.INSTRUCTION_BUDGET: say("Give a smaller launch, fewer blocks or a larger budget."),
    FaultKind.MEMORY_BUDGET: say("Give smaller arrays, fewer blocks or more memory."),
    FaultKind.TRACE_BUDGET: say("Trace fewer blocks, or give more memory or time."),
    FaultKind.CALL_DEPTH: say("End the recursion earlier."),
    FaultKind.BAD_LAUNCH: say("Correct the launch description."),
}


# Opcodes of kernels whose synchronisation the race checks do not follow; see ``find_unit_bytes`` of the emulator
_UNWATCHED = re.compile(r"mbarrier\b|(bar|barrier)\.(\w+\.)*arrive\b")


def explain_unchecked_races(instructions: tuple[StaticInstruction, ...], *, checks_races: bool) -> Sentence:
    """Why races were not checked, as a sentence; empty where they were.

    >>> explain_unchecked_races((), checks_races=True), explain_unchecked_races((), checks_races=False)
    ('', 'Races were not checked.')
    """
    if not checks_races:
        return say("Races were not checked.")
    if any(_UNWATCHED.match(one.text) for one in instructions):
        return say(
            "Races were not checked: the kernel synchronises through {mbarrier} or barrier arrivals, which the checks do not follow.",
            mbarrier=Code(text="mbarrier"),
        )
    return NOTHING


def answer_faults(
    faults: tuple[Fault, ...], *, unchecked_races: Sentence = NOTHING, is_beyond_guesses: bool = False
) -> Answer:
    """One finding per fault, those of the program before those of the emulator.

    Args:
        unchecked_races: of :func:`explain_unchecked_races`.
    """
    own = [fault for fault in faults if fault.kind not in ENDINGS]
    if is_beyond_guesses and not own:
        summary = say("No fault of the program was seen that guesses about the launch do not explain.")
    elif all(fault.kind is FaultKind.TRACE_BUDGET for fault in faults):  # what is not traced is checked all the same
        seen = "misplaced barrier" if unchecked_races else "race or misplaced barrier"
        summary = say("Every executed access was in bounds and aligned, and no {seen} was seen.", seen=seen)
    elif not own:
        summary = say("No faults so far; emulation stopped before all blocks finished.")
    else:
        summary = say("{faults} of the program in what was executed.", faults=count(len(own), "fault"))
    ordered = [*own, *(fault for fault in faults if fault.kind in ENDINGS)]
    return Answer(
        analysis=NAME,
        title=_TITLE,
        summary=join((summary, unchecked_races)),
        findings=tuple(_describe(fault) for fault in ordered),
        tables=(_tabulate(own),) if own else (),
    )


def _describe(fault: Fault) -> Finding:
    where = NOTHING
    if fault.chain:
        frame = choose_frame(fault.chain)
        where = say(" at {place}", place=Place(file=frame.file, line=frame.line, shown_file=_name_file(frame.file)))
    weight = Weight.PLAIN if fault.kind in ENDINGS else Weight.HIGH
    more = fault.instructions - 1
    text = say(
        "{kind}{where}: {message}{more}.",
        kind=f"{fault.kind.value[0].upper()}{fault.kind.value[1:]}",
        where=where,
        message=fault.message.rstrip("."),
        more=say("; so do {more} of the line", more=count(more, "more instruction")) if more else NOTHING,
    )
    return Finding(text=text, weight=weight, remedy=REMEDIES.get(fault.kind, NOTHING))


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

    >>> from gpa_lsp.foundation.locations import Frame
    >>> name_place((Frame(file="/a/b.cu", line=3),))
    'b.cu:3'
    """
    if not chain:
        return ""
    frame = choose_frame(chain)
    return f"{_name_file(frame.file)}:{frame.line}"


def _name_file(file: str) -> str:
    return file.replace("\\", "/").rpartition("/")[2]
