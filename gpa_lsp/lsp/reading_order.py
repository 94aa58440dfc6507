"""Which profiles are about the sources somebody looks at: they are read first."""

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from gpa_lsp.basis.errors import InputError
from gpa_lsp.basis.regular_files import open_regular_file

_MOST_SOURCES = 4
"""Of the files that are open, so many that were opened last."""

_MOST_BYTES = 256 << 20
"""Looked through for names, newest profiles first; that takes a tenth of a second."""

_PIECE_BYTES = 1 << 20


def rank_profiles(profiles: Iterable[Path], sources: Sequence[str]) -> Mapping[Path, int]:
    """Which profiles are about which sources, as far as that can be told without reading them. Blocks on the file system.

    A report names the files its code was compiled from as plain bytes. One that names none may at least be called like the source.

    Args:
        profiles: newest first.
        sources: local paths, the one that matters most first.

    Returns:
        Profile → its rank, the smaller the sooner; profiles that are about none of the sources are left out.
    """
    wanted = sources[:_MOST_SOURCES]
    names = [os.fsencode(os.path.basename(source)) for source in wanted]  # noqa: PTH119
    ranks: dict[Path, int] = {}
    left = _MOST_BYTES
    for profile in profiles if names else ():
        found: set[int] = set()
        if left > 0:
            found, looked = _find_names(profile, names, left)
            left -= looked
        ordered = [2 * number for number in found]
        ordered += [2 * number + 1 for number, source in enumerate(wanted) if _is_called_alike(profile, source)]
        if ordered:
            ranks[profile] = min(ordered)
    return ranks


def _find_names(profile: Path, names: Sequence[bytes], most: int) -> tuple[set[int], int]:
    """The numbers of the names a file holds, and how many bytes were looked at."""
    longest = max(map(len, names))
    found: set[int] = set()
    looked = 0
    tail = b""
    try:
        stream, _ = open_regular_file(profile)
        with stream:
            while looked < most and 0 not in found and (piece := stream.read(_PIECE_BYTES)):
                looked += len(piece)
                text = tail + piece
                found |= {number for number, name in enumerate(names) if number not in found and name in text}
                tail = text[-longest:]
    except (InputError, OSError):
        pass  # whoever reads it will say what is wrong
    return found, looked


def _is_called_alike(profile: Path, source: str) -> bool:
    """Whether one is named after the other.

    >>> _is_called_alike(Path("saxpy-2.ncu-rep"), "/src/saxpy.cu"), _is_called_alike(Path("a.ncu-rep"), "/src/saxpy.cu")
    (True, False)
    """
    return profile.name.casefold().startswith(Path(source).stem.casefold())
