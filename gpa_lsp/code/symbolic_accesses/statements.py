"""Instructions of PTX that no text was written for: :class:`Statements`."""

from collections.abc import Callable, Sequence
from functools import cache

from msgspec import Struct

from gpa_lsp.code.binary.model import ResourceKind, encode_resource
from gpa_lsp.code.ptx.model import (
    Guard,
    Immediate,
    Operand,
    PtxFunction,
    PtxInstruction,
    PtxModule,
    PtxVariable,
    Register,
    Space,
    Symbol,
)
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.foundation.locations import InlineChain

ZERO = Immediate(0)
PARAMETERS = Symbol("parameters")
PARAMETER_BYTES = 4096 + 512
UNKNOWN = "unknown"  # An opcode that PTX does not have: the result is made of the sources, nobody knows how
_NOTHING = "nop"

_REGISTERS = encode_resource(ResourceKind.CONVERGENCE_BARRIER, 0)
_TYPES = {value: one for one in ScalarType for value in (one.value,)}
_OF_KIND = (ScalarType.B64, ScalarType.B64, ScalarType.PRED, ScalarType.PRED)
_PARAMETER = PtxVariable(
    name=PARAMETERS.name, space=Space.PARAM, type=ScalarType.B8, count=PARAMETER_BYTES, alignment_bytes=8
)


@cache
def name_register(number: int) -> Register:
    """The register that stands for one of the machine's; see :func:`~gpa_lsp.code.binary.model.encode_resource`."""
    return Register(number)


NONE = name_register(_REGISTERS)  # Holds what nobody knows
UNKNOWN_CONDITION = _REGISTERS + 1
_FIXED: tuple[ScalarType, ...] = (
    *(kind for kind in _OF_KIND for _ in range(_REGISTERS // len(_OF_KIND))),
    ScalarType.B64,
    ScalarType.PRED,
)


@cache
def _read_form(name: str) -> tuple[str, tuple[str, ...], tuple[ScalarType, ...]]:
    """Opcode, suffixes and those of them that are types."""
    opcode, *suffixes = name.split(".")
    return opcode, tuple(suffixes), tuple(_TYPES[word] for word in suffixes if word in _TYPES)


class _Statement(Struct, frozen=True):
    """An instruction whose target is not numbered yet."""

    form: str
    destinations: tuple[Operand, ...]
    sources: tuple[Operand, ...]
    guard: Guard | None
    row: int
    block: int | None


class Statements:
    """The instructions of one kernel, as they are written.

    Attributes:
        row: of the machine code that what is written next is of.
        guard: of what is written next.
    """

    def __init__(self) -> None:
        self._all: list[_Statement] = []
        self._starts: list[int] = []
        self._temporaries = 0
        self.row = 0
        self.guard: Guard | None = None

    def begin_block(self, first: int) -> None:
        """What is written from here on can be jumped to."""
        self.row, self.guard = first, None
        self._starts.append(len(self._all))

    def end_block(self) -> None:
        """A block without instructions gets one that does nothing."""
        if len(self._all) == self._starts[-1]:
            self.write(_NOTHING)

    def write(self, form: str, *sources: Operand, to: Sequence[Operand] = (), block: int | None = None) -> None:
        """One instruction."""
        self._all.append(_Statement(form, tuple(to), sources, self.guard, self.row, block))

    def compute(self, form: str, *sources: Operand) -> Register:
        """One instruction with a register of its own as its result."""
        found = Register(len(_FIXED) + self._temporaries)
        self._temporaries += 1
        self.write(form, *sources, to=(found,))
        return found

    @property
    def mark(self) -> int:
        """How many there are, for :meth:`take_back`."""
        return len(self._all)

    def take_back(self, mark: int) -> None:
        """Drop what was written since."""
        del self._all[mark:]

    def finish(self, name: str, texts: Sequence[str], find_chain: Callable[[int], InlineChain | None]) -> PtxModule:
        """The module."""
        instructions = tuple(
            PtxInstruction(
                index=index,
                opcode=opcode,
                suffixes=suffixes,
                types=types,
                destinations=one.destinations,
                sources=one.sources,
                guard=one.guard,
                target=None if one.block is None else self._starts[one.block],
                text=texts[one.row],
                text_line=0,
                chain=find_chain(one.row),
            )
            for index, one in enumerate(self._all)
            for opcode, suffixes, types in (_read_form(one.form),)
        )
        function = PtxFunction(
            name=name,
            is_entry=True,
            parameters=(_PARAMETER,),
            returns=(),
            registers=(*_FIXED, *(ScalarType.B64 for _ in range(self._temporaries))),
            register_names=(),
            instructions=instructions,
        )
        return PtxModule(
            name=name, version=(8, 0), target="", files={}, functions={name: function}, variables={}, text=""
        )
