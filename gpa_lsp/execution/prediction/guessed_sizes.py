"""Guesses about a launch: the note that results rest on them, and the faults that they explain, which are no faults of the program."""

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from gpa_lsp.code.ptx.model import PtxFunction
from gpa_lsp.execution.emulator.model import Fault, FaultKind
from gpa_lsp.execution.launches.described_arrays import list_arrays, replace_arrays
from gpa_lsp.execution.launches.guess_dependence import SHAPE, GuessDependence
from gpa_lsp.execution.launches.launch import ArrayArgument, LaunchDescription, ScalarArgument, StructArgument
from gpa_lsp.execution.prediction.fault_answer import ENDINGS
from gpa_lsp.foundation.errors import Problem, ProblemSeverity
from gpa_lsp.foundation.numbers import format_count
from gpa_lsp.foundation.prose import list_of

_LARGEST_BYTES = 1 << 30
_GROWTH = 4
_MOST_NAMED = 6
# Kinds that no guess explains, though it may have led there
_OF_LAUNCHES = frozenset({FaultKind.BAD_LAUNCH, FaultKind.CALL_DEPTH})


def note_guesses(launch: LaunchDescription, *, kernel: str | None = None) -> tuple[Problem, ...]:
    """The note that results hold for guesses only; none for a launch without guesses.

    Args:
        launch: as described.
        kernel: its mangled name; None where results say of which kernel they are.
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
        Problem(
            severity=ProblemSeverity.NOTE,
            message=f"guessed in the launch description: {listed}; results hold for these guesses only",
            path=launch.path,
            place=None if launch.line is None else f"line {launch.line}",
            remedy="correct them and take what is right out of guesses",
            kernel=kernel,
        ),
    )


def find_guessed(launch: LaunchDescription) -> dict[str, ArrayArgument]:
    """The arrays of a launch whose size is a guess, by name."""
    return {one.name: one for one in list_arrays(launch) if one.is_guessed}


def believe(launch: LaunchDescription) -> LaunchDescription:
    """The launch as if nothing of it were a guess: what goes wrong in it is a fault."""
    known = {name: replace(one, is_guessed=False) for name, one in find_guessed(launch).items()}
    return replace(replace_arrays(launch, known), guesses=())


def part_guessed(
    launch: LaunchDescription, faults: Iterable[Fault], function: PtxFunction | None = None
) -> tuple[tuple[Fault, ...], tuple[Problem, ...]]:
    """Faults of the program, and notes in place of those that guesses explain.

    What lies behind all arrays is explained by any guessed size: nobody knows whose end was passed. What lies in front of an array is a fault,
    however large the array is, unless the address, or whether it is accessed at all, depends on a guess.

    Args:
        function: the kernel; None where nothing is to be followed through it.
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
    members = (inner for one in launch.arguments if isinstance(one, StructArgument) for _, inner in one.members)
    return [one.name for one in (*launch.arguments, *members) if isinstance(one, ScalarArgument)]


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
