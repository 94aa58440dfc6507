"""The text of an operand → its model."""

import re
from collections.abc import Callable, Container

from gpa_lsp.code.ptx.constants import evaluate_constant, read_number
from gpa_lsp.code.ptx.model import (
    Address,
    Immediate,
    Operand,
    Pair,
    Register,
    SpecialRegister,
    Symbol,
    TextureAddress,
    Vector,
)
from gpa_lsp.code.ptx.scopes import COMPONENTS, Registers, Scope
from gpa_lsp.foundation.errors import InputError

_MOST_ELEMENTS = 1024
_LONGEST_NAME = 16384
_NAME = re.compile(r"[A-Za-z_$%][\w$%]*+", re.ASCII)
_ADDRESS = re.compile(r"([A-Za-z_$%][\w$%.]*+)\s*+(?:([+-])\s*+(\S.*+))?", re.ASCII | re.DOTALL)
_PARTS = re.compile(r"\s*+(\{[^{}]*+\}\s*+|[^,{}]++)(?:,|\Z)")
_SELECTOR = re.compile(r"b[0-7]{1,4}|h[0-3]{1,2}")
# Names of special registers, without ``%``. Source: PTX ISA 9.0, section 10.
SPECIAL_REGISTERS = re.compile(
    r"(?:tid|ntid|ctaid|nctaid|clusterid|nclusterid|cluster_ctaid|cluster_nctaid|laneid|warpid|nwarpid|smid|nsmid|gridid|is_explicit_cluster"
    r"|cluster_ctarank|cluster_nctarank|lanemask_(?:eq|le|lt|ge|gt)|clock|clock_hi|clock64|pm[0-7](?:_64)?|envreg(?:[12]?\d|3[01])"
    r"|globaltimer(?:_lo|_hi)?|reserved_smem_offset_(?:begin|end|cap|[01])|total_smem_size|aggr_smem_size|dynamic_smem_size|current_graph_exec)"
)

# Those with four elements, of which the last is always 0; a scalar is read of one of them, as ``%tid.x``
_VECTOR_REGISTERS = frozenset(
    ("tid", "ntid", "ctaid", "nctaid", "clusterid", "nclusterid", "cluster_ctaid", "cluster_nctaid")
)


class OperandReader:
    """Reads operands of one function.

    Attributes:
        registers: of the function; grows.
        module_names: names of the module's variables and functions.
    """

    def __init__(self, registers: Registers, module_names: Container[str]) -> None:
        self.registers = registers
        self.module_names = module_names

    def read(self, text: str, scope: Scope) -> Operand | None:
        """The operand; None for ``_``.

        Raises:
            InputError: it is none, or names something that is not declared.
        """
        stripped = text.strip()
        if stripped == "_":
            return None
        known = scope.operands.get(stripped)
        if known is None:
            known = self._parse(stripped, scope)
            scope.operands[stripped] = known
        scope.operands[text] = known
        return known

    def _parse(self, text: str, scope: Scope) -> Operand:
        first = text[:1]
        parse = _BY_FIRST.get(first)
        if parse is not None:
            return parse(self, text, scope)
        if first == "-" and (text[1:2] in ("%", "$") or text[1:2].isalpha()):
            register = self._require(text[1:].strip(), scope)
            return Register(register.slot, True, register.selector)
        if "|" in text and "||" not in text:
            return self._parse_pair(text, scope)
        if _NAME.match(text) is not None:
            return self._parse_name(text, scope)
        return read_number(text) or Immediate(evaluate_constant(text))

    def _parse_pair(self, text: str, scope: Scope) -> Operand:
        left, _, right = text.partition("|")
        first, second = (None if part.strip() == "_" else self._require(part.strip(), scope) for part in (left, right))
        return Pair(first, second)

    def _parse_vector(self, text: str, scope: Scope) -> Operand:
        if text[-1] != "}":
            raise InputError(f"{text[:60]!r} is not a vector", remedy="close its brace")
        parts = text[1:-1].split(",", _MOST_ELEMENTS)
        if len(parts) > _MOST_ELEMENTS:
            raise InputError(f"a vector of more than {_MOST_ELEMENTS} elements", remedy="no instruction takes one")
        return Vector(tuple(self.read(part, scope) for part in parts))

    def _parse_negated(self, text: str, scope: Scope) -> Operand:
        name = text[1:].strip()
        if _NAME.match(name) is None:
            return Immediate(evaluate_constant(text))
        register = self._require(name, scope)
        return Register(register.slot, True)

    def _parse_address(self, text: str, scope: Scope) -> Operand:
        if text[-1] != "]":
            raise InputError(f"{text[:60]!r} is not an address", remedy="close its bracket")
        inner = text[1:-1].strip()
        if "," in inner:
            return self._parse_texture(inner, scope)
        match = _ADDRESS.fullmatch(inner)
        if match is None:
            return Address(None, _require_integer(inner))
        base = self._parse_base(match[1], scope)
        offset = 0
        if match[2] is not None:
            # The offset may carry a sign of its own (``+-4``).
            offset = _require_integer(match[3])
            offset = -offset if match[2] == "-" else offset
        return Address(base, offset)

    def _parse_texture(self, inner: str, scope: Scope) -> Operand:
        parts: list[str] = []
        place = 0
        while place < len(inner):
            match = _PARTS.match(inner, place)
            if match is None or match.end() == place:
                raise InputError(f"[{inner[:60]}] is not an address", remedy="see PTX ISA, texture instructions")
            parts.append(match[1].strip())
            place = match.end()
        if len(parts) not in (2, 3) or not parts[-1]:
            raise InputError(f"[{inner[:60]}] is not an address", remedy="see PTX ISA, texture instructions")
        last = self.read(parts[-1], scope)
        if last is None:
            raise InputError(f"[{inner[:60]}] has no coordinates", remedy="see PTX ISA, texture instructions")
        coordinates = tuple(one for one in last.elements if one is not None) if isinstance(last, Vector) else (last,)
        sampler = self._parse_base(parts[1], scope) if len(parts) == 3 else None
        return TextureAddress(self._parse_base(parts[0], scope), sampler, coordinates)

    def _parse_base(self, name: str, scope: Scope) -> Register | Symbol:
        base = self._parse_name(name, scope)
        if not isinstance(base, Register | Symbol):
            raise InputError(f"{name[:60]!r} is not an address", remedy="see PTX ISA, addresses as operands")
        return base

    def _require(self, name: str, scope: Scope) -> Register:
        found = self._parse_name(name, scope)
        if not isinstance(found, Register):
            raise InputError(f"{name[:60]!r} is not a register", remedy="declare it with .reg")
        return found

    def _parse_name(self, text: str, scope: Scope) -> Operand:
        if len(text) > _LONGEST_NAME:
            raise InputError(f"a name of {len(text)} characters", remedy="no compiler writes such names")
        slot = scope.find_register(text, self.registers)
        if slot is not None:
            return Register(slot) if isinstance(slot, int) else Vector(tuple(Register(one) for one in slot))
        name, dot, component = text.partition(".")
        if dot:
            return self._parse_component(text, name, component, scope)
        match = _ADDRESS.fullmatch(text)
        if match is not None and match[2] is not None:
            symbol = self._parse_base(match[1], scope)
            if not isinstance(symbol, Symbol):
                raise InputError(
                    f"{text[:60]!r} is not an operand", remedy="put the offset in brackets or after a variable"
                )
            offset = _require_integer(match[3])
            return Symbol(symbol.name, offset if match[2] == "+" else -offset)
        if text.startswith("%") and SPECIAL_REGISTERS.fullmatch(text, 1) is not None:
            special = text[1:]
            if special in _VECTOR_REGISTERS:
                return Vector(tuple(SpecialRegister(special, axis) for axis in "xyzw"))
            return SpecialRegister(special)
        variable = scope.find_variable(text)
        if variable is not None:
            return Symbol(variable.name)
        if text in self.module_names:
            return Symbol(text)
        if text == "WARP_SZ":
            return Immediate(32)
        raise InputError(f"{text[:80]!r} is not declared", remedy="check that the PTX is complete")

    def _parse_component(self, text: str, name: str, component: str, scope: Scope) -> Operand:
        slot = scope.find_register(name, self.registers)
        if isinstance(slot, tuple) and COMPONENTS.get(component, 4) < len(slot):
            return Register(slot[COMPONENTS[component]])
        if isinstance(slot, int) and _SELECTOR.fullmatch(component) is not None:
            return Register(slot, False, component)
        if slot is None and component in COMPONENTS and name.startswith("%") and name[1:] in _VECTOR_REGISTERS:
            return SpecialRegister(name[1:], "xyzw"[COMPONENTS[component]])
        raise InputError(f"{text[:80]!r} is not declared", remedy="check that the PTX is complete")


def _require_integer(text: str) -> int:
    number = read_number(text)
    value = evaluate_constant(text) if number is None else number.value
    if isinstance(value, float):
        raise InputError(f"the offset {text[:40]} is not an integer", remedy="addresses count bytes")
    return value


_BY_FIRST: dict[str, Callable[[OperandReader, str, Scope], Operand]] = {
    "[": OperandReader._parse_address,
    "{": OperandReader._parse_vector,
    "!": OperandReader._parse_negated,
}
