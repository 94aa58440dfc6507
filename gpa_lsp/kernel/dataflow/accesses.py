"""Memory accesses of a kernel: which rows they are, how wide, and how much more they move than they must."""

import re
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from gpa_lsp.code.binary.opcodes import Access, MemorySpace, describe_mnemonic
from gpa_lsp.code.binary.operands import OperandKind, parse_operand
from gpa_lsp.code.binary.sass import split_operands
from gpa_lsp.kernel.model import KernelRows

SECTOR_BYTES = 32  # The unit of transfer between caches and memory, on every architecture

WARP_THREADS = 32  # Threads of a warp, on every architecture

GLOBAL_SPACES = (MemorySpace.GLOBAL, MemorySpace.GENERIC)

_REGISTER_BYTES = 4
# Bytes of an access by modifier; without one of these it is a register wide
_BYTES = {
    "U8": 1, "S8": 1, "U16": 2, "S16": 2, "F16": 2, "64": 8, "U64": 8, "S64": 8, "F64": 8, "96": 12, "128": 16, "256": 32,
}  # fmt: skip

_VOLATILE = frozenset({"STRONG", "MMIO"})  # Modifiers of accesses that other threads may be waiting to see

MOVES = (Access.LOAD, Access.STORE, Access.ATOMIC, Access.REDUCTION, Access.COPY)  # Accesses that move data

_OFFSET = re.compile(r"\+(-?0x[0-9a-f]+)\]\Z")


def mark_accesses(
    kernel: KernelRows, spaces: tuple[MemorySpace, ...], kinds: tuple[Access, ...]
) -> npt.NDArray[np.bool_]:
    """bool[n]: accesses of some kinds to some spaces."""
    return kernel.mark_by_opcode(lambda opcode: opcode.memory in spaces and opcode.access in kinds)


def measure_excess(actual: npt.NDArray[np.int64], ideal: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """The part of each row's transfers that the ideal would not make.

    Args:
        actual: int64[n], transfers; -1 where a row has none.
        ideal: int64[n], the least that could do; -1 where a row has none.

    Returns:
        float64[n], 0..1; 0 where nothing is known or nothing is too much.

    >>> measure_excess(np.array([32, 4, -1, 0]), np.array([4, 4, -1, 0])).tolist()
    [0.875, 0.0, 0.0, 0.0]
    """
    known = (actual > 0) & (ideal >= 0)
    share = np.zeros(len(actual))
    share[known] = np.clip((actual[known] - ideal[known]) / actual[known], 0.0, 1.0)
    return share


def count_per_request(kernel: KernelRows) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Global sectors and threads of one request, on average.

    A request is one execution by a warp; executions in which the guard held for no thread count too, which makes both smaller alike.

    Returns:
        float64[n] sectors, NaN where unknown; float64[n] threads, a whole warp where unknown.
    """
    executions = kernel.executions.astype(np.float64)
    sectors = np.full(len(kernel), np.nan)
    threads = np.full(len(kernel), float(WARP_THREADS))
    for name, column in (("global_sectors", sectors), ("thread_executions_true", threads)):
        counted = kernel.counter(name)
        if counted is not None:
            known = (counted > 0) & (executions > 0)
            column[known] = counted[known] / executions[known]
    return sectors, threads


@lru_cache(maxsize=8192)
def count_access_bytes(mnemonic: str) -> int:
    """Bytes one thread moves with one access to global, generic, shared or local memory; 0 for what accesses none of them.

    >>> [count_access_bytes(one) for one in ("LDG.E.128.CONSTANT", "STG.E.U8", "LDS", "LDSM.16.M88.4", "FADD", "CCTL.IVALL")]
    [16, 1, 4, 16, 0, 0]
    """
    opcode = describe_mnemonic(mnemonic)
    if opcode.access not in MOVES or opcode.memory not in (*GLOBAL_SPACES, MemorySpace.SHARED, MemorySpace.LOCAL):
        return 0
    numbers = [width for width in opcode.widths if isinstance(width, int)]
    if len(numbers) == len(opcode.widths) and numbers:  # matrix fragments: registers and not bits are named
        return _REGISTER_BYTES * max(numbers)
    return next((_BYTES[one] for one in mnemonic.split(".")[1:] if one in _BYTES), _REGISTER_BYTES)


def read_modifiers(mnemonic: str) -> frozenset[str]:
    """The modifiers of an opcode.

    >>> sorted(read_modifiers("LDG.E.STRONG.GPU"))
    ['E', 'GPU', 'STRONG']
    """
    return frozenset(mnemonic.split(".")[1:])


def find_address(text: str) -> tuple[str, int] | None:
    """The address an instruction names first: all of it but the constant offset, and that offset in bytes; None without an address.

    >>> find_address("@P0 LDG.E R2, desc[UR4][R2.64+-0x10]"), find_address("STG.E [R4.64], R2"), find_address("FADD R1, R2, R3")
    (('desc[UR4][R2.64]', -16), ('[R4.64]', 0), None)
    """
    body = text.partition(" ")[2] if text.startswith("@") else text
    tokens = split_operands(body.partition(" ")[2])
    token = next((one for one in tokens if parse_operand(one).kind is OperandKind.ADDRESS), None)
    if token is None:
        return None
    offset = _OFFSET.search(token)
    return (token, 0) if offset is None else (f"{token[: offset.start()]}]", int(offset[1], 16))


def is_volatile(mnemonic: str) -> bool:
    """Whether an access must happen when the source says: volatile ones, and atomic loads and stores.

    >>> is_volatile("LDG.E.STRONG.GPU"), is_volatile("LDG.E.CONSTANT")
    (True, False)
    """
    return not _VOLATILE.isdisjoint(mnemonic.split("."))
