"""The SASS of a kernel as the simulator reads it: :class:`SassProgram`, a column per fact."""

import re
from enum import IntEnum

from gpa_lsp.analyses.mix.pipes import find_pipe
from gpa_lsp.arch.model import Architecture
from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.rows.model import KernelRows


class Kind(IntEnum):
    """How an instruction moves through an SM."""

    FIXED = 0
    LOAD = 1
    STORE = 2
    SHARED = 3
    SPECIAL = 4
    BARRIER = 5
    EXIT = 6
    BRANCH = 7
    ATOMIC = 8
    REDUCTION = 9
    MEMBAR = 10
    ASYNC_FENCE = 11


@dataclass(frozen=True, slots=True, kw_only=True)
class SassProgram:
    """The n rows of a kernel."""

    kind: list[int]
    pipe: list[int]
    interval: list[float]
    latency: list[float]
    stall: list[int]
    fall_through: list[float]
    unit: list[int]
    is_lg: list[bool]
    throttle: list[int]
    is_long: list[bool]
    uses_l1: list[bool]
    is_shared_unit: list[bool]
    is_async: list[bool]
    write_board: list[int]
    read_board: list[int]
    wait_mask: list[int]
    depbar_board: list[int]
    depbar_left: list[int]
    has_depbar: bool
    fetch_line: list[int]
    constant_line: list[int]


_MIO_THROTTLE, _TEX_THROTTLE = 12, 13
_GLOBAL_LOADS = ("LDG", "LD", "LDL", "TEX", "TLD", "TLD4", "SULD", "LDGSTS")
_STORES = ("STG", "ST", "STL", "SUST")
_SHARED = ("LDS", "STS", "LDSM", "ATOMS", "STSM", "MOVM")
_ATOMICS = ("ATOM", "ATOMG")
_REDUCTIONS = ("RED", "REDG", "SURED")
_BRANCHES = ("BRA", "BRX", "JMP", "JMX", "CALL", "RET", "BSYNC", "BREAK", "BRXU", "WARPSYNC", "YIELD", "NANOSLEEP")
_PIPES = {
    "alu": 1,
    "fma": 2,
    "fmaheavy": 3,
    "fp16": 4,
    "fp64": 5,
    "tensor": 6,
    "uniform": 7,
    "none": 0,
    "branch": 0,
    "cbu": 0,
    "xu": 8,
    "adu": 9,
    "lsu": 10,
    "tex": 11,
}
_CONSTANT = re.compile(r"c\[0x([0-9a-f]+)\]\[(?:0x([0-9a-f]+))?")
_DEPBAR = re.compile(r"DEPBAR\S*\s+SB([0-5])(?:,\s*(0x[0-9a-f]+))?")
_CODE_LINE = 128
_CONSTANT_LINE = 64


def read_program(rows: KernelRows, architecture: Architecture) -> SassProgram:
    """Everything the simulator asks of an instruction, looked up once."""
    columns: dict[str, list] = {name: [] for name in SassProgram.__dataclass_fields__ if name != "has_depbar"}
    control = rows.control
    base_lines = []
    offset = 0
    for function in rows.functions:
        base_lines.append(offset)
        offset += (int(function.pc_offsets[-1]) if len(function.pc_offsets) else 0) // _CODE_LINE + 9
    has_depbar = False
    for row in range(len(rows)):
        mnemonic, text = rows.mnemonic(row), rows.texts[row]
        name, *modifiers = mnemonic.split(".")
        facts = _describe(name, modifiers, mnemonic, text, architecture)
        board, left = -1, -1
        if name == "DEPBAR":
            found = _DEPBAR.search(text)
            if found is not None:
                board, left = int(found[1]), int(found[2] or "0x0", 16)
                has_depbar = True
        stall = max(1, int(control.stall_cycles[row])) + (2 if facts["kind"] in (Kind.BRANCH, Kind.EXIT) else 0)
        constant = -1
        found = _CONSTANT.search(text)
        if found is not None and found[2] is not None:
            constant = int(found[1], 16) * 4096 + int(found[2], 16) // _CONSTANT_LINE
        facts |= {
            "stall": stall,
            "fall_through": float(stall),
            "write_board": _board(int(control.write_barrier[row])),
            "read_board": _board(int(control.read_barrier[row])),
            "wait_mask": int(control.wait_mask[row]),
            "depbar_board": board,
            "depbar_left": left,
            "fetch_line": base_lines[int(rows.function_index[row])] + int(rows.pc_offsets[row]) // _CODE_LINE,
            "constant_line": constant if name not in ("LDC", "LDCU") else -1,
        }
        for key, value in facts.items():
            columns[key].append(value)
    return SassProgram(has_depbar=has_depbar, **columns)


def _board(number: int) -> int:
    return number if number < 6 else -1


def _rate(value: float | None, default: float) -> float:
    return value if value else default


def _describe(name: str, modifiers: list[str], mnemonic: str, text: str, architecture: Architecture) -> dict:
    rates = architecture.throughput
    pipe = find_pipe(mnemonic, architecture.name)
    facts = {
        "kind": Kind.FIXED,
        "pipe": _PIPES.get(pipe, 0),
        "interval": 1.0,
        "latency": 4.0,
        "unit": -1,
        "is_lg": False,
        "throttle": _MIO_THROTTLE,
        "is_long": False,
        "uses_l1": True,
        "is_shared_unit": False,
        "is_async": False,
    }
    width = 128 if "128" in modifiers else 64 if "64" in modifiers else 32
    extra = {32: 0.0, 64: 2.0, 128: 6.0}[width]
    l1 = architecture.hierarchy.l1_hit_cycles.value or 33.0
    if name in ("LDGDEPBAR", "ARRIVES"):
        return facts | {"kind": Kind.ASYNC_FENCE, "is_long": True, "latency": 20.0}
    if name in _GLOBAL_LOADS:
        strong = (
            any(one in modifiers for one in ("STRONG", "GPU", "SYS"))
            and name != "LDL"
            and "CONSTANT" not in modifiers
            and not _old_sys(modifiers, architecture)
        )
        return facts | {
            "kind": Kind.LOAD,
            "unit": 0,
            "is_lg": True,
            "is_long": True,
            "latency": l1 + extra,
            "uses_l1": not strong,
            "is_async": name == "LDGSTS",
        }
    if name in _STORES:
        return facts | {"kind": Kind.STORE, "unit": 0, "is_lg": True, "is_long": True, "latency": 14.0 + extra}
    if name in _ATOMICS:
        return facts | {"kind": Kind.ATOMIC, "unit": 0, "is_lg": True, "is_long": True, "latency": l1, "uses_l1": False}
    if name in _REDUCTIONS:
        return facts | {"kind": Kind.REDUCTION, "unit": 0, "is_lg": True, "is_long": True, "latency": l1}
    if name in _SHARED:
        shared = architecture.hierarchy.shared_cycles.value or 23.0
        return facts | {"kind": Kind.SHARED, "unit": 0, "latency": shared + {32: 0, 64: 0, 128: 2}[width]}
    if name == "BAR":
        is_wait = "ARV" not in modifiers
        return facts | {"kind": Kind.BARRIER if is_wait else Kind.FIXED}
    if name == "EXIT":
        return facts | {"kind": Kind.EXIT}
    if name in _BRANCHES:
        return facts | {"kind": Kind.BRANCH}
    if name in ("MEMBAR", "FENCE", "ERRBAR"):
        return facts | {"kind": Kind.MEMBAR if name == "MEMBAR" else Kind.FIXED}
    if name == "SHFL":
        return facts | {"kind": Kind.SHARED, "unit": 0, "latency": 23.0}
    if name in ("S2R", "S2UR", "B2R", "LDC", "LDCU", "R2UR", "MATCH", "REDUX", "CREDUX", "VOTEU") and name != "VOTEU":
        latency = {"LDC": 26.0, "LDCU": 26.0, "R2UR": 10.0}.get(name, 20.0)
        unit = 0 if "SR_TID" in text else 2
        return facts | {"kind": Kind.SPECIAL, "unit": unit, "latency": latency, "interval": 2.0, "is_shared_unit": True}
    if pipe == "xu":
        return facts | {
            "kind": Kind.SPECIAL,
            "unit": 1,
            "pipe": 8,
            "latency": 18.0,
            "interval": 1.0 / _rate(rates.mufu_instructions_per_cycle.value, 0.125) / 1.0,
        }
    if pipe == "fp64":
        rate = _rate(rates.fp64_instructions_per_cycle.value, 1 / 64)
        if rate < 0.1:
            return facts | {
                "kind": Kind.SPECIAL,
                "unit": 3,
                "throttle": _TEX_THROTTLE,
                "pipe": 5,
                "latency": 40.0,
                "interval": 16.0,
                "is_shared_unit": False,
            }
        return facts | {"interval": 1.0 / rate, "latency": 8.0}
    if pipe == "tensor":
        return facts | {"interval": 8.0 if "16816" in modifiers else 4.0, "latency": 20.0}
    if pipe == "fma":
        rate = rates.fp32_instructions_per_cycle.value
        if name.startswith("IMAD") or name in ("IMUL", "IDP", "IDP4A"):
            return facts | {
                "pipe": 3 if rate >= 1 else 2,
                "interval": 1.0 / _rate(rates.imad_instructions_per_cycle.value, 0.5),
            }
        if name.startswith("H"):
            return facts | {"interval": 1.0 / _rate(rates.fp16_instructions_per_cycle.value, 0.5)}
        return facts | {"interval": 1.0 / rate}
    if pipe == "fp16":
        return facts | {"interval": 1.0 / _rate(rates.fp16_instructions_per_cycle.value, 0.5)}
    if pipe == "alu":
        return facts | {"interval": 1.0 / _rate(rates.int32_logic_instructions_per_cycle.value, 0.5)}
    if pipe == "uniform":
        return facts | {"interval": 2.0}
    return facts


def _old_sys(modifiers: list[str], architecture: Architecture) -> bool:
    """On 7.0 every plain access carries .SYS."""
    return architecture.compute_capability[0] == 7 and "STRONG" not in modifiers
