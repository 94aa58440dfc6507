"""Read any profile: pick the reader by what the file contains, read, and check what came out."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from msgspec.structs import replace

from gpa_lsp.foundation.catalogue import load_catalogue
from gpa_lsp.foundation.errors import InputError, UnsupportedInputError
from gpa_lsp.foundation.regular_files import read_head
from gpa_lsp.profile import readers
from gpa_lsp.profile.model import LaunchOutline, OpenedProfile, Profile
from gpa_lsp.profile.native import SIMULATING_TOOL
from gpa_lsp.profile.readers import Reader
from gpa_lsp.profile.validity import check_profile


@cache
def find_readers() -> tuple[Reader, ...]:
    """All readers, in alphabetical order of their files."""
    return tuple(load_catalogue(readers, "READER", Reader).values())


def list_suffixes() -> tuple[str, ...]:
    """File name endings of everything that is read, to find profiles in a workspace.

    >>> ".ncu-rep" in list_suffixes()
    True
    """
    return tuple(suffix for reader in find_readers() for suffix in reader.suffixes)


def read_profile(path: Path) -> Profile:
    """Read a profile of any known format.

    Args:
        path: the file.

    Returns:
        The profile; ``problems`` holds what could not be read while the rest could, and every invariant :func:`check_profile` found broken.

    Raises:
        InputError: the file is missing, empty, damaged or not to be read; says where and what to do.
        UnsupportedInputError: the file is of a kind or version that is not read.
    """
    reader = _find_reader(path)
    try:
        profile = reader.read(path)
    except InputError as error:
        raise error.at(path) from None
    return _check(profile)


def is_measurement(path: Path) -> bool:
    """Whether a file is a profile that was measured, not one that was simulated, by its first bytes.

    Raises:
        InputError: it cannot be read.
    """
    head = read_head(path)
    return SIMULATING_TOOL.encode() not in head and any(one.recognises(head, path) for one in find_readers())


@contextmanager
def open_profile(path: Path, *, is_known_sound: bool = False) -> Iterator[OpenedProfile | None]:
    """Open a profile of which some launches are wanted before the others.

    Args:
        path: the file.
        is_known_sound: it was opened before, by another process perhaps, and could be read launch by launch; what all launches are is found out
            when they are asked for.

    Yields:
        None where it has to be read as a whole; what is wrong with it is known then.

    Raises:
        InputError: as :func:`read_profile`.
        UnsupportedInputError: as :func:`read_profile`.
    """
    reader = _find_reader(path)
    if reader.open is None:
        yield None
        return
    with reader.open(path, is_known_sound) as opened:
        yield None if opened is None else _Checked(opened)


class _Checked:
    """Checks what is read of a profile as if all of it had been read."""

    def __init__(self, opened: OpenedProfile) -> None:
        self._opened = opened

    @property
    def launches(self) -> tuple[LaunchOutline, ...]:
        return self._opened.launches

    def read(self, numbers: Collection[int]) -> Profile:
        return _check(self._opened.read(numbers), tuple(sorted(numbers)))


def _find_reader(path: Path) -> Reader:
    head = read_head(path)
    if not head:
        raise InputError("the file is empty", path=path, remedy="record it again")
    reader = next((found for found in find_readers() if found.recognises(head, path)), None)
    if reader is None:
        known = "; ".join(f"{found.description} ({', '.join(found.suffixes)})" for found in find_readers())
        raise UnsupportedInputError("is not a profile in a known format", path=path, remedy=f"what is read: {known}")
    return reader


def _check(profile: Profile, positions: Sequence[int] | None = None) -> Profile:
    found_problems = (problem for problem in check_profile(profile, positions) if problem not in profile.problems)
    return replace(profile, problems=(*profile.problems, *found_problems))
