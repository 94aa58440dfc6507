"""Loads, stores, atomic operations and copies → rows of machine code: :data:`ACCESSES`."""

import re
from collections.abc import Callable

from gpa_lsp.execution.emulator.semantics import atomics
from gpa_lsp.execution.simulator.execution.memory_spaces import FIRST_BANK, GENERIC, MemorySpace
from gpa_lsp.execution.simulator.execution.operand_values import (
    RZ,
    SIZES,
    MachineInstruction,
    find_width,
    is_predicate,
    list_addresses,
    list_term_resources,
    list_terms,
)
from gpa_lsp.execution.simulator.execution.row_operands import (
    FILES,
    NotLoweredError,
    Row,
    RowOperands,
    encode_out,
    encode_predicate,
    name_value,
)
from gpa_lsp.execution.simulator.execution.walk_model import MEMORIES, Code, Flag
from gpa_lsp.execution.simulator.execution.warp_state import WARP_LANES

_SPACES = {
    "LDG": MemorySpace.GLOBAL, "STG": MemorySpace.GLOBAL, "LDS": MemorySpace.SHARED, "STS": MemorySpace.SHARED, "LDL": MemorySpace.LOCAL,
    "STL": MemorySpace.LOCAL, "LD": GENERIC, "ST": GENERIC, "ATOM": GENERIC, "ATOMG": MemorySpace.GLOBAL, "ATOMS": MemorySpace.SHARED,
    "RED": MemorySpace.GLOBAL, "REDG": MemorySpace.GLOBAL,
}  # fmt: skip
_ROW_BYTES, _ROWS = 16, 8  # of the matrices of LDSM


def _find_address(low: RowOperands, one: MachineInstruction, place: int, space: int) -> tuple[list[Row], int, Row]:
    """Terms of an address, what is added to them, and the registers that they are in."""
    is_wide = space in (GENERIC, MemorySpace.GLOBAL) and one.has("E")
    terms, offset = list_terms(one.operands[place], is_wide=is_wide)
    sources = []
    for term in terms:
        if term.number != RZ:
            low.check_room(term.file, term.number, 1 + term.is_pair)
            source = {"file": FILES[term.file], "number": term.number}
            sources.append(source | {"scale": term.scale, "is_pair": int(term.is_pair)})
    return sources, offset, {"address": list_term_resources(terms)}


def _describe(low: RowOperands, one: MachineInstruction, space: int, place: int, width: int) -> Row:
    """What accesses of one address have in common."""
    sources, offset, resources = _find_address(low, one, place, space)
    return {
        "sources": sources,
        "address_sources": len(sources),
        "offset": offset,
        "space": space,
        "width": width,
        "words": max(width // 4, 1),
        **resources,
    }


def _find_sign_bytes(one: MachineInstruction) -> int:
    return next((SIZES[text] for text in one.modifiers if text in ("S8", "S16")), 0)


def _lower_load(low: RowOperands, one: MachineInstruction) -> Row:
    (place,), width = list_addresses(one), find_width(one)
    target = next(text for text in one.operands[:place] if not is_predicate(text))
    row = _describe(low, one, _SPACES[one.opcode], place, width)
    return row | {"code": Code.LOAD, "sign_bytes": _find_sign_bytes(one), **low.target(target, row["words"])}


def _lower_store(low: RowOperands, one: MachineInstruction) -> Row:
    (place,), width = list_addresses(one), find_width(one)
    row, given = _describe(low, one, _SPACES[one.opcode], place, width), one.operands[place + 1]
    return row | {
        "code": Code.STORE,
        **low.target(given, row["words"]),
        "read": low.list_resources(given, row["words"]),
    }


_CONSTANT = re.compile(r"c\[0x([0-9a-f]+)\](\[.*\])")


def _lower_constant_load(low: RowOperands, one: MachineInstruction) -> Row:
    """LDC and its uniform forms: from a bank, at an address that may have a register."""
    found = _CONSTANT.fullmatch(one.operands[1])
    if found is None or one.has("IL") or one.has("ISL") or FIRST_BANK + int(found[1], 16) >= MEMORIES:
        raise NotLoweredError
    terms, offset = list_terms(found[2], is_wide=False)
    width = find_width(one)
    return {
        "code": Code.LOAD_CONSTANT,
        "flags": Flag.ASKED,
        "sources": [
            low.word(f"{term.file}{term.number}") | {"scale": term.scale} for term in terms if term.number != RZ
        ],
        "address_sources": sum(term.number != RZ for term in terms),
        "address": list_term_resources(terms),
        "offset": offset,
        "space": FIRST_BANK + int(found[1], 16),
        "width": width,
        "sign_bytes": _find_sign_bytes(one),
        **low.target(one.operands[0], max(width // 4, 1)),
    }


def _lower_copy(low: RowOperands, one: MachineInstruction) -> Row:
    """LDGSTS: from global to shared memory, zeros where its last predicate does not hold."""
    to, place = list_addresses(one)
    row = _describe(low, one, MemorySpace.GLOBAL, place, find_width(one))
    targets, offset, resources = _find_address(low, one, to, MemorySpace.SHARED)
    wanted = next((text for text in one.operands[place + 1 :] if is_predicate(text)), None)
    return row | {
        "code": Code.COPY,
        "flags": Flag.ASKED,
        "sources": row["sources"] + targets,
        "copied_sources": len(targets),
        "target_offset": offset,
        "address": row["address"] + resources["address"] + low.list_predicate_resources(wanted),
        "predicates": [] if wanted is None else [encode_predicate(wanted)],
        "target": -1,
    }


def _lower_matrix_load(low: RowOperands, one: MachineInstruction) -> Row:
    """LDSM: rows of 16 bytes, whose addresses lanes hold for others."""
    (place,) = list_addresses(one)
    count = next((int(text) for text in one.modifiers if text in ("1", "2", "4")), 1)
    row = _describe(low, one, MemorySpace.SHARED, place, _ROW_BYTES)
    return row | {"code": Code.LOAD_MATRIX, "tables": [min(_ROWS * count, WARP_LANES)]}


def _lower_space_query(low: RowOperands, one: MachineInstruction) -> Row:
    """QSPC: whether a generic address lies in a space."""
    out, _, operand = one.operands
    (term,), offset = list_terms(operand, is_wide=one.has("E"))
    space = next(number for name, number in (("G", 0), ("S", 1), ("L", 2)) if one.has(name))
    low.check_room(term.file, term.number, 1 + term.is_pair)
    source = {"file": FILES[term.file], "number": term.number, "is_pair": int(term.is_pair), "added": offset}
    return {"sources": [source], **name_value("lies_in", space), "outs": [encode_out(out)], "target": -1}


_OPERATIONS = {
    "ADD": atomics.ADD, "MIN": atomics.MIN, "MAX": atomics.MAX, "AND": atomics.AND, "OR": atomics.OR, "XOR": atomics.XOR,
    "EXCH": atomics.EXCHANGE, "INC": atomics.INCREMENT, "DEC": atomics.DECREMENT, "CAS": atomics.COMPARE_AND_SWAP,
    "CAST": atomics.COMPARE_AND_SWAP,
}  # fmt: skip
_SIGNED = {atomics.MIN: atomics.MIN_SIGNED, atomics.MAX: atomics.MAX_SIGNED}
_UNKNOWN = -1  # Operation of halves: of what it leaves in memory nothing is known
_HALVES = ("F16", "BF16")


def _find_operation(one: MachineInstruction) -> tuple[int, int]:
    """What an atomic operation does, and to how many bytes."""
    size = 8 if any(map(one.has, ("64", "U64", "S64", "F64"))) else 4
    if any(text.startswith(("128", "256", "PACKED")) for text in one.modifiers):
        raise NotLoweredError
    if any(text.startswith(_HALVES) for text in one.modifiers):
        return _UNKNOWN, size
    if one.has("POPC"):
        return atomics.ADD, size
    found = next(_OPERATIONS[text] for text in one.modifiers if text in _OPERATIONS)
    if one.has("F32") or one.has("F64"):
        found = {atomics.ADD: atomics.ADD_FLOAT, atomics.EXCHANGE: found, atomics.COMPARE_AND_SWAP: found}.get(
            found, _UNKNOWN
        )
    return (_SIGNED.get(found, found) if one.has("S32") or one.has("S64") else found), size


def _lower_atomic(low: RowOperands, one: MachineInstruction) -> Row:
    """ATOM, ATOMG, ATOMS, RED, REDG: values behind the address, the one that is compared with first."""
    (place,), (operation, width) = list_addresses(one), _find_operation(one)
    row = _describe(low, one, _SPACES[one.opcode], place, width)
    given = [text for text in one.operands[place + 1 :] if not is_predicate(text)]
    target = next((text for text in one.operands[:place] if not is_predicate(text)), "RZ")
    values = [low.pair(text) if width == 8 else low.word(text) for text in given]
    if one.has("POPC"):  # it counts lanes
        values = [{"value": 1}]
    says, outs = one.has("CAST"), [text for text in one.operands[:place] if is_predicate(text)]
    return row | {
        "code": Code.ATOMIC,
        "flags": Flag.SUCCEEDS if says else 0,
        "sources": row["sources"] + values,
        "tables": [operation],
        "outs": [encode_out(outs[0])] if says and target == "RZ" and outs else [],
        "read": [number for text in given for number in low.list_resources(text, row["words"])],
        **low.target(target, row["words"]),
    }


# By opcode
ACCESSES: dict[str, Callable[[RowOperands, MachineInstruction], Row]] = {
    **dict.fromkeys(("LDG", "LDS", "LDL", "LD"), _lower_load),
    **dict.fromkeys(("STG", "STS", "STL", "ST"), _lower_store),
    **dict.fromkeys(("ATOM", "ATOMG", "ATOMS", "RED", "REDG"), _lower_atomic),
    **dict.fromkeys(("LDC", "ULDC", "LDCU"), _lower_constant_load),
    "LDGSTS": _lower_copy,
    "LDSM": _lower_matrix_load,
    "QSPC": _lower_space_query,
}
