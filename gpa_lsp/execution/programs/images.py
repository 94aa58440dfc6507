"""The bytes of device code a program loaded, put into a file that is read like any build: :func:`place_image`."""

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

from gpa_lsp.code.binary.elf import ELF_MAGIC
from gpa_lsp.foundation.errors import GpaError
from gpa_lsp.foundation.whole_files import atomic_write

_FAT_BINARY = (0xBA55ED50).to_bytes(4, "little")
_NAME_DIGITS = 12
_TRITON_CACHE_VARIABLE = "TRITON_CACHE_DIR"
_TRITON_HOME_VARIABLE = "TRITON_HOME"
_MOST_SEARCHED = 20_000


def place_image(content: bytes, folder: Path) -> Path:
    """Write a fat binary, machine code or PTX to a file named by what it holds.

    Of machine code from Triton, the PTX beside it in Triton's cache is taken.

    Raises:
        GpaError: it cannot be written.
    """
    suffix = ".fatbin" if content.startswith(_FAT_BINARY) else ".cubin" if content.startswith(ELF_MAGIC) else ".ptx"
    if suffix == ".cubin":
        ptx = find_triton_ptx(content)
        content, suffix = (content, suffix) if ptx is None else (ptx, ".ptx")
    path = folder / f"{hashlib.sha256(content).hexdigest()[:_NAME_DIGITS]}{suffix}"
    try:
        with atomic_write(path, encoding=None) as stream:
            stream.write(content.rstrip(b"\0") if suffix == ".ptx" else content)
    except OSError as error:
        raise GpaError(f"{path} cannot be written: {error.strerror or error}") from error
    return path


def find_triton_ptx(cubin: bytes) -> bytes | None:
    """The PTX of a device image that Triton made; None where its cache does not have it."""
    try:
        for path in _list_triton_images(len(cubin)):
            if path.read_bytes()[: len(cubin)] == cubin:
                return path.with_suffix(".ptx").read_bytes()
    except OSError:
        return None
    return None


def _list_triton_images(size_bytes: int) -> Iterator[Path]:
    """Those of a size or a little more, for the end of an image that was loaded is a guess; newest folders first."""
    named = os.environ.get(_TRITON_CACHE_VARIABLE)
    home = Path(os.environ.get(_TRITON_HOME_VARIABLE, "~")).expanduser()
    cache = Path(named) if named else home / ".triton" / "cache"
    if not cache.is_dir():
        return
    folders = sorted(os.scandir(cache), key=lambda one: one.stat().st_mtime, reverse=True)
    for folder in folders[:_MOST_SEARCHED]:
        for path in Path(folder.path).glob("*.cubin"):
            if 0 <= path.stat().st_size - size_bytes < 4096:
                yield path
