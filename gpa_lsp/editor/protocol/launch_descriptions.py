"""Descriptions of launches beside sources, as files."""

import logging
from pathlib import Path

from gpa_lsp.foundation.file_stamps import Stamp, read_stamp
from gpa_lsp.foundation.regular_files import read_bounded

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
