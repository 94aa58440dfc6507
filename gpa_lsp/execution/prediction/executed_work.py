"""Executed work of a kernel: floating-point operations (:func:`count_flops`) and instructions by pipe of a mean thread, arithmetic by line, operator
and type with constant operands (:func:`answer_operations`).

Source: CUDAAdvisor, section 3.1 (II): the operator of every arithmetic computation and the symbolic values of its operands. The paper gives no
statistics of them; values that are computed as the kernel runs are not kept here either.
"""

import re
import struct
from collections import Counter, defaultdict
from collections.abc import Sequence
from math import prod

from msgspec import Struct, field

from gpa_lsp.code.ptx.static_instructions import StaticInstruction, split_opcode
from gpa_lsp.code.symbolic_accesses.requests import WARP_LANES
from gpa_lsp.diagnosis.analyses.answers import Answer, Table, list_columns
from gpa_lsp.execution.emulator.model import Emulation
from gpa_lsp.execution.prediction.fault_answer import name_place
from gpa_lsp.execution.volumes.expressions import IssuedWork
from gpa_lsp.foundation.numbers import Cell, format_file_value
from gpa_lsp.foundation.prose import count, percent, say

_DOUBLE, _SINGLE = ".f64", ".f32"
_ONE = ("add", "sub", "mul", "div", "rcp", "sqrt", "rsqrt", "sin", "cos", "ex2", "lg2", "tanh", "min", "max")
_TWO = ("fma", "mad")


class FloatingWork(Struct, frozen=True, kw_only=True):
    """Mean floating-point operations of a thread; a multiply-add counts two."""

    single: float  # in single precision
    double: float  # in double precision

    @property
    def total(self) -> float:
        """Operations in either precision."""
        return self.single + self.double

    @property
    def is_double(self) -> bool:
        """Whether double precision limits: its peak is half of single's at best."""
        return 2 * self.double > self.single


def count_flops(emulation: Emulation) -> FloatingWork:
    """Operations per thread of the executed blocks.

    Divisions, roots and functions count one, however many instructions they become; halves and matrix instructions do
    not count here.
    """
    sums = {_SINGLE: 0.0, _DOUBLE: 0.0}
    for instruction, lanes in zip(emulation.instructions, emulation.counts.lane_executions, strict=True):
        opcode = _read_opcode(instruction.text)
        first, _, suffixes = opcode.partition(".")
        weight = 2 if first in _TWO else 1 if first in _ONE else 0
        kind = next((one for one in sums if f".{suffixes}".endswith(one)), None)
        if weight and kind is not None:
            sums[kind] += weight * float(lanes)
    threads = _count_threads(emulation)
    return FloatingWork(single=sums[_SINGLE] / threads, double=sums[_DOUBLE] / threads)


_FREE = frozenset({"mov", "cvta", "isspacep", "bra.uni"})  # Registers are renamed, addresses of spaces are the same
_ADDITIONS = frozenset({"add", "sub", "addc", "subc", "sad", "neg", "abs"})
_BITWISE = frozenset({"and", "or", "xor", "not", "lop3"})
_LOGIC = _BITWISE | {"shl", "shr", "shf", "prmt", "bfe", "bfi", "min", "max", "setp", "set", "selp", "slct"}
_PRODUCTS = frozenset({"mul", "mad", "madc", "mul24", "mad24", "dp4a", "dp2a"})
_SINGLES = frozenset({"add", "sub", "mul", "fma", "mad"})
_SPECIAL = frozenset({"sin", "cos", "ex2", "lg2", "tanh", "rcp", "rsqrt", "sqrt", "popc", "clz", "brev", "bfind"})
_MODIFIERS = frozenset({"abs", "neg", "cvt"})  # Of floats: modifiers of an operand or a result in machine code
_FLOATING = re.compile(r"\.(f16|f16x2|bf16|bf16x2|f32|f32x2|f64|tf32)\b")
_LONG = (".b64", ".s64", ".u64")
_REGISTER = re.compile(r"%[a-z]+\d+")
# Instructions of the usual path of operations that machine code has no instruction for, and the special functions
# among them: counted in the code of ptxas 13.0 for sm_80. Divisions of integers are without the eight instructions that
# depend on the divisor alone, which often stays the same.
_DIVISION, _LONG_DIVISION, _SINGLE_DIVISION, _DOUBLE_DIVISION = (10, 0), (70, 3), (9, 1), (10, 1)
_WHOLE_DIVISION_BITS = "64"


def count_issued(emulation: Emulation) -> IssuedWork:
    """Warp instructions of machine code per thread of the executed blocks, the least that the emulated PTX becomes.

    Instructions that ptxas joins with another count once: a product and the addition behind it, two additions, two
    bitwise operations, a shift to the left and an addition, comparisons and their combinations. Over the instructions
    that the machine code of 27 fixtures issues on a GPU of 8.6, this is .91 in the median, and .67 to 1.34 without
    recursion, which saves registers; over those of its ALU pipe 1.0, and .4 to 1.9.
    """
    sums: dict[str, float] = {}
    joined = _find_joined(emulation.instructions)
    for instruction, warps in zip(emulation.instructions, emulation.counts.warp_executions.tolist(), strict=True):
        if warps and instruction.index not in joined:
            for name, count in _translate(_read_opcode(instruction.text)).items():
                sums[name] = sums.get(name, 0.0) + count * warps
    threads = _count_threads(emulation)
    return IssuedWork(**{name: total / threads for name, total in sums.items()})


def _find_joined(instructions: Sequence[StaticInstruction]) -> set[int]:
    """Indexes of instructions that ptxas joins with another one."""
    uses: Counter[tuple[object, ...]] = Counter()
    writers: dict[tuple[object, ...], tuple[int, str]] = {}
    gone: set[int] = set()
    full: set[int] = set()  # does the work of another already
    for one in instructions:
        for register in _REGISTER.findall(one.text)[_writes(one.text) :]:
            uses[one.function, one.calls, register] += 1
    for one in instructions:
        registers = _REGISTER.findall(one.text)
        kind = _classify(_read_opcode(one.text))
        for register in registers[1:] if _writes(one.text) else ():
            place = (one.function, one.calls, register)
            if one.index in full or uses[place] != 1 or place not in writers:
                continue
            writer, written = writers[place]
            joins = _JOINED.get((written, kind))
            if joins is None or writer in gone or writer in full:
                continue
            gone.add(writer if joins else one.index)
            full.add(one.index if joins else writer)
        if registers and _writes(one.text):
            writers[one.function, one.calls, registers[0]] = one.index, kind
    return gone


# Kinds of the writer of a register and of its only reader → whether the reader does the work of both; else the writer
_JOINED = {
    ("product", "addition"): False, ("addition", "addition"): True, ("bitwise", "bitwise"): True,
    ("shl", "addition"): True, ("setp", "predicate"): False, ("long product", "long addition"): False,
}  # fmt: skip


def _classify(opcode: str) -> str:
    first, *suffixes = opcode.split(".")
    if _FLOATING.search(opcode) is not None:
        return ""
    is_long = "wide" in suffixes or opcode.endswith(_LONG)
    if first in _BITWISE:
        return "" if is_long else "predicate" if "pred" in suffixes else "bitwise"
    if first in ("add", "sub"):
        return "long addition" if is_long else "addition"
    if first == "mul":
        return "long product" if "wide" in suffixes else "" if is_long else "product"
    return first if first == "setp" or (first == "shl" and not is_long) else ""


def _writes(text: str) -> bool:
    """Whether the first register is written."""
    return not text.startswith(("st.", "red.", "bra", "bar", "call", "ret", "exit", "membar", "fence", "cp."))


def _translate(opcode: str) -> dict[str, float]:
    """Machine instructions of a PTX instruction, by field of :class:`IssuedWork`."""
    first, _, suffixes = opcode.partition(".")
    if first in _FREE or opcode in _FREE or opcode.startswith("ld.param"):
        return {}
    if first in ("div", "rem") or (first == "sqrt" and ".rn" in opcode):
        return _divide(suffixes)
    if first in _SPECIAL:
        return {"instructions": 1.0, "special": 1.0}
    if _FLOATING.search(opcode) is not None:
        return _float(first, suffixes)
    if first == "cvt":
        is_free = any(f".{one}" in _LONG for one in suffixes.split("."))  # pairs of registers
        return {} if is_free else {"instructions": 1.0, "logic": 1.0}
    registers = 2.0 if opcode.endswith(_LONG) else 1.0
    if first in _PRODUCTS:
        count = registers + 1.0 if registers > 1.0 and "lo" in suffixes.split(".") else 1.0
        return {"instructions": count, "products": count}
    if first in _ADDITIONS:
        # the carry is mostly added by the other pipe
        return {"instructions": registers, "additions": 1.0} | ({"products": 1.0} if registers > 1.0 else {})
    return {"instructions": registers, "logic": registers} if first in _LOGIC else {"instructions": 1.0}


def _float(first: str, suffixes: str) -> dict[str, float]:
    kinds = suffixes.split(".")
    if first == "cvt" and _is_integer(kinds[-1]) != _is_integer(kinds[-2]):
        return {"instructions": 1.0} if "f64" in kinds else {"instructions": 1.0, "special": 1.0}
    if first in _MODIFIERS:
        return {} if first != "cvt" or kinds[-1] == kinds[-2] else {"instructions": 1.0}
    if kinds[-1] == "f32" and first in _SINGLES:
        return {"instructions": 1.0, "singles": 1.0}
    return {"instructions": 1.0, "logic": 1.0} if kinds[-1] == "f32" and first in _LOGIC else {"instructions": 1.0}


def _is_integer(kind: str) -> bool:
    return kind[0] in "sub" and not kind.startswith("bf")


def _divide(suffixes: str) -> dict[str, float]:
    if suffixes.endswith(("f32", "f64")):
        if "approx" in suffixes or "full" in suffixes:
            return {"instructions": 2.0, "special": 1.0, "singles": 1.0}
        count, special = _SINGLE_DIVISION if suffixes.endswith("f32") else _DOUBLE_DIVISION
        found = {"instructions": float(count), "special": float(special)}
        return found | ({"singles": float(count - special)} if suffixes.endswith("f32") else {})
    count, special = _LONG_DIVISION if suffixes.endswith(_WHOLE_DIVISION_BITS) else _DIVISION
    half = (count - special) / 2
    return {"instructions": float(count), "special": float(special), "products": half, "additions": half}


def _read_opcode(text: str) -> str:
    return text.split(None, 1)[0] if text else ""


def _count_threads(emulation: Emulation) -> int:
    return max(1, prod(emulation.block_threads) * len(emulation.executed_blocks))


_NAME = "emulated_operations"
_TITLE = "Arithmetic operations (emulated)"
_OPERATORS = frozenset(
    {
        "abs", "add", "addc", "and", "bfe", "bfi", "bfind", "brev", "clz", "cos", "div", "dp2a", "dp4a", "ex2", "fma", "lg2", "lop3", "mad",
        "mad24", "madc", "max", "min", "mma", "mul", "mul24", "neg", "not", "or", "popc", "rcp", "rem", "rsqrt", "sad", "shf", "shl", "shr", "sin",
        "sqrt", "sub", "subc", "tanh", "wgmma", "wmma", "xor",
    }
)  # fmt: skip
_TYPE = re.compile(r"[usbf](?:8|16|32|64)(?:x2)?|bf16(?:x2)?|tf32|e[45]m[23]")
_CONSTANT = re.compile(r"(?<=[ ,])(0[fF][0-9A-Fa-f]{8}|0[dD][0-9A-Fa-f]{16}|-?\d+)(?=,|$)")
_MOST_ROWS = 40
_MOST_CONSTANTS = 3


class _Operations(Struct):
    """Executions of an operator at a line."""

    warps: int = 0
    lanes: int = 0
    constants: dict[str, None] = field(default_factory=dict)


def answer_operations(emulation: Emulation) -> Answer:
    """Operations of the executed blocks by line, operator and type: executions by warps, and by threads."""
    found: defaultdict[tuple[str, str, str], _Operations] = defaultdict(_Operations)
    counts = emulation.counts
    for instruction, warps, lanes in zip(
        emulation.instructions, counts.warp_executions.tolist(), counts.lane_executions.tolist(), strict=True
    ):
        operation = read_operation(instruction.text) if warps else None
        if operation is None:
            continue
        one = found[(name_place(instruction.chain), *operation)]
        one.warps += warps
        one.lanes += lanes
        one.constants.update(dict.fromkeys(map(_write_constant, _CONSTANT.findall(instruction.text))))
    if not found:
        return Answer(
            analysis=_NAME, title=_TITLE, summary=say("No arithmetic operation was executed."), is_known=False
        )
    lanes = sum(one.lanes for one in found.values())
    by_type: defaultdict[str, int] = defaultdict(int)
    for (_, _, kind), one in found.items():
        by_type[kind] += one.lanes
    kind, most = max(by_type.items(), key=lambda pair: pair[1])
    return Answer(
        analysis=_NAME,
        title=_TITLE,
        summary=say(
            "{operations} by threads, {share} of them of type {kind}.",
            operations=count(lanes, "operation"),
            share=percent(most / max(1, lanes)),
            kind=kind,
        ),
        tables=(_tabulate(found),),
    )


def read_operation(text: str) -> tuple[str, str] | None:
    """Operator and type of a PTX instruction; None for one that computes nothing.

    >>> read_operation("fma.rn.f32 %f1, %f2, %f3, 0f3F800000"), read_operation("mul.wide.u32 %rd1, %r1, 4"), read_operation("bra L")
    (('fma', 'f32'), ('mul', 'u32'), None)
    """
    operator, *suffixes = split_opcode(text)
    kinds = [one for one in suffixes if _TYPE.fullmatch(one)]
    return (operator, kinds[-1]) if operator in _OPERATORS and kinds else None


def _write_constant(text: str) -> str:
    """A literal as a person would write it.

    >>> _write_constant("0f3F000000"), _write_constant("0d4000000000000000"), _write_constant("-4")
    ('0.5', '2', '-4')
    """
    kind, digits = text[:2].lower(), text[2:]
    if kind in ("0f", "0d"):
        return format_file_value(struct.unpack(">f" if kind == "0f" else ">d", bytes.fromhex(digits))[0])
    return text


def _tabulate(found: "dict[tuple[str, str, str], _Operations]") -> Table:
    ordered = sorted(found.items(), key=lambda pair: -pair[1].lanes)
    rows: list[tuple[Cell, ...]] = [
        (
            *key,
            one.warps,
            one.lanes,
            one.lanes / (one.warps * WARP_LANES),
            ", ".join(list(one.constants)[:_MOST_CONSTANTS]),
        )
        for key, one in ordered[:_MOST_ROWS]
    ]
    return Table(
        title="Operations by line",
        columns=list_columns(
            "line | operator | type | by warps [count] | by threads [count] | lanes [ratio] | constant operands"
        ),
        rows=tuple(rows),
        note=say("Operators and types are those of PTX; other operands are values of registers, which are not kept."),
    )
