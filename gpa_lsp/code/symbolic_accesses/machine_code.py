"""The address arithmetic of machine code as equivalent PTX: :func:`lift_machine_code`.

Only the arithmetic of addresses, conditions and loops is carried over. Any other result becomes an unknown function of the instruction's sources,
and a load stays a load. A register with the low half of an address stands for the whole address, and the high half for nothing: sums are
polynomials, which do not wrap. Functions that call others, or jump through registers, are not lifted.
"""

import re
from collections.abc import Callable, Sequence
from functools import lru_cache, reduce

from gpa_lsp.code.binary.driver_constants import DriverConstants, find_driver_constants
from gpa_lsp.code.binary.model import (
    INSTRUCTION_BYTES,
    PREDICATE_KINDS,
    Flow,
    Instructions,
    ResourceKind,
    encode_resource,
)
from gpa_lsp.code.binary.sass import Parts, join_halves, take_apart
from gpa_lsp.code.binary.uses import KIND_OF_PREFIX
from gpa_lsp.code.ptx.model import Address, Immediate, Operand, PtxModule, Register, SpecialRegister, Vector
from gpa_lsp.code.symbolic_accesses.statements import (
    LOADS,
    NONE,
    PARAMETER_BYTES,
    PARAMETERS,
    STORES,
    UNKNOWN,
    UNKNOWN_CONDITION,
    ZERO,
    MachineBlock,
    Statements,
    find_address,
    name_register,
    slice_machine_code,
)
from gpa_lsp.foundation.locations import InlineChain

MOST_INSTRUCTIONS = 20_000
_CONSTANT = re.compile(r"c\[0x0\]\[(?:0x([0-9a-f]+)|U?RZ)\]")
_NUMBER = re.compile(r"-?0x[0-9a-f]+|-?\d+")
_REGISTER = re.compile(r"(U?R)(\d+|Z)")
_PREDICATE = re.compile(r"(!?)(U?P)(\d|T)")
_SCALED = re.compile(r"(R\d+|RZ)\.X(4|8|16)")
_NOT_FOLLOWED = frozenset({Flow.INDIRECT_BRANCH, Flow.CALL, Flow.INDIRECT_CALL})
_SPECIAL = {"TID": "tid", "CTAID": "ctaid"}
_SPACES = {"LDG": "global", "STG": "global", "LDS": "shared", "STS": "shared", "LDL": "local", "STL": "local"}
_WIDTHS = {"U8": "u8", "S8": "s8", "U16": "u16", "S16": "s16", "64": "v2.b32", "128": "v4.b32"}
_ELEMENTS = {"v2.b32": 2, "v4.b32": 4}
_LOGIC = {"0xc0": "and.b64", "0xfc": "or.b64", "0x3c": "xor.b64"}
_COMPARISONS = frozenset({"LT", "LE", "GT", "GE", "EQ", "NE"})


class _NotLiftedError(Exception):
    """An operand or instruction has no PTX equivalent here."""


def lift_machine_code(
    name: str, instructions: Instructions, find_chain: Callable[[int], InlineChain | None], *, sm: int
) -> tuple[PtxModule, tuple[int, ...]] | None:
    """Lift a kernel's addresses and jumps, and the instructions these depend on.

    Args:
        name: of the kernel, mangled.
        instructions: of it.
        find_chain: the source line of a row, with its inline chain.
        sm: of the architecture, e.g. 80.

    Returns:
        A module with one kernel, and the number of machine instructions in each of its basic blocks; None where the kernel cannot be followed.
    """
    count = len(instructions)
    if not 0 < count <= MOST_INSTRUCTIONS or any(Flow(one) in _NOT_FOLLOWED for one in set(instructions.flow.tolist())):
        return None
    blocks = slice_machine_code(instructions)
    lifter = _Lifter(instructions, find_driver_constants(sm))
    lifter.lift(blocks)
    sizes = tuple(block.last - block.first + 1 for block in blocks)
    return lifter.statements.finish(name, instructions.texts, find_chain), sizes


@lru_cache(maxsize=1 << 12)
def _read_simple(text: str) -> Operand | None:
    """A register or number; None for anything else."""
    if match := _REGISTER.fullmatch(text):
        return ZERO if match[2] == "Z" else name_register(encode_resource(KIND_OF_PREFIX[match[1]], int(match[2])))
    if _NUMBER.fullmatch(text):
        value = int(text, 0)
        value = value - (1 << 32) if 1 << 31 <= value < 1 << 32 else value
        return Immediate(value) if value else ZERO
    return None


class _Lifter:
    """Writes statements.

    Args:
        instructions: of the kernel.
        constants: offsets of the launch's facts in constant memory.
    """

    def __init__(self, instructions: Instructions, constants: DriverConstants) -> None:
        self._instructions = instructions
        self._constants = constants
        self._written = 0
        self.statements = Statements()

    def lift(self, blocks: Sequence[MachineBlock]) -> None:
        """All blocks, in order."""
        block_at = {block.first: number for number, block in enumerate(blocks)}
        for block in blocks:
            self.statements.begin_block(block.first)
            for row, needed in block.kept.items():
                self._lift_row(row, needed, block_at)
            self.statements.end_block()
        self.statements.guard = None
        self.statements.write("exit")

    def _lift_row(self, row: int, needed: int, block_at: dict[int, int]) -> None:
        instructions = self._instructions
        guard = int(instructions.guard[row])
        self.statements.row = row
        self.statements.guard = None if guard < 0 else Register(guard, bool(instructions.guard_negated[row]))
        one = take_apart(instructions.texts[row])
        flow = int(instructions.flow[row])
        if flow == Flow.BRANCH:
            target = int(instructions.target[row])
            if target < 0 or any(_PREDICATE.fullmatch(operand) for operand in one.operands):
                # A second condition beside the guard, or a target elsewhere: either way may be gone.
                self.statements.guard = Register(UNKNOWN_CONDITION)
            if target < 0:
                self.statements.write("exit")
            else:
                self.statements.write("bra", block=block_at[target // INSTRUCTION_BYTES])
        elif flow in (Flow.EXIT, Flow.RETURN, Flow.TRAP):
            self.statements.write("exit")
        else:
            self._compute_row(row, one, needed)

    def _compute_row(self, row: int, one: Parts, needed: int) -> None:
        self._written = 0
        mark = self.statements.mark
        rule = _RULES.get(one.opcode.removeprefix("U"))
        if rule is not None:
            try:
                rule(self, one)
            except (_NotLiftedError, ValueError, IndexError):  # or it has other operands than the rule knows
                self.statements.take_back(mark)
                self._written = 0
        needed &= ~self._written
        if needed:
            self._compute_rest(row, needed)

    def _compute_rest(self, row: int, needed: int) -> None:
        """Write the results that no rule covers as unknown functions of the row's sources."""
        reads = self._instructions.reads.of(row)
        sources = [name_register(number) for number in reads if number >> 8 < ResourceKind.PREDICATE]
        for number in self._instructions.writes.of(row):
            if not needed >> number & 1:
                continue
            target = name_register(number)
            if number >> 8 in PREDICATE_KINDS:
                self.statements.write("setp.ne.f32", (*sources, NONE)[0], NONE, to=(target,))
            elif sources:
                self.statements.write(UNKNOWN, *reversed(sources), NONE, to=(target,))
            else:
                self.statements.write("mov.b64", NONE, to=(target,))

    # Operands

    def read(self, operand: str) -> Operand:
        """A register or number; instructions that compute it are written first."""
        text = operand.replace(".reuse", "")
        if text.startswith("-") and not _NUMBER.fullmatch(text):
            return self.statements.compute("neg.s64", self.read(text[1:]))
        text = text.removesuffix(".64").removesuffix(".U32")
        found = _read_simple(text)
        if found is not None:
            return found
        if match := _CONSTANT.fullmatch(text):
            return self._read_constant(int(match[1] or "0", 16))
        raise _NotLiftedError

    def _read_constant(self, offset: int) -> Operand:
        known = self._constants
        for start, name in ((known.block, "ntid"), (known.grid, "nctaid")):
            if offset in (start, start + 4, start + 8):
                return self.statements.compute("mov.u32", SpecialRegister(name, "xyz"[(offset - start) // 4]))
        if known.parameters <= offset < known.parameters + PARAMETER_BYTES - 8:
            return self.statements.compute("ld.param.b64", Address(PARAMETERS, offset - known.parameters))
        if offset in (zero + word for zero in known.zeros for word in (0, 4)):
            return ZERO
        raise _NotLiftedError

    @staticmethod
    def _read_predicate(operand: str) -> Register:
        match = _PREDICATE.fullmatch(operand)
        if match is None or match[3] == "T":
            raise _NotLiftedError
        return Register(encode_resource(KIND_OF_PREFIX[match[2]], int(match[3])), is_negated=bool(match[1]))

    def set(self, operand: str, form: str, *sources: Operand) -> None:
        """Write a register."""
        match = _REGISTER.fullmatch(operand)
        if match is None:
            raise _NotLiftedError
        if match[2] != "Z":
            self._set_resource(encode_resource(KIND_OF_PREFIX[match[1]], int(match[2])), form, *sources)

    def _set_resource(self, number: int, form: str, *sources: Operand) -> None:
        self._written |= 1 << number
        self.statements.write(form, *sources, to=(name_register(number),))

    def add(self, operands: Sequence[str]) -> Operand:
        """The sum of operands."""
        terms = [found for one in operands if (found := self.read(one)) is not ZERO]
        return self._add_terms(terms) if terms else ZERO

    def _add_terms(self, terms: Sequence[Operand]) -> Operand:
        return reduce(lambda total, term: self.statements.compute("add.s64", total, term), terms)

    def read_address(self, operand: str) -> Address:
        """``[base+offset]`` as PTX has it."""
        inner = find_address(operand)
        if inner is None:
            raise _NotLiftedError
        parts: list[Operand] = []
        offset = 0
        for part in inner.replace("+-", "+~").split("+"):
            text = part.replace("~", "-")
            if _NUMBER.fullmatch(text):
                offset += int(text, 0)
            elif scaled := _SCALED.fullmatch(text):
                parts.append(self.statements.compute("mul.lo.s64", self.read(scaled[1]), Immediate(int(scaled[2]))))
            else:
                parts.append(self.read(text))
        terms = [part for part in parts if part is not ZERO]
        if not terms:
            return Address(None, max(0, offset))
        base = self._add_terms(terms)
        if not isinstance(base, Register):
            raise _NotLiftedError
        return Address(base, offset)

    # Instructions

    def move(self, one: Parts) -> None:
        """``MOV``, ``LDC`` of what a launch is given, ``R2UR``."""
        if set(one.modifiers) - {"64", "U32", "OR"} or len(one.operands) < 2:
            raise _NotLiftedError
        found = self.read(one.operands[-1] if one.opcode == "R2UR" else one.operands[1])
        self.set(one.operands[0], "mov.b64", found)
        self._move_second(one)

    def _move_second(self, one: Parts) -> None:
        """The second of two words that are loaded at once: a parameter of its own, or the high half of an address, which nothing followed reads."""
        register, constant = _REGISTER.fullmatch(one.operands[0]), _CONSTANT.fullmatch(one.operands[1])
        if "64" not in one.modifiers or register is None or constant is None or register[2] == "Z":
            return
        try:
            second = self._read_constant(int(constant[1] or "0", 16) + 4)
        except _NotLiftedError:
            return
        self.set(f"{register[1]}{int(register[2]) + 1}", "mov.b64", second)

    def move_halves(self, one: Parts) -> None:
        """``HFMA2.MMA R2, -RZ, RZ, 0, 2.384185791015625e-07``: how compilers write 4 where the integer pipe is busy."""
        if tuple(one.operands[1:3]) != ("-RZ", "RZ") or len(one.operands) != 5:
            raise _NotLiftedError
        value = join_halves(one.operands[3], one.operands[4])
        if value is None:
            raise _NotLiftedError
        self.set(one.operands[0], "mov.b64", Immediate(value))

    def read_special(self, one: Parts) -> None:
        """``S2R R0, SR_TID.X``."""
        name, _, axis = one.operands[-1].removeprefix("SR_").partition(".")
        found: Operand
        if name == "LANEID":
            found = SpecialRegister("laneid")
        elif name == "CgaCtaId":
            # shared memory of another block of the cluster begins at a multiple of what banks repeat after
            found = ZERO
        elif name in _SPECIAL and axis in ("X", "Y", "Z"):
            found = SpecialRegister(_SPECIAL[name], axis.lower())
        else:
            raise _NotLiftedError
        self.set(one.operands[0], "mov.u32", found)

    def add_three(self, one: Parts) -> None:
        """``IADD3`` and its like; one with a carry computes a high half, which is not followed."""
        if "X" in one.modifiers:
            raise _NotLiftedError
        terms = [operand for operand in one.operands[1:] if not _PREDICATE.fullmatch(operand)]
        self.set(one.operands[0], "mov.b64", self.add(terms))

    def multiply(self, one: Parts) -> None:
        """``IMAD`` in all its uses but high halves."""
        if {"X", "HI"} & set(one.modifiers):
            raise _NotLiftedError
        factors = [operand for operand in one.operands[1:] if not _PREDICATE.fullmatch(operand)]
        if len(factors) != 3:
            raise _NotLiftedError
        left, right, added = (self.read(operand) for operand in factors)
        self.set(one.operands[0], "mad.lo.s64", left, right, added)

    def load_address(self, one: Parts) -> None:
        """``LEA R4, P0, R2, c[0x0][0x160], 0x2``."""
        if {"X", "HI"} & set(one.modifiers):
            raise _NotLiftedError
        sources = [operand for operand in one.operands[1:] if not _PREDICATE.fullmatch(operand)]
        if len(sources) != 3:
            raise _NotLiftedError
        index, base, by = self.read(sources[0]), self.read(sources[1]), int(sources[2], 0)
        self.set(one.operands[0], "mad.lo.s64", index, Immediate(1 << by), base)

    def shift(self, one: Parts) -> None:
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
        self.set(target, opcode, self.read(value), self.read(by))

    def cut_bits(self, one: Parts) -> None:
        """``SGXT.U32 R2, R2, 0x5``: the low bits alone."""
        if "U32" not in one.modifiers or _NUMBER.fullmatch(one.operands[2]) is None:
            raise _NotLiftedError
        mask = (1 << min(32, int(one.operands[2], 0))) - 1
        self.set(one.operands[0], "and.b64", self.read(one.operands[1]), Immediate(mask))

    def combine_bits(self, one: Parts) -> None:
        """``LOP3.LUT`` of two."""
        sources = [operand for operand in one.operands[1:] if not _PREDICATE.fullmatch(operand)]
        if len(sources) != 4 or sources[2] not in ("RZ", "URZ") or sources[3] not in _LOGIC:
            raise _NotLiftedError
        self.set(one.operands[0], _LOGIC[sources[3]], self.read(sources[0]), self.read(sources[1]))

    def choose(self, one: Parts) -> None:
        """``SEL`` and ``IMNMX``."""
        target, left, right, predicate = one.operands[:4]
        first, second = self.read(left), self.read(right)
        if one.opcode.endswith("SEL"):
            self.set(target, "selp.b64", first, second, self._read_predicate(predicate))
            return
        if predicate not in ("PT", "!PT", "UPT", "!UPT"):
            raise _NotLiftedError
        self.set(target, "max.s64" if predicate.startswith("!") else "min.s64", first, second)

    def take_absolute(self, one: Parts) -> None:
        """``IABS``."""
        self.set(one.operands[0], "abs.s64", self.read(one.operands[1]))

    def compare(self, one: Parts) -> None:
        """``ISETP`` that writes one predicate."""
        comparison = next((word for word in one.modifiers if word in _COMPARISONS), None)
        written, unused, left, right, joined = one.operands[:5]
        if comparison is None or "EX" in one.modifiers or unused not in ("PT", "UPT"):
            raise _NotLiftedError
        target, sources = self._read_predicate(written), [self.read(left), self.read(right)]
        suffix = ""
        if joined not in ("PT", "UPT"):
            suffix = next((f".{word.lower()}" for word in one.modifiers if word in ("AND", "OR", "XOR")), "")
            sources.append(self._read_predicate(joined))
        self._set_resource(target.slot, f"setp.{comparison.lower()}{suffix}.s64", *sources)

    def load(self, one: Parts) -> None:
        """A load of any space."""
        address = self.read_address(one.operands[-1] if one.operands[-1].endswith("]") else one.operands[1])
        kind = next((_WIDTHS[word] for word in one.modifiers if word in _WIDTHS), "b32")
        match = _REGISTER.fullmatch(one.operands[0])
        if match is None or match[2] == "Z":
            raise _NotLiftedError
        first, count = int(match[2]), _ELEMENTS.get(kind, 1)
        registers = tuple(name_register(number) for number in range(first, first + count))
        self._written |= ((1 << count) - 1) << first
        self.statements.write(
            f"ld{_name_space(one)}.{kind}", address, to=registers if count == 1 else (Vector(registers),)
        )

    def store(self, one: Parts) -> None:
        """A store of any space; the value stored does not matter."""
        address = self.read_address(one.operands[0])
        kind = next((_WIDTHS[word] for word in one.modifiers if word in _WIDTHS), "b32")
        count = _ELEMENTS.get(kind, 1)
        self.statements.write(f"st{_name_space(one)}.{kind}", address, NONE if count == 1 else Vector((NONE,) * count))


def _name_space(one: Parts) -> str:
    space = _SPACES.get(one.opcode)
    return "" if space is None else f".{space}"


_RULES: dict[str, Callable[[_Lifter, Parts], None]] = {
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
    **dict.fromkeys(LOADS, _Lifter.load),
    **dict.fromkeys(("S2R", "S2UR"), _Lifter.read_special),
    **dict.fromkeys(STORES, _Lifter.store),
}
