"""Device images of a native profile: embedded, or files beside it and nowhere else."""

import base64
import binascii
from pathlib import Path, PurePosixPath, PureWindowsPath

from gpa_lsp.basis.errors import InputError
from gpa_lsp.basis.numbers import format_bytes
from gpa_lsp.basis.regular_files import open_regular_file
from gpa_lsp.profile.native.elements import Element

_ELF_MAGIC = b"\x7fELF"
_MAX_IMAGE_BYTES = 256 << 20


def read_image(element: Element, folder: Path) -> tuple[bytes, str | None]:
    """The bytes of a ``cubin`` member, and the path of the file they come from; None where they are embedded.

    Args:
        element: ``{"base64": …}`` or ``{"path": …}``.
        folder: of the profile; a path must stay inside it, links followed, so that a profile from a stranger cannot make us read other files.

    Raises:
        InputError: neither or both are given, the path leads elsewhere, or what is found is no ELF image.
    """
    members = element.read_members(("base64", "path"))
    if len(members) != 1:
        raise element.fail("needs exactly one of 'base64' and 'path'")
    if "base64" in members:
        image = _decode(members["base64"])
        source = members["base64"]
    else:
        image = _read_file(members["path"], folder)
        source = members["path"]
    if not image.startswith(_ELF_MAGIC):
        raise source.fail("does not hold an ELF image")
    return image, source.read_text() if "path" in members else None


def _decode(element: Element) -> bytes:
    try:
        return base64.b64decode(element.read_text(), validate=True)
    except (binascii.Error, ValueError) as error:
        raise element.fail(f"is not base64 ({error})") from None


def _read_file(element: Element, folder: Path) -> bytes:
    name = element.read_text()
    parts = PurePosixPath(name).parts
    is_elsewhere = PurePosixPath(name).is_absolute() or PureWindowsPath(name).drive or PureWindowsPath(name).root
    if not parts or is_elsewhere or "\\" in name or "\0" in name or ".." in parts:
        raise element.fail("is not a relative path with forward slashes and without '..'")
    try:
        target = folder.joinpath(*parts).resolve()
        is_inside = target.is_relative_to(folder.resolve())
    except (OSError, RuntimeError):
        raise element.fail("leads nowhere") from None
    if not is_inside:
        raise element.fail("leads out of the profile's folder")
    try:
        stream, size_bytes = open_regular_file(target)
    except InputError as error:
        raise element.fail(f"names a file that cannot be used: {error.message}") from None
    with stream:
        if size_bytes > _MAX_IMAGE_BYTES:
            raise element.fail(f"names a file of {format_bytes(size_bytes)}, more than any cubin has")
        return stream.read(size_bytes)
