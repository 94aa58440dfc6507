"""Read any profile: pick the reader by what the file contains, read, and check what came out."""

from dataclasses import replace
from functools import cache
from pathlib import Path

from gpa_lsp.basis.catalogue import load_catalogue
from gpa_lsp.basis.errors import InputError, UnsupportedInputError
from gpa_lsp.profile import readers
from gpa_lsp.profile.model import Profile
from gpa_lsp.profile.opening import read_head
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
    head = read_head(path)
    if not head:
        raise InputError("the file is empty", path=path, remedy="record it again")
    reader = next((found for found in find_readers() if found.recognises(head, path)), None)
    if reader is None:
        known = "; ".join(f"{found.description} ({', '.join(found.suffixes)})" for found in find_readers())
        raise UnsupportedInputError("is not a profile in a known format", path=path, remedy=f"what is read: {known}")
    try:
        profile = reader.read(path)
    except InputError as error:
        raise error.at(path) from None
    found_problems = tuple(problem for problem in check_profile(profile) if problem not in profile.problems)
    return replace(profile, problems=profile.problems + found_problems)
