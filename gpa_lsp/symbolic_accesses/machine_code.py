"""The address arithmetic of machine code, as PTX that says the same: :func:`lift_machine_code`.

Only what addresses, conditions and loops are made of is carried over. What else an instruction writes becomes an unknown function of what it reads,
and what is read of memory stays what memory gives. A register that holds the low half of an address stands for all of it, and the high half for
nothing: sums are polynomials, which do not wrap. Functions that call others, or jump through registers, are not lifted.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from gpa_lsp.basis.errors import InputError
from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.basis.locations import InlineChain
from gpa_lsp.binary.driver_constants import DriverConstants, find_driver_constants
from gpa_lsp.binary.model import Flow, Instruction, Instructions, ResourceKind
from gpa_lsp.binary.sass import instruction_at
from gpa_lsp.ptx.model import PtxModule
from gpa_lsp.ptx.parse import parse_ptx

MOST_INSTRUCTIONS = 20_000
_PARAMETER_BYTES = 4096 + 512
_CONSTANT = re.compile(r"c\[0x0\]\[(?:0x([0-9a-f]+)|U?RZ)\]")
_NUMBER = re.compile(r"-?0x[0-9a-f]+|-?\d+")
_REGISTER = re.compile(r"(U?R)(\d+|Z)")
_PREDICATE = re.compile(r"(!?)(U?P)(\d|T)")
_NOT_FOLLOWED = frozenset({Flow.INDIRECT_BRANCH, Flow.CALL, Flow.INDIRECT_CALL})
_SPECIAL = {"TID": "tid", "CTAID": "ctaid"}
_SPACES = {"LDG": "global", "STG": "global", "LDS": "shared", "STS": "shared", "LDL": "local", "STL": "local"}
_WIDTHS = {"U8": "u8", "S8": "s8", "U16": "u16", "S16": "s16", "64": "v2.b32", "128": "v4.b32"}
_LOGIC = {"0xc0": "and", "0xfc": "or", "0x3c": "xor"}
_COMPARISONS = frozenset({"LT", "LE", "GT", "GE", "EQ", "NE"})


class _NotLiftedError(Exception):
    """What an operand says is not known here."""


def lift_machine_code(
    name: str, instructions: Instructions, chains: Sequence[InlineChain | None], *, sm: int
) -> PtxModule | None:
    """A module that holds one kernel.

    Args:
        name: of the kernel, mangled.
        instructions: of it.
        chains: source line of each, with its inline chain.
        sm: of the architecture, e.g. 80.

    Returns:
        None where the kernel cannot be followed.
    """
    count = len(instructions)
    if not 0 < count <= MOST_INSTRUCTIONS or any(Flow(one) in _NOT_FOLLOWED for one in set(instructions.flow.tolist())):
        return None
    lifter = _Lifter(find_driver_constants(sm))
    rows = [instruction_at(instructions, index) for index in range(count)]
    lifter.lift(rows)
    try:
        module = parse_ptx(lifter.write(), name=name)
    except InputError:
        return None
    function = module.functions["lifted"]
    told = tuple(
        replace(one, chain=chains[row], text=rows[row].text)
        for one in function.instructions
        for row in (lifter.find_row(one.text_line),)
    )
    return replace(module, functions={name: replace(function, name=name, instructions=told)}, text="")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    """A statement and the row it is of."""

    text: str
    row: int


class _Lifter:
    """Writes statements.

    Args:
        constants: where the code finds what it is launched with.
    """

    def __init__(self, constants: DriverConstants) -> None:
        self._constants = constants
        self._lines: list[_Line] = []
        self._temporaries = 0
        self._row = 0
        self._guard = ""
        self._written: set[int] = set()
        self._head: list[str] = []

    def lift(self, rows: Sequence[Instruction]) -> None:
        """All rows, in order."""
        targets = {one.target for one in rows if one.target is not None and one.flow is Flow.BRANCH}
        for row, one in enumerate(rows):
            self._row, self._guard, self._written = row, "", set()
            if one.pc_offset in targets:
                self._emit(f"at_{one.pc_offset}:", is_statement=False)
            if one.guard is not None:
                self._guard = f"@{self._read_predicate(one.guard.removeprefix('@'))} "
            self._lift_one(one)
        self._guard = ""
        self._emit("exit")

    def write(self) -> str:
        """The module's text."""
        self._head = [
            ".version 8.0",
            ".target sm_80",
            ".address_size 64",
            f".visible .entry lifted(.param .align 8 .b8 parameters[{_PARAMETER_BYTES}])",
            "{",
            f".reg .b64 %r<256>; .reg .b64 %u<256>; .reg .b64 %t<{self._temporaries + 1}>; .reg .b64 %none;",
            ".reg .pred %p<8>; .reg .pred %q<8>; .reg .pred %unknown;",
        ]
        return "\n".join([*self._head, *(one.text for one in self._lines), "}", ""])

    def find_row(self, text_line: int) -> int:
        """The row that a line of the text is of."""
        return self._lines[min(max(0, text_line - 1 - len(self._head)), len(self._lines) - 1)].row

    def _emit(self, text: str, *, is_statement: bool = True) -> None:
        self._lines.append(_Line(text=f"{self._guard}{text};" if is_statement else text, row=self._row))

    def _lift_one(self, one: Instruction) -> None:
        if one.flow is Flow.BRANCH:
            plain = [operand for operand in one.operands if _PREDICATE.fullmatch(operand)]
            if one.target is None or plain:
                # A second condition beside the guard, or a target elsewhere: either way may be gone.
                self._guard = "@%unknown "
            self._emit("exit" if one.target is None else f"bra at_{one.target}")
            return
        if one.flow in (Flow.EXIT, Flow.RETURN, Flow.TRAP):
            self._emit("exit")
            return
        start = len(self._lines)
        rule = _RULES.get(one.opcode.removeprefix("U"))
        if rule is not None:
            try:
                rule(self, one)
            except _NotLiftedError:
                del self._lines[start:]
                self._written = set()
        self._lift_rest(one)

    def _lift_rest(self, one: Instruction) -> None:
        """What is written beyond: unknown, and made of what is read."""
        sources = [self._name_resource(number) for number in one.reads if number >> 8 < ResourceKind.PREDICATE]
        for number in one.writes:
            if number in self._written or number >> 8 == ResourceKind.CONVERGENCE_BARRIER:
                continue
            if ResourceKind(number >> 8) in (ResourceKind.PREDICATE, ResourceKind.UNIFORM_PREDICATE):
                self._emit(f"setp.ne.f32 {self._name_resource(number)}, {(*sources, '%none')[0]}, %none")
                continue
            found = "%none"
            for source in sources:
                temporary = self._make_temporary()
                self._emit(f"prmt.b32 {temporary}, {source}, {found}, 0")
                found = temporary
            self._emit(f"mov.b64 {self._name_resource(number)}, {found}")

    # Operands

    def _make_temporary(self) -> str:
        self._temporaries += 1
        return f"%t{self._temporaries}"

    @staticmethod
    def _name_resource(number: int) -> str:
        return ("%r", "%u", "%p", "%q")[number >> 8] + str(number & 0xFF)

    def read(self, operand: str) -> str:
        """A register or number; what else is needed for it is written before."""
        text = operand.replace(".reuse", "")
        if text.startswith("-") and not _NUMBER.fullmatch(text):
            temporary = self._make_temporary()
            self._emit(f"neg.s64 {temporary}, {self.read(text[1:])}")
            return temporary
        text = text.removesuffix(".64").removesuffix(".U32")
        if match := _REGISTER.fullmatch(text):
            return "0" if match[2] == "Z" else f"%{'u' if match[1] == 'UR' else 'r'}{match[2]}"
        if _NUMBER.fullmatch(text):
            value = int(text, 0)
            return str(value - (1 << 32) if 1 << 31 <= value < 1 << 32 else value)
        if match := _CONSTANT.fullmatch(text):
            return self._read_constant(int(match[1] or "0", 16))
        raise _NotLiftedError

    def _read_constant(self, offset: int) -> str:
        temporary, known = self._make_temporary(), self._constants
        for start, name in ((known.block, "ntid"), (known.grid, "nctaid")):
            if offset in (start, start + 4, start + 8):
                self._emit(f"mov.u32 {temporary}, %{name}.{'xyz'[(offset - start) // 4]}")
                return temporary
        if known.parameters <= offset < known.parameters + _PARAMETER_BYTES - 8:
            self._emit(f"ld.param.b64 {temporary}, [parameters+{offset - known.parameters}]")
            return temporary
        if offset in (zero + word for zero in known.zeros for word in (0, 4)):
            return "0"
        raise _NotLiftedError

    @staticmethod
    def _read_predicate(operand: str) -> str:
        match = _PREDICATE.fullmatch(operand)
        if match is None or match[3] == "T":
            raise _NotLiftedError
        return f"{match[1]}%{'q' if match[2] == 'UP' else 'p'}{match[3]}"

    def set(self, operand: str, statement: Callable[[str], str]) -> None:
        """Write a register."""
        match = _REGISTER.fullmatch(operand)
        if match is None:
            raise _NotLiftedError
        if match[2] == "Z":
            return
        is_uniform = match[1] == "UR"
        kind = ResourceKind.UNIFORM_REGISTER if is_uniform else ResourceKind.REGISTER
        self._written.add(int(kind) << 8 | int(match[2]))
        self._emit(statement(f"%{'u' if is_uniform else 'r'}{match[2]}"))

    def add(self, operands: Sequence[str]) -> str:
        """A sum; its last step is left to who writes it."""
        terms = [found for one in operands if (found := self.read(one)) != "0"]
        total = terms[0] if terms else "0"
        for term in terms[1:]:
            temporary = self._make_temporary()
            self._emit(f"add.s64 {temporary}, {total}, {term}")
            total = temporary
        return total

    def read_address(self, operand: str) -> str:
        """``[base+offset]`` as PTX has it."""
        inner = re.sub(r"^desc\[UR\d+\]", "", operand)
        if not (inner.startswith("[") and inner.endswith("]")):
            raise _NotLiftedError
        parts, offset = [], 0
        for part in inner[1:-1].replace("+-", "+~").split("+"):
            text = part.replace("~", "-")
            scaled = re.fullmatch(r"(R\d+|RZ)\.X(4|8|16)", text)
            if _NUMBER.fullmatch(text):
                offset += int(text, 0)
            elif scaled:
                temporary = self._make_temporary()
                self._emit(f"mul.lo.s64 {temporary}, {self.read(scaled[1])}, {scaled[2]}")
                parts.append(temporary)
            else:
                parts.append(self.read(text))
        base = self.add_named([part for part in parts if part != "0"])
        if base is None:
            return f"[{max(0, offset)}]"
        return f"[{base}+{offset}]" if offset >= 0 else f"[{base}-{-offset}]"

    def add_named(self, terms: Sequence[str]) -> str | None:
        """The sum of registers; None of nothing."""
        if not terms:
            return None
        total = terms[0]
        for term in terms[1:]:
            temporary = self._make_temporary()
            self._emit(f"add.s64 {temporary}, {total}, {term}")
            total = temporary
        return total

    # Instructions

    def move(self, one: Instruction) -> None:
        """``MOV``, ``LDC`` of what a launch is given, ``R2UR``."""
        if set(one.modifiers) - {"64", "U32", "OR"} or len(one.operands) < 2:
            raise _NotLiftedError
        found = self.read(one.operands[-1] if one.opcode == "R2UR" else one.operands[1])
        self.set(one.operands[0], lambda target: f"mov.b64 {target}, {found}")
        self._move_second(one)

    def _move_second(self, one: Instruction) -> None:
        """The second of two words that are loaded at once: a parameter of its own, or the high half of an address, which nothing followed reads."""
        register, constant = _REGISTER.fullmatch(one.operands[0]), _CONSTANT.fullmatch(one.operands[1])
        if "64" not in one.modifiers or register is None or constant is None or register[2] == "Z":
            return
        try:
            second = self._read_constant(int(constant[1] or "0", 16) + 4)
        except _NotLiftedError:
            return
        self.set(f"{register[1]}{int(register[2]) + 1}", lambda target: f"mov.b64 {target}, {second}")

    def move_halves(self, one: Instruction) -> None:
        """``HFMA2.MMA R2, -RZ, RZ, 0, 2.384185791015625e-07``: how compilers write 4 where the integer pipe is busy."""
        if tuple(one.operands[1:3]) != ("-RZ", "RZ") or len(one.operands) != 5:
            raise _NotLiftedError
        try:
            halves = np.array([float(operand) for operand in one.operands[:2:-1]], dtype=np.float16)
        except ValueError:
            raise _NotLiftedError from None
        value = int(halves.view(np.uint32)[0])
        self.set(one.operands[0], lambda target: f"mov.b64 {target}, {value}")

    def read_special(self, one: Instruction) -> None:
        """``S2R R0, SR_TID.X``."""
        name, _, axis = one.operands[-1].removeprefix("SR_").partition(".")
        if name == "LANEID":
            found = "%laneid"
        elif name == "CgaCtaId":
            found = "0"  # shared memory of another block of the cluster begins at a multiple of what banks repeat after
        elif name in _SPECIAL and axis in ("X", "Y", "Z"):
            found = f"%{_SPECIAL[name]}.{axis.lower()}"
        else:
            raise _NotLiftedError
        self.set(one.operands[0], lambda target: f"mov.u32 {target}, {found}")

    def add_three(self, one: Instruction) -> None:
        """``IADD3`` and its like; with a carry it is a high half."""
        if "X" in one.modifiers:
            raise _NotLiftedError
        terms = [operand for operand in one.operands[1:] if not _PREDICATE.fullmatch(operand)]
        total = self.add(terms)
        self.set(one.operands[0], lambda target: f"mov.b64 {target}, {total}")

    def multiply(self, one: Instruction) -> None:
        """``IMAD`` in all its uses but high halves."""
        if {"X", "HI"} & set(one.modifiers):
            raise _NotLiftedError
        factors = [operand for operand in one.operands[1:] if not _PREDICATE.fullmatch(operand)]
        if len(factors) != 3:
            raise _NotLiftedError
        left, right, added = (self.read(operand) for operand in factors)
        self.set(one.operands[0], lambda target: f"mad.lo.s64 {target}, {left}, {right}, {added}")

    def load_address(self, one: Instruction) -> None:
        """``LEA R4, P0, R2, c[0x0][0x160], 0x2``."""
        if {"X", "HI"} & set(one.modifiers):
            raise _NotLiftedError
        sources = [operand for operand in one.operands[1:] if not _PREDICATE.fullmatch(operand)]
        if len(sources) != 3:
            raise _NotLiftedError
        index, base, by = self.read(sources[0]), self.read(sources[1]), int(sources[2], 0)
        self.set(one.operands[0], lambda target: f"mad.lo.s64 {target}, {index}, {1 << by}, {base}")

    def shift(self, one: Instruction) -> None:
        """``SHF`` of one register."""
        target, low, by, high = one.operands[:4]
        if "L" in one.modifiers and high in ("RZ", "URZ"):
            opcode, value = "shl.b64", low
        elif "R" in one.modifiers and "HI" in one.modifiers and low in ("RZ", "URZ"):
            opcode, value = "shr.s64", high
        elif "R" in one.modifiers and high in ("RZ", "URZ"):
            opcode, value = "shr.s64", low
        else:
            raise _NotLiftedError
        source, amount = self.read(value), self.read(by)
        self.set(target, lambda name: f"{opcode} {name}, {source}, {amount}")

    def cut_bits(self, one: Instruction) -> None:
        """``SGXT.U32 R2, R2, 0x5``: the low bits alone."""
        if "U32" not in one.modifiers or _NUMBER.fullmatch(one.operands[2]) is None:
            raise _NotLiftedError
        source, mask = self.read(one.operands[1]), (1 << min(32, int(one.operands[2], 0))) - 1
        self.set(one.operands[0], lambda target: f"and.b64 {target}, {source}, {mask}")

    def combine_bits(self, one: Instruction) -> None:
        """``LOP3.LUT`` of two."""
        sources = [operand for operand in one.operands[1:] if not _PREDICATE.fullmatch(operand)]
        if len(sources) != 4 or sources[2] not in ("RZ", "URZ") or sources[3] not in _LOGIC:
            raise _NotLiftedError
        left, right = self.read(sources[0]), self.read(sources[1])
        self.set(one.operands[0], lambda target: f"{_LOGIC[sources[3]]}.b64 {target}, {left}, {right}")

    def choose(self, one: Instruction) -> None:
        """``SEL`` and ``IMNMX``."""
        target, left, right, predicate = one.operands[:4]
        first, second = self.read(left), self.read(right)
        if one.opcode.endswith("SEL"):
            held = self._read_predicate(predicate)
            self.set(target, lambda name: f"selp.b64 {name}, {first}, {second}, {held}")
            return
        if predicate not in ("PT", "!PT", "UPT", "!UPT"):
            raise _NotLiftedError
        opcode = "max" if predicate.startswith("!") else "min"
        self.set(target, lambda name: f"{opcode}.s64 {name}, {first}, {second}")

    def take_absolute(self, one: Instruction) -> None:
        """``IABS``."""
        source = self.read(one.operands[1])
        self.set(one.operands[0], lambda target: f"abs.s64 {target}, {source}")

    def compare(self, one: Instruction) -> None:
        """``ISETP`` that writes one predicate."""
        comparison = next((word for word in one.modifiers if word in _COMPARISONS), None)
        written, unused, left, right, joined = one.operands[:5]
        if comparison is None or "EX" in one.modifiers or unused not in ("PT", "UPT"):
            raise _NotLiftedError
        target, first, second = self._read_predicate(written), self.read(left), self.read(right)
        match = _PREDICATE.fullmatch(written)
        assert match is not None
        kind = ResourceKind.UNIFORM_PREDICATE if match[2] == "UP" else ResourceKind.PREDICATE
        rest, suffix = "", ""
        if joined not in ("PT", "UPT"):
            suffix = next((f".{word.lower()}" for word in one.modifiers if word in ("AND", "OR", "XOR")), "")
            rest = f", {self._read_predicate(joined)}"
        self._written.add(int(kind) << 8 | int(match[3]))
        self._emit(f"setp.{comparison.lower()}{suffix}.s64 {target}, {first}, {second}{rest}")

    def load(self, one: Instruction) -> None:
        """A load of any space."""
        address = self.read_address(one.operands[-1] if one.operands[-1].endswith("]") else one.operands[1])
        kind = next((_WIDTHS[word] for word in one.modifiers if word in _WIDTHS), "b32")
        match = _REGISTER.fullmatch(one.operands[0])
        if match is None or match[2] == "Z":
            raise _NotLiftedError
        first, count = int(match[2]), {"v2.b32": 2, "v4.b32": 4}.get(kind, 1)
        names = [f"%r{number}" for number in range(first, first + count)]
        self._written.update(range(first, first + count))
        target = names[0] if count == 1 else "{" + ", ".join(names) + "}"
        space = _SPACES.get(one.opcode)
        self._emit(f"ld{'' if space is None else '.' + space}.{kind} {target}, {address}")

    def store(self, one: Instruction) -> None:
        """A store of any space; what is stored does not matter."""
        address = self.read_address(one.operands[0])
        kind = next((_WIDTHS[word] for word in one.modifiers if word in _WIDTHS), "b32")
        count = {"v2.b32": 2, "v4.b32": 4}.get(kind, 1)
        source = "%none" if count == 1 else "{" + ", ".join(["%none"] * count) + "}"
        space = _SPACES.get(one.opcode)
        self._emit(f"st{'' if space is None else '.' + space}.{kind} {address}, {source}")

    def wait(self, one: Instruction) -> None:
        """A barrier."""
        del one
        self._emit("bar.sync 0")


_RULES: dict[str, Callable[[_Lifter, Instruction], None]] = {
    "BAR": _Lifter.wait,
    "HFMA2": _Lifter.move_halves,
    "IABS": _Lifter.take_absolute,
    "IMAD": _Lifter.multiply,
    "ISETP": _Lifter.compare,
    "LEA": _Lifter.load_address,
    "LOP3": _Lifter.combine_bits,
    "SGXT": _Lifter.cut_bits,
    "SHF": _Lifter.shift,
    **dict.fromkeys(("IADD3", "IADD", "VIADD"), _Lifter.add_three),
    **dict.fromkeys(("IMNMX", "SEL", "VIMNMX"), _Lifter.choose),
    **dict.fromkeys(("LDC", "LDCU", "MOV", "R2R", "R2UR"), _Lifter.move),
    **dict.fromkeys(("LD", "LDG", "LDL", "LDS"), _Lifter.load),
    **dict.fromkeys(("S2R", "S2UR"), _Lifter.read_special),
    **dict.fromkeys(("ST", "STG", "STL", "STS"), _Lifter.store),
}
