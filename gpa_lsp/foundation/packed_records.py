"""Records as bytes, and back, from bytes of any origin: reading makes nothing but our own records, enumerations and sentences, paths, and
arrays of numpy, so that it runs no code.
"""

import importlib
import io
import pickle
from enum import Enum
from pathlib import Path
from typing import Any, TypeVar

from msgspec import Struct

from gpa_lsp.foundation.errors import InputError
from gpa_lsp.foundation.prose import Sentence

_T = TypeVar("_T")

_PROTOCOL = 5

_ARRAY_MODULES = frozenset(
    {"numpy", "numpy._core.numeric", "numpy.core.numeric", "numpy._core.multiarray", "numpy.core.multiarray"}
)
_ARRAY_NAMES = frozenset({"dtype", "ndarray", "_frombuffer", "_reconstruct", "scalar"})
_PATH_NAMES = frozenset({"PosixPath", "WindowsPath", "PurePosixPath", "PureWindowsPath"})


def pack_records(records: object) -> bytes:
    """Records, alone or in containers, as bytes."""
    return pickle.dumps(records, protocol=_PROTOCOL)


def unpack_records(content: bytes) -> Any:
    """Records that were packed.

    Raises:
        pickle.UnpicklingError: something else is in it. Bytes that are none of :func:`pack_records` may raise anything.
    """
    return _RecordUnpickler(io.BytesIO(content)).load()


def read_records(path: Path, kind: type[_T]) -> _T:
    """A record from a file of packed ones.

    Args:
        path: the file.
        kind: of the record.

    Raises:
        InputError: it cannot be read, or holds something else.
    """
    try:
        found = unpack_records(path.read_bytes())
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", path=path) from error
    except Exception as error:  # whatever damaged bytes lead to
        raise InputError(f"holds no records of this version ({error})", path=path, remedy="make it again") from error
    if not isinstance(found, kind):
        raise InputError(f"holds a {type(found).__name__}, not a {kind.__name__}", path=path, remedy="make it again")
    return found


class _RecordUnpickler(pickle.Unpickler):
    """Makes plain data only."""

    def find_class(self, module: str, name: str) -> Any:
        """The types that may be packed.

        Raises:
            pickle.UnpicklingError: it is none of them.
        """
        if (module, name) == (
            "msgspec._utils",
            "rebuild",
        ):  # calls a record, whose type was looked at, by the names of its fields
            return super().find_class(module, name)
        if (module, name) == ("builtins", "getattr"):  # writes a member of an enumeration in Python 3.11.2
            return _find_member
        if module in _ARRAY_MODULES and name in _ARRAY_NAMES:
            return super().find_class(module, name)
        if module in ("pathlib", "pathlib._local") and name in _PATH_NAMES:
            return super().find_class("pathlib", name)
        if module.startswith("gpa_lsp.") and "__" not in module:
            found = getattr(importlib.import_module(module), name, None)
            if isinstance(found, type) and (_is_record(found) or issubclass(found, Enum) or found is Sentence):
                return found
        raise pickle.UnpicklingError(f"{module}.{name} is no part of a report")


def _find_member(kind: type, name: str) -> Enum:
    if issubclass(kind, Enum) and name in kind.__members__:
        return kind[name]
    raise pickle.UnpicklingError(f"an attribute of {kind.__name__} is no part of a report")


def _is_record(found: type) -> bool:
    return issubclass(found, Struct) or (issubclass(found, tuple) and hasattr(found, "_fields"))
