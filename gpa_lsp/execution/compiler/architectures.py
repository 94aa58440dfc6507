"""Architectures in compile commands: which compute capabilities they ask for."""

import re
from collections.abc import Iterable

_NAME = re.compile(r"\b(?:sm|compute|lto)_(\d{2,3})([af])?\b")
_OLDEST, _NEWEST = 30, 299


def read_architectures(values: Iterable[str]) -> tuple[tuple[tuple[int, int], ...], tuple[str, ...]]:
    """What the values of ``-arch``, ``-code`` and ``-gencode`` ask for.

    Returns:
        The compute capabilities, ascending, and the names that say more than a number (``sm_90a``: instructions of that one architecture).
        Machine code counts; PTX (``compute_…``) only where no machine code is asked for.

    >>> read_architectures(["arch=compute_75,code=[sm_75,compute_75]", "sm_90a"])
    (((7, 5), (9, 0)), ('sm_90a',))
    >>> read_architectures(["compute_80"])
    (((8, 0),), ())
    """
    machine: dict[int, str] = {}
    virtual: dict[int, str] = {}
    for value in values:
        for found in _NAME.finditer(value):
            number = int(found[1])
            if _OLDEST <= number <= _NEWEST:
                kept = virtual if found.group().startswith("compute") else machine
                kept[number] = max(kept.get(number, ""), found[2] or "")
    chosen = machine or virtual
    capabilities = tuple(divmod(number, 10) for number in sorted(chosen))
    return capabilities, tuple(f"sm_{number}{letter}" for number, letter in sorted(chosen.items()) if letter)


def name_target(capability: tuple[int, int], architectures: tuple[str, ...] = ()) -> str:
    """The name a compiler knows an architecture by.

    >>> name_target((8, 6)), name_target((9, 0), ("sm_90a",))
    ('sm_86', 'sm_90a')
    """
    plain = f"sm_{capability[0]}{capability[1]}"
    return next((name for name in architectures if name.rstrip("af") == plain), plain)
