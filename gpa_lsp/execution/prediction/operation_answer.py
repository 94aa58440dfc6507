"""Arithmetic operations of a kernel by line, operator and type, with their constant operands: :func:`answer_operations`.

Source: CUDAAdvisor, section 3.1 (II): the operator of every arithmetic computation and the symbolic values of its operands. The paper gives no
statistics of them; values that are computed as the kernel runs are not kept here either.
"""

import re
import struct
from collections import defaultdict

from msgspec import Struct, field

from gpa_lsp.code.ptx.static_instructions import split_opcode
from gpa_lsp.code.symbolic_accesses.requests import WARP_LANES
from gpa_lsp.diagnosis.analyses.answers import Answer, Table, list_columns
from gpa_lsp.execution.emulator.model import Emulation
from gpa_lsp.execution.prediction.fault_answer import name_place
from gpa_lsp.foundation.numbers import Cell, format_file_value
from gpa_lsp.foundation.prose import count, percent, say

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
