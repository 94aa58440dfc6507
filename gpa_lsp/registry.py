"""Catalogues: folders in which every file defines one thing of one kind.

Adding the file adds the thing; nothing else is edited. The folder's ``__init__.py`` says what a member is, and :func:`load_catalogue` finds
the members in alphabetical order of their module names, so that the order is the same on every machine.
"""

import importlib
import pkgutil
from types import ModuleType
from typing import Any, TypeVar

from gpa_lsp.errors import CatalogueError

Member = TypeVar("Member")


def load_catalogue(package: ModuleType, attribute: str, kind: type[Member] | Any) -> dict[str, Member]:
    """Find the members of a catalogue folder.

    Args:
        package: the folder's package; its modules are imported (sub-packages and names starting with ``_`` are passed over).
        attribute: the name every module must define, e.g. ``READER``.
        kind: the type (or runtime-checkable protocol) the attribute must have.

    Returns:
        Module name (without the package) → member, in alphabetical order.

    Raises:
        CatalogueError: a module lacks the attribute, or it is of another kind.
    """
    members: dict[str, Member] = {}
    for info in sorted(pkgutil.iter_modules(package.__path__), key=lambda found: found.name):
        if info.name.startswith("_") or info.ispkg:
            continue
        module = importlib.import_module(f"{package.__name__}.{info.name}")
        member = getattr(module, attribute, None)
        if not isinstance(member, kind):
            raise CatalogueError(
                f"{module.__name__} must define {attribute} as a {kind.__name__}, found {type(member).__name__}"
            )
        members[info.name] = member
    return members
