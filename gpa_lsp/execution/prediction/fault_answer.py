"""Faults of an emulated program as an answer, and the guesses about its launch that results rest on and faults may come from."""

import re
from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from gpa_lsp.code.ptx.model import PtxFunction
from gpa_lsp.code.ptx.static_instructions import StaticInstruction
from gpa_lsp.diagnosis.analyses.answers import Answer, Finding, Table, Weight, list_columns
from gpa_lsp.execution.emulator.model import Fault, FaultKind
from gpa_lsp.execution.launches.launch import (
    ArrayArgument,
    LaunchDescription,
    ScalarArgument,
    list_arrays,
    list_passed,
    replace_arrays,
)
from gpa_lsp.execution.launches.pointer_uses import SHAPE, GuessDependence
from gpa_lsp.foundation.errors import Problem
from gpa_lsp.foundation.locations import InlineChain
from gpa_lsp.foundation.numbers import format_count
from gpa_lsp.foundation.ownership import choose_frame
from gpa_lsp.foundation.prose import NOTHING, Code, Place, Sentence, count, join, list_of, say

NAME = "faults"
_TITLE = "What the run showed (emulated)"

# Kinds that end the emulation, and are no faults of the program
ENDINGS = frozenset(
    {
        FaultKind.TIME_BUDGET,
        FaultKind.INSTRUCTION_BUDGET,
        FaultKind.MEMORY_BUDGET,
        FaultKind.TRACE_BUDGET,
        FaultKind.UNSUPPORTED,
    }
)

# Remedy for each kind that has one
REMEDIES = {
    FaultKind.OUT_OF_BOUNDS: say("Guard the access, or correct the size of the array in the launch description."),
    FaultKind.MISALIGNED: say("Align the address to the size of the access, or access narrower elements."),
    FaultKind.SHARED_RACE: say("Put {barrier} between the two accesses.", barrier=Code(text="__syncthreads()")),
    FaultKind.WARP_RACE: say("Put {barrier} between the two accesses.", barrier=Code(text="__syncwarp()")),
    FaultKind.CLUSTER_RACE: say("Put {barrier} between the two.", barrier=Code(text="cluster.sync()")),
    FaultKind.GLOBAL_RACE: say("Use atomics, or give each block elements of its own."),
    FaultKind.DIVERGENT_BARRIER: say("Move the barrier out of the branch, so that all threads of the block reach it."),
    FaultKind.UNINITIALISED: say("Initialize the shared memory before reading it."),
    FaultKind.DIVISION_BY_ZERO: say("Guard the division."),
    FaultKind.CLUSTER_BARRIER: say("Let each thread wait once behind each of its arrivals."),
    FaultKind.DEADLOCK: say("Let every thread that others wait for reach the barrier or set the flag."),
    FaultKind.TIME_BUDGET: say("Give a smaller launch, fewer blocks or more time."),
    FaultKind.INSTRUCTION_BUDGET: say("Give a smaller launch, fewer blocks or a larger budget."),
    FaultKind.MEMORY_BUDGET: say("Give smaller arrays, fewer blocks or more memory."),
    FaultKind.TRACE_BUDGET: say("Trace fewer blocks, or give more memory or time."),
    FaultKind.CALL_DEPTH: say("End the recursion earlier."),
    FaultKind.BAD_LAUNCH: say("Correct the launch description."),
}

# Opcodes of kernels whose synchronisation the race checks do not follow; see ``find_unit_bytes`` of the emulator
_UNWATCHED = re.compile(r"mbarrier\b|(bar|barrier)\.(?!cluster)(\w+\.)*arrive\b")


def explain_unchecked_races(instructions: tuple[StaticInstruction, ...], *, checks_races: bool) -> Sentence:
    """Reason why races were not checked, as a sentence; empty where they were.

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
    columns = list_columns("what | line | the other access | times [count] | first block | first thread")
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


_LARGEST_BYTES = 1 << 30
_GROWTH = 4
_MOST_NAMED = 6
# Kinds that no guess explains, though it may have led there
_OF_LAUNCHES = frozenset({FaultKind.BAD_LAUNCH, FaultKind.CALL_DEPTH})


def note_guesses(launch: LaunchDescription, *, kernel: str | None = None) -> tuple[Problem, ...]:
    """Note that results hold for guesses only; none for a launch without guesses.

    Args:
        launch: as described.
        kernel: its mangled name; None where results name their kernel.
    """
    sizes = find_guessed(launch)
    named = dict.fromkeys(launch.guesses)
    numbers = [one for one in named if one in SHAPE or one in _list_numbers(launch)]
    contents = [f"the contents of {one}" for one in named if one not in numbers]
    guessed = [*numbers, *(f"the size of {name}" for name in sizes), *contents]
    if not guessed:
        return ()
    more = len(guessed) - _MOST_NAMED
    listed = list_of([*guessed[:_MOST_NAMED], *([f"{more} more"] if more > 0 else [])])
    return (
        Problem.note(
            f"guessed{'' if launch.path is None else ' in the launch description'}: {listed}; results hold for these guesses only",
            None if launch.path is None else "correct them and take what is right out of guesses",
            path=launch.path,
            place=launch.place,
            kernel=kernel,
        ),
    )


def find_guessed(launch: LaunchDescription) -> dict[str, ArrayArgument]:
    """The arrays of a launch whose size is a guess, by name."""
    return {one.name: one for one in list_arrays(launch) if one.is_guessed}


def believe(launch: LaunchDescription) -> LaunchDescription:
    """The launch without its marks of guesses, so that guesses explain no fault."""
    known = {name: replace(one, is_guessed=False) for name, one in find_guessed(launch).items()}
    return replace(replace_arrays(launch, known), guesses=())


def part_guessed(
    launch: LaunchDescription, faults: Iterable[Fault], function: PtxFunction | None = None
) -> tuple[tuple[Fault, ...], tuple[Problem, ...]]:
    """Faults of the program, and notes in place of those that guesses explain.

    An access behind all arrays is explained by any guessed size: it is unknown whose end was passed. An access in front of an array is a fault,
    however large the array is, unless the address, or whether it is accessed at all, depends on a guess.

    Args:
        function: the kernel; None to leave out faults that depend on a guess through its code.
    """
    guessed = find_guessed(launch)
    dependence = None if function is None or not launch.guesses else GuessDependence(function, launch)
    kept: list[Fault] = []
    notes: dict[str, Problem] = {}
    for fault in faults:
        name = _find_guessed(fault, guessed)
        if name is not None:
            key, text = name, _explain(fault, guessed.get(name))
        elif dependence is not None and _may_depend(fault) and dependence.depends(fault.instruction):
            key, text = fault.kind.value, _explain_dependence(fault, launch)
        else:
            kept.append(fault)
            continue
        notes.setdefault(key, Problem.note(text))
    return tuple(kept), tuple(notes.values())


def _list_numbers(launch: LaunchDescription) -> list[str]:
    return [one.name for one in list_passed(launch) if isinstance(one, ScalarArgument)]


def grow_guessed(launch: LaunchDescription, faults: Iterable[Fault]) -> LaunchDescription | None:
    """The launch with arrays that hold what was touched beyond their guessed ends; None where none is to grow, or can."""
    guessed = find_guessed(launch)
    grown: dict[str, ArrayArgument] = {}
    for fault in faults:
        passed = fault.passed
        if passed is None or not _find_guessed(fault, guessed):
            continue
        array = guessed[passed.array]
        before = grown.get(array.name, array)
        count = max(passed.offset_bytes // array.type.bytes + 1, _GROWTH * array.count, before.count)
        if count * array.type.bytes <= _LARGEST_BYTES:
            grown[array.name] = replace(array, count=count)
    return replace_arrays(launch, grown) if grown else None


def _find_guessed(fault: Fault, guessed: Mapping[str, ArrayArgument]) -> str | None:
    """The array whose guessed size explains a fault, empty where it may be any of them; None where no size does."""
    passed = fault.passed
    if passed is None or not guessed or passed.offset_bytes < 0:
        return None
    return passed.array if not passed.array or passed.array in guessed else None


def _may_depend(fault: Fault) -> bool:
    return fault.kind not in ENDINGS and fault.kind not in _OF_LAUNCHES


def _explain(fault: Fault, array: ArrayArgument | None) -> str:
    if array is None:
        return f"{fault.message}; the sizes of some arrays are guesses, so it is not shown as a fault: give their sizes"
    count = format_count(array.count)
    return f"{array.name} was given {count} elements, a guess, and more is touched ({fault.message}); it is no fault of the program: give its size"


def _explain_dependence(fault: Fault, launch: LaunchDescription) -> str:
    named = ", ".join(launch.guesses[:_MOST_NAMED])
    more = f" and {len(launch.guesses) - _MOST_NAMED} more" if len(launch.guesses) > _MOST_NAMED else ""
    return (
        f"{fault.kind.value}: {fault.message}; it depends on what is a guess in the launch ({named}{more}), so it is not shown as a fault: "
        "correct the launch and take what is right out of its guesses"
    )
