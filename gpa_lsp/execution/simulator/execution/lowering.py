"""Instructions → rows that :mod:`walk_steps` executes: :class:`Lowering`."""

import re
from collections.abc import Callable

from gpa_lsp.execution.emulator.engine.geometry import WARP_LANES
from gpa_lsp.execution.simulator.execution.memory_spaces import DISTRIBUTED, FIRST_BANK, GENERIC, MemorySpace
from gpa_lsp.execution.simulator.execution.operand_values import (
    RZ,
    SIZES,
    MachineInstruction,
    Roles,
    UnreadOperandError,
    find_atomic,
    find_comparison_roles,
    find_roles,
    find_width,
    is_predicate,
    is_shared_atomic,
    list_addresses,
    list_term_resources,
    list_terms,
)
from gpa_lsp.execution.simulator.execution.row_operands import (
    FILES,
    FLOATS,
    NotLoweredError,
    Row,
    RowOperands,
    encode_out,
    encode_predicate,
    flag,
    name_value,
)
from gpa_lsp.execution.simulator.execution.walk_model import (
    MEMORIES,
    MOST_OUTS,
    MOST_PREDICATES,
    MOST_SOURCES,
    VOTES,
    Code,
    Extension,
    File,
    Flag,
    Join,
    PredicateBit,
    Reduction,
)

_TRUTHS = {"LT": 1, "EQ": 2, "GT": 4, "LE": 3, "GE": 6, "NE": 5}  # Less, equal and more
_ZEROS = ("RZ", "URZ")


class Lowering(RowOperands):
    """Lowers the instructions of one launch."""

    def lower(self, instruction: MachineInstruction) -> Row | None:
        """The row of an instruction; None for unknown ones."""
        opcode = instruction.opcode
        name = _find_name(opcode)
        lower = LOWERED.get(name)
        if lower is None:
            return None
        try:
            row = lower(self, instruction)
            self._check(row, is_uniform=row.get("target_file", -1) == FILES["UR"] or opcode != name)
        except (NotLoweredError, UnreadOperandError, ValueError, LookupError, StopIteration):
            return None
        return row

    def _check(self, row: Row, *, is_uniform: bool) -> None:
        """Refuse rows with too many operands, and uniform results of values that differ by lane."""
        sources, predicates, outs = (row.get(name, ()) for name in ("sources", "predicates", "outs"))
        if len(sources) > MOST_SOURCES or len(predicates) > MOST_PREDICATES or len(outs) > MOST_OUTS:
            raise NotLoweredError
        if (
            is_uniform
            and row.get("code", 0) < Code.SHUFFLE
            and (
                any(one.get("file") == File.REGISTER for one in sources)
                or any(one >= 0 and not one & PredicateBit.UNIFORM for one in (*predicates, *outs))
            )
        ):
            raise NotLoweredError


def _lower_move(low: RowOperands, one: MachineInstruction) -> Row:
    words = 1 + one.has("64")
    source = low.pair(one.operands[1]) if words > 1 else low.word(one.operands[1])
    return {"code": Code.ADD, "sources": [source], **low.target(one.operands[0], words)}


def _lower_add(low: RowOperands, one: MachineInstruction) -> Row:
    roles = find_roles(one.operands)
    row = {"code": Code.ADD, **low.target(roles.target, 1 + one.has("64"))}
    if one.has("64"):
        return row | {"sources": list(map(low.pair, roles.sources))}
    if not roles.predicates_read and all(text.endswith("T") for text in roles.predicates_written):
        return row | {"sources": [low.word(text) for text in roles.sources if text not in _ZEROS]}
    return row | {"sources": list(map(low.carried, roles.sources)), **_find_carries(one, roles)}


def _find_carries(one: MachineInstruction, roles: Roles) -> Row:
    return {
        "predicates": list(map(encode_predicate, roles.predicates_read)) if one.has("X") else [],
        "outs": list(map(encode_out, roles.predicates_written)),
    }


def _lower_multiply(low: RowOperands, one: MachineInstruction) -> Row:
    roles = find_roles(one.operands)
    first, second, third = roles.sources
    carries = _find_carries(one, roles)
    if one.has("WIDE") or one.has("HI"):
        extension = Extension.ZERO if one.has("U32") else Extension.SIGN
        return {
            "code": Code.MULTIPLY_WIDE,
            "flags": 0 if one.has("WIDE") else Flag.UPPER,
            "sources": [low.word(first, extension), low.word(second, extension), low.pair(third)],
            **carries,
            "outs": carries["outs"][:1],
            **low.target(roles.target, 1 + one.has("WIDE")),
        }
    row: Row = {"code": Code.MULTIPLY, **low.target(roles.target)}
    if roles.predicates_read or any(text >= 0 for text in carries["outs"]):
        return row | {"sources": [low.word(first), low.word(second), low.carried(third)], **carries}
    if first in _ZEROS or second in _ZEROS:
        return row | {"code": Code.ADD, "sources": [low.word(third)]}
    return row | {"sources": list(map(low.word, roles.sources))}


def _lower_load_address(low: RowOperands, one: MachineInstruction) -> Row:
    roles = find_roles(one.operands)
    *listed, shift = roles.sources
    is_extended = one.has("SX32")
    first = low.word(listed[0], Extension.SIGN if is_extended else Extension.ZERO)
    upper = low.word(listed[2]) if len(listed) > 2 and not is_extended else {"value": 0}
    return {
        "code": Code.LOAD_ADDRESS,
        "flags": flag(one, HI=Flag.HIGH),
        "sources": [first, upper, low.carried(listed[1])],
        "tables": [int(shift, 16) & 31],
        **_find_carries(one, roles),
        **low.target(roles.target),
    }


def _lower_logic(low: RowOperands, one: MachineInstruction) -> Row:
    roles = find_roles(one.operands)
    return {
        "code": Code.LOGIC,
        "flags": flag(one, PAND=Flag.AND),
        "sources": [low.word(text) for text in roles.sources[:3]],
        "tables": [int(roles.sources[3], 16)],
        "predicates": list(map(encode_predicate, roles.predicates_read)),
        "outs": [encode_predicate(text) for text in roles.predicates_written if not text.endswith("T")][:1],
        **low.target(roles.target),
    }


def _lower_predicate_logic(low: RowOperands, one: MachineInstruction) -> Row:
    del low
    tables = [int(text, 16) for text in one.operands if text.startswith("0x")]
    predicates = [text for text in one.operands if not text.startswith("0x")]
    reads = list(map(encode_predicate, predicates[2:5]))
    if len(reads) < 3 or not 1 <= len(tables) <= MOST_OUTS:
        raise NotLoweredError
    return {
        "code": Code.PREDICATE_LOGIC,
        "tables": tables,
        "predicates": reads,
        "outs": list(map(encode_out, predicates[: len(tables)])),
        "target": -1,
    }


def _lower_comparison(low: RowOperands, one: MachineInstruction) -> Row:
    roles = find_comparison_roles(one.operands)
    if one.has("64") or one.has("S64") or one.has("U64"):
        sources = list(map(low.pair, roles.sources[:2]))
        for source in sources if one.has("U64") or one.has("U32") else ():
            source["added"] += 1 << 63  # unsigned numbers are compared as signed ones that are so much smaller
    else:
        extension = Extension.ZERO if one.has("U32") else Extension.SIGN
        sources = [low.word(text, extension) for text in roles.sources[:2]]
    return {
        "code": Code.COMPARE,
        "sources": sources,
        "predicates": [encode_predicate(text) for text in roles.predicates_read[: 1 + one.has("EX")]],
        "outs": list(map(encode_out, roles.predicates_written)),
        "tables": [next(_TRUTHS[text] for text in one.modifiers if text in _TRUTHS) | (2 if one.has("EX") else 0)],
        "join": next(Join[text] for text in one.modifiers if text in Join.__members__),
    }


def _lower_shift(low: RowOperands, one: MachineInstruction) -> Row:
    target, *sources = one.operands
    is_wide, wraps = one.has("U64") or one.has("S64"), one.has("W")
    flags = flag(one, L=Flag.LEFT, HI=Flag.UPPER, W=Flag.WRAPS, S32=Flag.SIGNED, S64=Flag.SIGNED)
    return {
        "code": Code.SHIFT,
        "flags": flags,
        "sources": list(map(low.word, sources)),
        "tables": [63 if is_wide else 31 if wraps else 32],
        **low.target(target),
    }


def _lower_choice(low: RowOperands, one: MachineInstruction) -> Row:
    """SEL, IMNMX, VIMNMX, VIADDMNMX."""
    roles = find_roles(one.operands)
    adds = one.opcode.endswith("VIADDMNMX")
    if len(roles.sources) != 2 + adds or any(text[-1] != "T" for text in roles.predicates_written):
        raise NotLoweredError
    if any(text.startswith(("S16", "U16")) for text in one.modifiers):
        raise NotLoweredError
    row: Row = {
        "predicates": [encode_predicate(roles.predicates_read[0])],
        **low.target(roles.target, 1 + one.has("64")),
    }
    if one.has("64"):
        return row | name_value("choose") | {"sources": list(map(low.pair, roles.sources))}
    extension = Extension.ZERO if one.has("U32") else Extension.SIGN
    row["sources"] = [low.word(text, extension) for text in roles.sources]
    if adds:
        return row | name_value("choose_sum", not one.has("U32"))
    return row | {"code": Code.SELECT if one.opcode.endswith("SEL") else Code.EXTREME}


def _lower_permute(low: RowOperands, one: MachineInstruction) -> Row:
    target, *sources = one.operands
    return {"code": Code.PERMUTE, "sources": list(map(low.word, sources)), **low.target(target)}


def _lower_bits(low: RowOperands, one: MachineInstruction) -> Row:
    """SGXT, IABS, POPC, FLO, BREV, BMSK."""
    roles = find_roles(one.operands)
    name = one.opcode.removeprefix("U")
    is_signed = not one.has("U32")
    literal = {"SGXT": int(is_signed), "FLO": int(is_signed) | 2 * one.has("SH")}.get(name, 0)
    sources = roles.sources if name in ("SGXT", "BMSK") else roles.sources[-1:]
    row = {"sources": list(map(low.word, sources)), **name_value(_BITS[name], literal), **low.target(roles.target)}
    return row | {"outs": list(map(encode_out, roles.predicates_written))} if name == "FLO" else row


_BITS = {
    "SGXT": "extend", "IABS": "size", "POPC": "count", "FLO": "leading_one", "BREV": "reverse", "BMSK": "mask_of_ones",
}  # fmt: skip


def _lower_predicates_to_register(low: RowOperands, one: MachineInstruction) -> Row:
    """P2R, UP2UR: predicates as bits, under a mask, into a register's byte."""
    target, file, before, mask = one.operands
    if file not in ("PR", "UPR"):
        raise NotLoweredError
    byte = next((int(text[1]) for text in one.modifiers if text in ("B0", "B1", "B2", "B3")), 0)
    uniform = PredicateBit.UNIFORM if file == "UPR" else 0
    return {
        "code": Code.FROM_PREDICATES,
        "sources": [low.word(before)],
        "tables": [8 * byte, uniform],
        "offset": int(mask, 16) & 127,
        **low.target(target),
    }


def _lower_register_to_predicates(low: RowOperands, one: MachineInstruction) -> Row:
    """R2P: bits to the predicates under a mask."""
    sources = [low.word(one.operands[1])]
    return {"code": Code.TO_PREDICATES, "sources": sources, "offset": int(one.operands[2], 16) & 127, "target": -1}


# Accesses

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
    """Fields that accesses of one address share."""
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
    spaces = {"G": MemorySpace.GLOBAL, "S": MemorySpace.SHARED, "L": MemorySpace.LOCAL, "D": DISTRIBUTED}
    space = next(number for name, number in spaces.items() if one.has(name))
    low.check_room(term.file, term.number, 1 + term.is_pair)
    source = {"file": FILES[term.file], "number": term.number, "is_pair": int(term.is_pair), "added": offset}
    return {"sources": [source], **name_value("lies_in", space), "outs": [encode_out(out)], "target": -1}


def _lower_atomic(low: RowOperands, one: MachineInstruction) -> Row:
    """ATOM, ATOMG, ATOMS, RED, REDG: values behind the address, the one that is compared with first.

    The predicate of ``ATOM``, in builds for debugging, says whether the memory that a generic address turns out to be in has the operation: of
    shared memory, code that nvcc writes goes on with ``QSPC`` and a loop around ``ATOMS.CAST`` for sums of floats and of 64 bits, of local memory
    with a load and a store for all.
    """
    (place,), (operation, width) = list_addresses(one), find_atomic(one)
    row = _describe(low, one, _SPACES[one.opcode], place, width)
    given = [text for text in one.operands[place + 1 :] if not is_predicate(text)]
    target = next((text for text in one.operands[:place] if not is_predicate(text)), "RZ")
    values = [low.pair(text) if width == 8 else low.word(text) for text in given]
    if one.has("POPC"):  # it counts lanes
        values = [{"value": 1}]
    says, outs = one.has("CAST"), [text for text in one.operands[:place] if is_predicate(text)]
    tries = one.opcode == "ATOM" and not says and outs not in ([], ["PT"])
    return row | {
        "code": Code.ATOMIC,
        "flags": (Flag.SUCCEEDS if says else Flag.TRIES if tries else 0)
        | (0 if is_shared_atomic(operation, width) else Flag.GLOBAL_ONLY),
        "sources": row["sources"] + values,
        "tables": [operation],
        "outs": [encode_out(outs[0])] if tries or (says and target == "RZ" and outs) else [],
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


# Other registers, and what changes none


def _lower_special(low: RowOperands, one: MachineInstruction) -> Row:
    """S2R, S2UR, CS2R: special registers, of the last one with zeros above."""
    target, name = one.operands
    words = 2 if one.opcode == "CS2R" and not one.has("32") else 1
    sources = [{"file": File.SPECIAL, "number": low.specials[name]}]
    return {"code": Code.ADD, "sources": sources, **low.target(target, words)}


def _lower_nothing(low: RowOperands, one: MachineInstruction) -> Row:
    """Instructions that change no register."""
    del low, one
    return {"code": Code.SKIP}


# Between lanes


_SHUFFLES = {"UP": 0, "DOWN": 1, "BFLY": 2, "IDX": 3}


def _lower_shuffle(low: RowOperands, one: MachineInstruction) -> Row:
    """SHFL: values of other lanes."""
    inside, target, *sources = one.operands
    return {
        "code": Code.SHUFFLE,
        "sources": list(map(low.word, sources)),
        "tables": [_SHUFFLES[one.modifiers[0]]],
        "outs": [encode_out(inside)],
        **low.target(target),
    }


def _lower_vote(low: RowOperands, one: MachineInstruction) -> Row:
    """VOTE, VOTEU: which of the lanes hold a predicate."""
    *rest, chosen = one.operands
    return {
        "code": Code.VOTE,
        "predicates": [encode_predicate(chosen)],
        "tables": [next(VOTES.index(text) for text in one.modifiers if text in VOTES)],
        "outs": [encode_out(text) for text in rest if is_predicate(text)][:1],
        **low.target(next((text for text in rest if not is_predicate(text)), "RZ")),
    }


def _lower_match(low: RowOperands, one: MachineInstruction) -> Row:
    """MATCH: lanes with the same value."""
    if one.has("U64"):
        raise NotLoweredError
    first, *_, value = one.operands
    return {
        "code": Code.MATCH,
        "sources": [low.word(value)],
        "tables": [int(one.has("ALL"))],
        "outs": [encode_out(first)] if is_predicate(first) and one.has("ALL") else [],
        **low.target(next(text for text in one.operands if not is_predicate(text))),
    }


def _lower_reduction(low: RowOperands, one: MachineInstruction) -> Row:
    """REDUX: one value of all lanes'."""
    how = next((Reduction[text] for text in one.modifiers if text in Reduction.__members__), Reduction.AND)
    if one.has("S32") and how in (Reduction.MIN, Reduction.MAX):
        how = Reduction(how + Reduction.MIN_SIGNED - Reduction.MIN)
    target, value = one.operands
    return {"code": Code.REDUCE, "sources": [low.word(value)], "tables": [how], **low.target(target)}


def _lower_to_uniform(low: RowOperands, one: MachineInstruction) -> Row:
    """R2UR: the value of the first lane that executes."""
    *rest, target, value = one.operands
    if rest and not rest[0].endswith("T"):
        raise NotLoweredError
    return {"code": Code.FROM_FIRST, "sources": [low.word(value)], **low.target(target)}


_BARRIER = re.compile(r"B(\d+)")


def _find_barrier(operand: str) -> int | None:
    """The number of a convergence barrier; None for other operands."""
    found = _BARRIER.fullmatch(operand)
    return None if found is None else int(found[1])


def _lower_barrier_move(low: RowOperands, one: MachineInstruction) -> Row:
    """BMOV: a convergence barrier to a register or back."""
    target, source = one.operands
    into, outof = map(_find_barrier, one.operands)
    if into is not None and outof is None:
        return {"code": Code.ADD, "sources": [low.word(source)], "target_file": File.BARRIER, "target": into}
    if into is not None or outof is None:
        raise NotLoweredError
    sources = [{"file": File.BARRIER, "number": outof}]
    return {"code": Code.ADD, "sources": sources, "flags": flag(one, CLEAR=Flag.CLEARS), **low.target(target)}


def _lower_barrier_set(low: RowOperands, one: MachineInstruction) -> Row:
    """BSSY: the lanes that execute it will wait for each other."""
    del low
    sources, number = [{"file": File.EXECUTING}], _find_barrier(one.operands[0])
    if number is None:
        raise NotLoweredError
    return {"code": Code.ADD, "sources": sources, "target_file": File.BARRIER, "target": number}


def _lower_barrier_leave(low: RowOperands, one: MachineInstruction) -> Row:
    """BREAK: the lanes that execute it are waited for no longer."""
    del low
    if any(is_predicate(text) and not text.endswith("T") for text in one.operands):
        raise NotLoweredError
    number = next(found for text in one.operands if (found := _find_barrier(text)) is not None)
    return {"code": Code.LEAVE_BARRIER, "tables": [number], "target": -1}


# By opcode, what each does; uniform forms have a U in front. What moves control is executed by :mod:`walking`.
LOWERED: dict[str, Callable[[RowOperands, MachineInstruction], Row]] = {
    **dict.fromkeys(("MOV", "MOV32I"), _lower_move),
    **dict.fromkeys(("IADD3", "IADD", "VIADD"), _lower_add),
    "IMAD": _lower_multiply,
    "LEA": _lower_load_address,
    "LOP3": _lower_logic,
    "PLOP3": _lower_predicate_logic,
    "ISETP": _lower_comparison,
    "SHF": _lower_shift,
    **dict.fromkeys(("SEL", "IMNMX", "VIMNMX", "VIADDMNMX"), _lower_choice),
    "PRMT": _lower_permute,
    **dict.fromkeys(("SGXT", "IABS", "POPC", "FLO", "BREV", "BMSK"), _lower_bits),
    **dict.fromkeys(("P2R", "P2UR"), _lower_predicates_to_register),
    "R2P": _lower_register_to_predicates,
    **FLOATS,
    **ACCESSES,
    **dict.fromkeys(("S2R", "S2UR", "CS2R"), _lower_special),
    "SHFL": _lower_shuffle,
    **dict.fromkeys(("VOTE", "VOTEU"), _lower_vote),
    "MATCH": _lower_match,
    "REDUX": _lower_reduction,
    "R2UR": _lower_to_uniform,
    "BMOV": _lower_barrier_move,
    "BSSY": _lower_barrier_set,
    "BREAK": _lower_barrier_leave,
    **dict.fromkeys(
        (
            "NOP", "DEPBAR", "LDGDEPBAR", "MEMBAR", "ERRBAR", "CCTL", "CCTLL", "CGAERRBAR", "YIELD", "NANOSLEEP", "FENCE", "PREEXIT", "ACQBULK",
            "CCTLT", "ACQSHMINIT", "PMTRIG", "WARPGROUP",
        ),
        _lower_nothing,
    ),
}  # fmt: skip


def _find_name(opcode: str) -> str:
    return opcode if opcode in LOWERED else opcode.removeprefix("U")
