"""What is touched beyond arrays whose size nobody knows: no fault of the program, and told as what it is."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from gpa_lsp.basis.errors import Problem
from gpa_lsp.basis.numbers import format_count
from gpa_lsp.emulator.model import Fault, FaultKind
from gpa_lsp.launches.launch import Argument, ArrayArgument, LaunchDescription, StructArgument

_BEYOND = re.compile(r": (?P<what>element|byte) (?P<place>[\d,]+) of (?P<name>.+), which has [\d,]+(?: bytes)?$")
_NOWHERE = ": no array is near"
_LARGEST_BYTES = 1 << 30
_GROWTH = 4


def find_guessed(launch: LaunchDescription) -> dict[str, ArrayArgument]:
    """The arrays of a launch whose size is a guess, by name; those of structures among them."""
    members = (
        member
        for one in launch.arguments
        for member in ([inner for _, inner in one.members] if isinstance(one, StructArgument) else [one])
    )
    listed = (*members, *launch.variables, *launch.memory)
    return {one.name: one for one in listed if isinstance(one, ArrayArgument) and one.is_guessed}


def part_guessed(launch: LaunchDescription, faults: Iterable[Fault]) -> tuple[tuple[Fault, ...], tuple[Problem, ...]]:
    """Faults of the program, and notes in place of those that a guessed size explains.

    What lies behind all arrays is explained by any guessed one: nobody knows whose end was passed. What lies in front of an array is a fault, however
    large it is.

    Args:
        launch: that was emulated.
        faults: found in it.
    """
    guessed = find_guessed(launch)
    kept: list[Fault] = []
    notes: dict[str, Problem] = {}
    for fault in faults:
        name = _find_guessed(fault, guessed)
        if name is None:
            kept.append(fault)
        else:
            notes.setdefault(name, Problem.note(_explain(fault, guessed.get(name))))
    return tuple(kept), tuple(notes.values())


def grow_guessed(launch: LaunchDescription, faults: Iterable[Fault]) -> LaunchDescription | None:
    """The launch with arrays that hold what was touched beyond their guessed ends; None where none is to grow, or can."""
    guessed = find_guessed(launch)
    counts: dict[str, int] = {}
    for fault in faults:
        found = _BEYOND.search(fault.message)
        if _find_guessed(fault, guessed) and found is not None:
            array = guessed[found["name"]]
            place = int(found["place"].replace(",", "")) // (1 if found["what"] == "element" else array.type.bytes)
            counts[array.name] = max(place + 1, _GROWTH * array.count, counts.get(array.name, 0))
    fitting = {name: n for name, n in counts.items() if n * guessed[name].type.bytes <= _LARGEST_BYTES}
    if not fitting:
        return None
    return replace(launch, arguments=tuple(_grow(one, fitting) for one in launch.arguments))


def _grow(argument: Argument, counts: Mapping[str, int]) -> Argument:
    if isinstance(argument, ArrayArgument):
        return replace(argument, count=counts.get(argument.name, argument.count))
    if isinstance(argument, StructArgument):
        members = (
            (at, replace(one, count=counts.get(one.name, one.count)) if isinstance(one, ArrayArgument) else one)
            for at, one in argument.members
        )
        return replace(argument, members=tuple(members))
    return argument


def _find_guessed(fault: Fault, guessed: Mapping[str, ArrayArgument]) -> str | None:
    """The array whose guessed size explains a fault, empty where it may be any of them; None where the fault is the program's."""
    if fault.kind is not FaultKind.OUT_OF_BOUNDS or not guessed:
        return None
    found = _BEYOND.search(fault.message)
    if found is not None:
        return found["name"] if found["name"] in guessed else None
    return "" if fault.message.endswith(_NOWHERE) else None


def _explain(fault: Fault, array: ArrayArgument | None) -> str:
    if array is None:
        return f"{fault.message}; the sizes of some arrays are guesses, so it is not shown as a fault: give their sizes"
    count = format_count(array.count)
    return f"{array.name} was given {count} elements, a guess, and more is touched ({fault.message}); it is no fault of the program: give its size"
