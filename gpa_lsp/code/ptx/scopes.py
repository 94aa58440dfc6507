"""What names mean in a function's body: registers, variables, labels, in nested ``{ }`` scopes.

Registers get a slot when they are first named, so that ``.reg .b32 %r<4000000000>`` costs nothing.
"""

from msgspec import Struct, field

from gpa_lsp.code.ptx.model import Operand, PtxVariable
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.foundation.errors import InputError

DEEPEST_SCOPE = 64
_DIGITS = "0123456789"
_MOST_DIGITS = 10
COMPONENTS = {"x": 0, "y": 1, "z": 2, "w": 3, "r": 0, "g": 1, "b": 2, "a": 3}  # Names of a vector register's elements


class Registers(Struct):
    """The slots of a function, in the order in which registers are first named."""

    types: list[ScalarType] = field(default_factory=list)
    names: list[str] = field(default_factory=list)

    def add(self, name: str, kind: ScalarType) -> int:
        """A new slot."""
        self.types.append(kind)
        self.names.append(name)
        return len(self.types) - 1


class Scope(Struct):
    """One ``{ }``."""

    parent: "Scope | None"  # the scope around it; None for the body itself
    depth: int = 0  # 0 for the body
    parameter_bytes: int = 0  # where the next ``.param`` variable declared here can begin
    # register's name → slot, or the slots of a vector register's elements
    slots: dict[str, "int | tuple[int, ...]"] = field(default_factory=dict)
    # names of single registers that have no slot yet → type, and 1, 2 or 4 elements
    declared: dict[str, tuple[ScalarType, int]] = field(default_factory=dict)
    ranges: dict[str, tuple[int, ScalarType]] = field(default_factory=dict)  # prefix → (count, type) of ``%r<81>``
    variables: dict[str, PtxVariable] = field(default_factory=dict)  # name as written → variable
    labels: dict[str, int] = field(default_factory=dict)  # label → index of the instruction behind it
    # label → names in its ``.branchtargets`` or ``.calltargets``
    tables: dict[str, tuple[str, ...]] = field(default_factory=dict)
    # label → bytes of what a ``.callprototype`` returns and takes
    prototypes: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = field(default_factory=dict)
    operands: dict[str, Operand] = field(default_factory=dict)  # text → what it means here

    def open(self) -> "Scope":
        """A scope inside this one.

        Raises:
            InputError: it would be nested too deeply.
        """
        if self.depth >= DEEPEST_SCOPE:
            raise InputError(f"braces are nested deeper than {DEEPEST_SCOPE}", remedy="no compiler writes such PTX")
        return Scope(parent=self, depth=self.depth + 1, parameter_bytes=self.parameter_bytes)

    def declare_registers(self, name: str, kind: ScalarType, *, elements: int, count: int | None) -> None:
        """``.reg .b32 name`` or, with a count, ``.reg .b32 name<count>``."""
        if count is not None:
            self.ranges[name] = (count, kind)
        else:
            self.declared[name] = (kind, elements)
            self.slots.pop(name, None)
        self.operands.clear()

    def find_register(self, name: str, registers: Registers) -> "int | tuple[int, ...] | None":
        """The slot of a register, the slots of a vector register's elements, or None where no register has that name."""
        scope: Scope | None = self
        while scope is not None:
            found = scope.slots.get(name)
            if found is None:
                found = scope._give_slot(name, registers)
            if found is not None:
                return found
            if name in scope.variables:
                return None
            scope = scope.parent
        return None

    def _give_slot(self, name: str, registers: Registers) -> "int | tuple[int, ...] | None":
        single = self.declared.get(name)
        slots: int | tuple[int, ...]
        if single is not None:
            kind, elements = single
            if elements == 1:
                slots = registers.add(name, kind)
            else:
                slots = tuple(registers.add(f"{name}.{'xyzw'[element]}", kind) for element in range(elements))
        else:
            kind_of_range = self._find_range(name)
            if kind_of_range is None:
                return None
            slots = registers.add(name, kind_of_range)
        self.slots[name] = slots
        return slots

    def _find_range(self, name: str) -> ScalarType | None:
        """The type of ``name`` in a range ``prefix<count>``; the prefix itself may end in digits."""
        for start in range(max(len(name.rstrip(_DIGITS)), len(name) - _MOST_DIGITS), len(name)):
            known = self.ranges.get(name[:start])
            digits = name[start:]
            if known is not None and int(digits) < known[0] and (digits[0] != "0" or digits == "0"):
                return known[1]
        return None

    def find_variable(self, name: str) -> PtxVariable | None:
        """The variable of that name declared here or around."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.variables:
                return scope.variables[name]
            scope = scope.parent
        return None

    def find_label(self, name: str) -> int | None:
        """The instruction a label here or around stands before."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.labels:
                return scope.labels[name]
            scope = scope.parent
        return None

    def find_table(self, name: str) -> "tuple[Scope, tuple[str, ...]] | None":
        """A list of targets and the scope it stands in."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.tables:
                return scope, scope.tables[name]
            scope = scope.parent
        return None

    def find_prototype(self, name: str) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
        """Bytes of what an indirect call returns and takes."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.prototypes:
                return scope.prototypes[name]
            scope = scope.parent
        return None
