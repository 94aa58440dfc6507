"""Which sources may be worked on: those of a trusted workspace's folders."""

import logging
import os
from pathlib import Path

from msgspec import Struct

from gpa_lsp.foundation.files import Stamp, read_bounded, read_stamp

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


logger = logging.getLogger(__name__)

DESCRIPTION_SUFFIX = ".launch.toml"  # What takes the place of a source's suffix

_LARGEST_DESCRIPTION_BYTES = 4 << 20


def find_description(source: str) -> str:
    """``/p/kernel.cu`` → ``/p/kernel.launch.toml``, whether it is there or not."""
    path = Path(source)
    return str(path.with_name(path.stem + DESCRIPTION_SUFFIX))


def read_description(description: str) -> tuple[Stamp | None, str]:
    """A description's stamp and text; an empty text where there is none, or it cannot be read, which is logged."""
    stamp = read_stamp(description)
    if stamp is None:
        return None, ""
    if stamp.size_bytes > _LARGEST_DESCRIPTION_BYTES:
        logger.warning(
            "%s has more than %s bytes and is left alone: put long arrays into files",
            description,
            _LARGEST_DESCRIPTION_BYTES,
        )
        return stamp, ""
    try:
        return stamp, read_bounded(Path(description), _LARGEST_DESCRIPTION_BYTES).decode("utf-8", "surrogateescape")
    except OSError as error:
        logger.warning("%s cannot be read: %s", description, error.strerror)
        return stamp, ""
