"""What of an instruction is recorded: :func:`find_site`."""

from gpa_lsp.emulator.operations.matrix_addresses import matrix_addresses
from gpa_lsp.emulator.static_instructions import count_bytes_per_lane, describe_instruction
from gpa_lsp.instrumentation.model import Site, SiteKind
from gpa_lsp.ptx.model import Address, PtxFunction, PtxInstruction, PtxModule, Space

_ORDINARY = frozenset({"ld", "ldu", "st", "atom", "red"})
_ROWS = frozenset({"ldmatrix", "stmatrix"})
_BARRIER_VERBS = frozenset({"init", "arrive", "arrive_drop"})
_BARRIER_BYTES = 8
_UNRECORDED = frozenset(
    {"tex", "tld4", "suld", "sust", "sured", "cp", "multimem", "wgmma", "tcgen05", "st", "red", "wmma"}
)
"""Instructions that access memory; those that no site is found for are told."""
_HARMLESS = frozenset({"commit_group", "wait_group", "wait_all", "fence", "commit", "wait", "mma"})


def find_site(module: PtxModule, function: PtxFunction, instruction: PtxInstruction, static: int) -> Site | None:
    """The site of an instruction; None where nothing of it is recorded."""
    opcode, suffixes = instruction.opcode, instruction.suffixes
    if opcode == "bra":
        return Site(kind=SiteKind.BRANCH, static=static, instruction=instruction) if instruction.guard else None
    if opcode == "brx":
        return Site(kind=SiteKind.TABLE, static=static, instruction=instruction)
    if opcode == "mbarrier" and suffixes[:1] and suffixes[0] in _BARRIER_VERBS:
        space = Space.SHARED if any(word.startswith("shared") for word in suffixes) else Space.GENERIC
        return _make(static, instruction, space, _BARRIER_BYTES)
    if opcode in ("cp", "wmma") or opcode in _ROWS:
        return _find_move(instruction, static)
    if opcode not in _ORDINARY or "async" in suffixes or not isinstance(_find_address(instruction), Address):
        return None
    known = describe_instruction(module, function, instruction, index=static)
    return None if known.kind is None else _make(static, instruction, known.space, known.bytes_per_lane)


def _find_move(instruction: PtxInstruction, static: int) -> Site | None:
    if instruction.opcode == "cp":
        size = count_bytes_per_lane(instruction)
        is_copy = instruction.suffixes[:1] == ("async",) and not {"bulk", "mbarrier"} & set(instruction.suffixes)
        return _make(static, instruction, Space.GLOBAL, size) if is_copy and size else None
    layout = matrix_addresses(instruction)
    if layout is None:
        return None
    names_shared = any(word.startswith("shared") for word in instruction.suffixes)
    space = Space.SHARED if names_shared else Space.GLOBAL if "global" in instruction.suffixes else Space.GENERIC
    if layout.row_bytes:
        return _make(static, instruction, space, layout.row_bytes, lanes=layout.address_lanes)
    return Site(kind=SiteKind.MATRIX, static=static, instruction=instruction, space=space)


def _make(static: int, instruction: PtxInstruction, space: Space, size_bytes: int, *, lanes: int = 32) -> Site:
    return Site(
        kind=SiteKind.ACCESS,
        static=static,
        instruction=instruction,
        space=space,
        size_bytes=size_bytes,
        lanes=lanes,
    )


def _find_address(instruction: PtxInstruction) -> object:
    return instruction.sources[0] if instruction.sources else None


def is_unrecorded(instruction: PtxInstruction, site: Site | None) -> bool:
    """Whether an instruction accesses memory, or may, and is not recorded."""
    if site is not None or instruction.opcode not in _UNRECORDED:
        return False
    if _HARMLESS.intersection(instruction.suffixes):
        return False
    return instruction.opcode not in ("st", "red") or "async" in instruction.suffixes
