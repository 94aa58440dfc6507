"""Catalogues: folders in which every file defines one thing of one kind.

Adding the file adds the thing; nothing else is edited. The folder's ``__init__.py`` says what a member is. Members come in alphabetical order of
their module names, so that the order is the same on every machine, and a member's code is loaded when the member is asked for. Other installed
packages add members through entry points: those come behind our own, and cannot take their names. A group of entry points
is named by the last two parts of the folder's name (``gpa_lsp.advice.optimizers``), so that it stays when the folder moves to another wing.
"""

import importlib
import importlib.util
import logging
import os
import pkgutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import Struct

from gpa_lsp.foundation.errors import CatalogueError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

Member = TypeVar("Member")


def list_members(package: ModuleType | str) -> tuple[str, ...]:
    """The names of the members of a catalogue: those of its folder in alphabetical order, then those of other packages.

    None is imported, nor the folder's package where only its name is given.
    """
    own = _list_own(package)
    return own + tuple(name for name in find_outside_members(name_group(package)) if name not in own)


def load_member(package: ModuleType, name: str, attribute: str, kind: type[Member] | Any) -> Member:
    """Import one member of a catalogue.

    Args:
        package: the folder's package.
        name: of the member, one of :func:`list_members`.
        attribute: the name every module of the folder must define, e.g. ``READER``.
        kind: the type (or runtime-checkable protocol) a member must have.

    Raises:
        CatalogueError: the module lacks the attribute, or it is of another kind, or another package's member cannot be imported.
    """
    member: Member = _load(package, name, attribute, kind, is_own=name in _list_own(package))
    return member


def _load(package: ModuleType, name: str, attribute: str, kind: type[Member] | Any, *, is_own: bool) -> Member:
    if is_own:
        module = importlib.import_module(f"{package.__name__}.{name}")
        found, must = getattr(module, attribute, None), f"{module.__name__} must define {attribute} as"
    else:
        point = find_outside_members(name_group(package))[name]
        must = f"{point.value} must be"
        try:
            found = point.load()
        except Exception as error:  # the code of others may fail in any way
            raise CatalogueError(
                f"{point.value}, added to {name_group(package)}, cannot be imported: {error}"
            ) from error
    if not isinstance(found, kind):
        raise CatalogueError(f"{must} a {kind.__name__}, found {type(found).__name__}")
    member: Member = found
    return member


def load_catalogue(package: ModuleType, attribute: str, kind: type[Member] | Any) -> dict[str, Member]:
    """Import all members of a catalogue (sub-packages and names starting with ``_`` are passed over).

    Returns:
        Name → member, in the order of :func:`list_members`. What another package adds and cannot be used is left out, and logged.

    Raises:
        CatalogueError: a module of ours lacks the attribute, or it is of another kind.
    """
    found: dict[str, Member] = {}
    own = frozenset(_list_own(package))  # listed once: looking at a folder costs as much as importing a member of it
    for name in list_members(package):
        try:
            found[name] = _load(package, name, attribute, kind, is_own=name in own)
        except CatalogueError as error:
            if name in own:
                raise
            logging.getLogger(__name__).warning("%s", error)
    return found


def name_group(package: ModuleType | str) -> str:
    """The group of entry points that adds members to a catalogue, e.g. ``gpa_lsp.advice.optimizers``."""
    name = package if isinstance(package, str) else package.__name__
    root, *folders = name.split(".")
    return ".".join([root, *folders[-2:]])


def _list_own(package: ModuleType | str) -> tuple[str, ...]:
    names = (info.name for info in pkgutil.iter_modules(_find_paths(package)) if not info.ispkg)
    return tuple(sorted(name for name in names if not name.startswith("_")))


def _find_paths(package: ModuleType | str) -> Iterable[str]:
    if not isinstance(package, str):
        return package.__path__
    folder = importlib.util.find_spec(package)
    if folder is None or folder.submodule_search_locations is None:
        raise CatalogueError(f"there is no catalogue {package}")
    return folder.submodule_search_locations


# Members of catalogues that other installed packages bring, through entry points.
#
# A package names them in its own metadata, in a group called by the last two parts of the catalogue's folder::
#
#     [project.entry-points."gpa_lsp.advice.optimizers"]
#     tall_blocks = "their_package.tall_blocks:OPTIMIZER"
#
# Nothing of such a package is imported before the member is asked for. Looking for them is part of every start, and reading the metadata of all
# installed packages by the standard library takes longer than all the rest of ``--help``: here only files that name us are parsed.
#
# Source: Python Packaging User Guide, "Entry points specification".

_FILE = "entry_points.txt"
_GROUPS = "gpa_lsp."
_MARK = f"[{_GROUPS}".encode()  # our own commands are named ``gpa_lsp.`` behind an equals sign


class OutsidePackage(Struct, frozen=True, kw_only=True):
    """An installed package that adds to our catalogues."""

    name: str  # as installed, e.g. ``their-package``.
    version: str  # as installed
    file: Path  # where it says what it adds
    members: "Mapping[str, Mapping[str, EntryPoint]]"  # what it adds: group → name → entry point

    def list_modules(self) -> tuple[str, ...]:
        """Top-level modules that members come from."""
        points = (point for group in self.members.values() for point in group.values())
        return tuple(sorted({point.module.partition(".")[0] for point in points}))


@cache
def list_outside_packages() -> tuple[OutsidePackage, ...]:
    """All of them, by name; found once, as modules are. Metadata that cannot be read is passed over."""
    found: dict[str, OutsidePackage] = {}
    for file in _list_files():
        package = _read(file)
        if package is not None:
            found.setdefault(package.name, package)  # what comes first on the search path is what is imported
    return tuple(found[name] for name in sorted(found))


def find_outside_members(group: str) -> "dict[str, EntryPoint]":
    """The members that other packages add to a catalogue: name → entry point, by name. Of two with one name, the first package's counts."""
    found: dict[str, EntryPoint] = {}
    for package in list_outside_packages():
        for name, point in package.members.get(group, {}).items():
            found.setdefault(name, point)
    return dict(sorted(found.items()))


def _list_files() -> Iterator[Path]:
    """Metadata files of installed packages that name us."""
    for folder in sys.path:
        try:
            with os.scandir(folder) as listing:
                names = sorted(item.name for item in listing if item.name.endswith((".dist-info", ".egg-info")))
        except OSError:
            continue
        for name in names:
            file = f"{folder}{os.sep}{name}{os.sep}{_FILE}"
            try:
                with open(file, "rb", buffering=0) as stream:  # noqa: PTH123 - a hundred of them at every start
                    if _MARK in stream.read():
                        yield Path(file)
            except OSError:
                continue


def _read(file: Path) -> OutsidePackage | None:
    from importlib.metadata import Distribution  # takes as long as a hundred files, and is needed for few people

    package = Distribution.at(file.parent)
    try:
        name, version = package.metadata["Name"], package.version
        members: dict[str, dict[str, EntryPoint]] = {}
        for point in package.entry_points:
            if point.group.startswith(_GROUPS):
                members.setdefault(point.group, {})[point.name] = point
    except Exception:  # the standard library's parser fails in many ways
        return None
    return OutsidePackage(name=name, version=version, file=file, members=members) if name and members else None
