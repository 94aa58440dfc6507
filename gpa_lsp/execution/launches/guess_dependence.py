"""What of a kernel depends on what nobody knows of its launch: :class:`GuessDependence`."""

from collections.abc import Iterable, Iterator

from gpa_lsp.code.ptx.model import Address, Operand, Pair, PtxFunction, PtxInstruction, Register, TextureAddress, Vector
from gpa_lsp.execution.launches.launch import LaunchDescription, ScalarArgument, StructArgument, TextureArgument
from gpa_lsp.execution.launches.pointer_uses import find_loaded_parameters

SHAPE = frozenset({"block", "grid", "threads"})  # Guesses that everything depends on

_READING = frozenset({"ld", "ldu", "atom", "tex", "tld4", "suld", "shfl"})
_BOUNDED = frozenset({"suld", "sust", "sured"})  # Instructions that the size of a surface bounds
_MOST_ROUNDS = 32


class GuessDependence:
    """Whether what an instruction does, or that it is executed at all, depends on a guess.

    An estimate, more rather than less: registers are followed without regard to the order of control flow, and whatever is loaded from memory
    depends on the contents of every array, texture and variable.

    Args:
        function: the kernel.
        launch: of it, with what of it are guesses.
    """

    def __init__(self, function: PtxFunction, launch: LaunchDescription) -> None:
        self._instructions = function.instructions
        self._has_guesses = bool(launch.guesses)
        self._is_everything = not SHAPE.isdisjoint(launch.guesses)
        self._loaded = find_loaded_parameters(function)
        self._numbers = frozenset(_list_guessed_numbers(function, launch))
        self._knows_data = SHAPE.union(_list_names(launch, ScalarArgument)).issuperset(launch.guesses)
        self._guesses_sizes = not set(launch.guesses).isdisjoint(_list_names(launch, TextureArgument))
        self._slots = self._follow() if self._has_guesses and not self._is_everything else set()
        self._regions = tuple(self._find_regions()) if self._slots else ()

    def depends(self, instruction: int | None) -> bool:
        """Whether the instruction of a number does; what is in no instruction of the kernel itself does where anything is guessed."""
        if self._is_everything or not self._has_guesses:
            return self._is_everything
        if instruction is None or instruction >= len(self._instructions):
            return True
        if any(first <= instruction < last for first, last in self._regions):
            return True
        one = self._instructions[instruction]
        return self._is_touched(one) or (self._guesses_sizes and one.opcode in _BOUNDED)

    def _follow(self) -> set[int]:
        slots: set[int] = set()
        for _ in range(_MOST_ROUNDS):
            before = len(slots)
            for one in self._instructions:
                if self._is_guessed(one) or self._is_touched(one, slots):
                    slots.update(_list_slots(one.destinations))
            if len(slots) == before:
                break
        return slots

    def _is_guessed(self, one: PtxInstruction) -> bool:
        """It reads a guess itself."""
        if one.opcode not in _READING:
            return False
        if "param" not in one.suffixes:
            return not self._knows_data and one.opcode != "shfl"
        place = self._loaded.get(one.index)
        return place is None or place in self._numbers

    def _is_touched(self, one: PtxInstruction, slots: "set[int] | None" = None) -> bool:
        known = self._slots if slots is None else slots
        guard = () if one.guard is None else (one.guard.slot,)
        return any(slot in known for slot in (*_list_slots(one.sources), *guard))

    def _find_regions(self) -> "Iterable[tuple[int, int]]":
        """Instructions that a jump on a guess skips or repeats: (first, behind the last)."""
        for one in self._instructions:
            if one.target is None or one.guard is None or one.guard.slot not in self._slots:
                continue
            if one.target <= one.index:
                yield one.target, one.index
                continue
            yield one.index, one.target
            last = self._instructions[one.target - 1] if one.target else one
            if last.target is not None and last.guard is None and last.target > one.target:
                yield one.target, last.target


def _list_names(launch: LaunchDescription, kind: type[ScalarArgument] | type[TextureArgument]) -> Iterator[str]:
    """Names of the arguments of one kind, of those in structures, too."""
    for one in launch.arguments:
        members = [inner for _, inner in one.members] if isinstance(one, StructArgument) else [one]
        yield from (member.name for member in members if isinstance(member, kind))


def _list_guessed_numbers(function: PtxFunction, launch: LaunchDescription) -> "Iterable[tuple[str, int]]":
    """Parameter and offset in it of each number that is a guess."""
    for parameter, argument in zip(function.parameters, launch.arguments, strict=False):
        members = argument.members if isinstance(argument, StructArgument) else ((0, argument),)
        for at, one in members:
            if isinstance(one, ScalarArgument) and one.name in launch.guesses:
                yield parameter.name, at


def _list_slots(operands: Iterable[Operand | None]) -> list[int]:
    found: list[int] = []
    for operand in operands:
        if isinstance(operand, Register):
            found.append(operand.slot)
        elif isinstance(operand, Vector):
            found += _list_slots(operand.elements)
        elif isinstance(operand, Pair):
            found += _list_slots((operand.first, operand.second))
        elif isinstance(operand, Address) and isinstance(operand.base, Register):
            found.append(operand.base.slot)
        elif isinstance(operand, TextureAddress):
            found += _list_slots((operand.handle, *operand.coordinates))
    return found
