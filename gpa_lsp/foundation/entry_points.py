"""Members of catalogues that other installed packages bring, through entry points.

A package names them in its own metadata, in a group called by the last two parts of the catalogue's folder::

    [project.entry-points."gpa_lsp.advice.optimizers"]
    tall_blocks = "their_package.tall_blocks:OPTIMIZER"

Nothing of such a package is imported before the member is asked for. Looking for them is part of every start, and reading the metadata of all
installed packages by the standard library takes longer than all the rest of ``--help``: here only files that name us are parsed.

Source: Python Packaging User Guide, "Entry points specification".
"""

import os
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

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
        """Its top-level modules that members come from."""
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
    """What other packages add to a catalogue: name → entry point, by name. Of two with one name, the one of the first package counts."""
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
