"""Which sources may be worked on: those of a trusted workspace's folders."""

import os
from pathlib import Path

from msgspec import Struct

# Sources that can be compiled by themselves; headers are compiled with the sources that include them
_SUFFIXES = frozenset({".cu"})


class SourceScope(Struct, frozen=True, kw_only=True):
    """Where a client works."""

    roots: tuple[Path, ...] = ()  # folders of the workspace
    is_trusted: bool = False  # the user trusts them

    @property
    def real_roots(self) -> tuple[Path, ...]:
        """The folders, links resolved."""
        return tuple(Path(os.path.realpath(root)) for root in self.roots)

    def contains(self, local_path: str) -> bool:
        """Whether a file, links resolved, is a source that may be worked on."""
        path = Path(os.path.realpath(local_path))
        if not self.is_trusted or path.suffix.lower() not in _SUFFIXES:
            return False
        return any(path.is_relative_to(root) for root in self.real_roots)
