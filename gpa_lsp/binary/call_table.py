"""``.nv.callgraph``: who calls whom, as the compiler wrote it down.

The section is a list of pairs of 32-bit numbers in four parts. A pair whose second number is negative opens a part:

====  ===================  ==========================================================
part  pairs                meaning
====  ===================  ==========================================================
-1    (caller, callee)     direct calls, both symbol indexes
-2    (function, prototype)  a function whose address is taken, and its prototype
-3    (caller, prototype)  a call through a pointer of that prototype
-4    (user, function)     who takes whose address
====  ===================  ==========================================================

Prototype numbers have nothing to do with symbol indexes; reading the later parts as calls invents some.

Source: worked out on cubins with virtual functions, function pointers and recursion, compiled for this purpose (CUDA 12.9 and 13.0,
linked and not), whose calls are known from their source.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from gpa_lsp.binary.model import IndirectCalls

_DIRECT, _ADDRESS_TAKEN, _CALLS_POINTER = -1, -2, -3
_PAIR_BYTES = 8


def read_call_table(
    data: bytes, name_symbol: Callable[[int], str | None]
) -> tuple[tuple[tuple[str, str], ...], tuple[IndirectCalls, ...]]:
    """Read ``.nv.callgraph``.

    Args:
        data: the section's bytes.
        name_symbol: symbol index → name, None for an index that is no function's; such pairs are passed over.

    Returns:
        The direct calls as (caller, callee) in file order, and the possible indirect ones by prototype.

    >>> words = np.array([0, -1, 1, 2, 0, -2, 3, 1, 0, -3, 1, 1, 0, -4], dtype="<i4")
    >>> direct, indirect = read_call_table(words.tobytes(), "_kfg".__getitem__)
    >>> direct
    (('k', 'f'),)
    >>> indirect
    (IndirectCalls(callers=('k',), callees=('g',)),)
    """
    words = np.frombuffer(data, dtype="<i4", count=len(data) // _PAIR_BYTES * 2).reshape(-1, 2)
    direct = tuple(
        (caller, callee)
        for first, second in _find_part(words, _DIRECT)
        if (caller := name_symbol(first)) is not None and (callee := name_symbol(second)) is not None
    )
    callers = _group_by_prototype(_find_part(words, _CALLS_POINTER), name_symbol)
    callees = _group_by_prototype(_find_part(words, _ADDRESS_TAKEN), name_symbol)
    indirect = tuple(
        IndirectCalls(callers=tuple(names), callees=tuple(callees.get(prototype, ())))
        for prototype, names in callers.items()
    )
    return direct, indirect


def _find_part(words: npt.NDArray[np.int32], part: int) -> list[tuple[int, int]]:
    """The pairs of one part."""
    heads = words[:, 1] < 0
    opened_by = np.where(heads, words[:, 1], 0)
    last_head = np.maximum.accumulate(np.where(heads, np.arange(len(words)), -1))
    inside = ~heads & (last_head >= 0) & (opened_by[np.maximum(last_head, 0)] == part)
    return [(first, second) for first, second in words[inside].tolist()]


def _group_by_prototype(pairs: list[tuple[int, int]], name_symbol: Callable[[int], str | None]) -> dict[int, list[str]]:
    groups: dict[int, list[str]] = {}
    for symbol, prototype in pairs:
        name = name_symbol(symbol)
        if name is not None:
            groups.setdefault(prototype, []).append(name)
    return groups
