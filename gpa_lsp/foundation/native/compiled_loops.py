"""Loops in plain Python that numba compiles: :func:`compiled`. Importing numba takes .3 s: import what is decorated where it is used.

What was compiled is kept in the user's cache, for each state of the folder that the function lies in, each kind of arguments and each processor: the
first use on a machine compiles for some seconds, later ones load in some tenths of a second.
"""

import hashlib
import inspect
import logging
import pickle
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

from gpa_lsp.foundation.native.c_compiler import open_libraries
from gpa_lsp.foundation.work_time import begin_preparing, end_preparing, preparing

with preparing():
    import numba
    from numba.core.compiler import CompileResult
    from numba.core.serialize import dumps

_LOG = logging.getLogger(__name__)

_Function = TypeVar("_Function", bound=Callable[..., object])

# Without counts of references: arrays belong to who calls, and loops make none
_JIT: Any = numba.njit
_OPTIONS = {"error_model": "numpy", "nogil": True, "_nrt": False}


def compiled(function: _Function) -> _Function:
    """The function as machine code. It calls functions of its own folder alone; indexes are not checked, and a division by zero is infinite."""
    made = _JIT(**_OPTIONS)(function)
    made._cache = _Kept(function)
    return cast(_Function, made)


def part(function: _Function) -> _Function:
    """The same for a function that only compiled functions call: it becomes part of them."""
    made = _JIT(no_cpython_wrapper=True, no_cfunc_wrapper=True, forceinline=True, **_OPTIONS)(function)
    return cast(_Function, made)


class _Kept:
    """Machine code of a function in the user's cache, as numba's dispatchers ask for it."""

    def __init__(self, function: Callable[..., object]) -> None:
        self._name = f"{function.__module__}.{function.__qualname__}"
        self._sources = _digest(Path(inspect.getfile(function)).parent)

    def load_overload(self, signature: object, target: Any) -> object:
        """What was compiled for a signature; None where nothing was, and numba compiles it until it is kept."""
        begin_preparing()
        content = open_libraries().load(self._find_key(signature, target))
        if content is None:
            _LOG.warning("compiling loops of %s, once on this machine", self._name.rpartition(".")[0])
            return None
        target.refresh()
        found = CompileResult._rebuild(target, *pickle.loads(content))  # type: ignore[no-untyped-call]
        end_preparing()
        return found

    def save_overload(self, signature: object, result: Any) -> None:
        """Keep what was compiled."""
        kept = open_libraries()
        kept.store(self._find_key(signature, result.target_context), dumps(result._reduce()))  # type: ignore[no-untyped-call]
        kept.trim()
        end_preparing()

    def _find_key(self, signature: object, target: Any) -> str:
        words = f"{self._name} {signature} {target.codegen().magic_tuple()} {numba.__version__} {self._sources}"
        return hashlib.sha256(words.encode()).hexdigest()


@cache
def _digest(folder: Path) -> str:
    """A name for all sources in a folder."""
    digest = hashlib.sha256()
    for path in sorted(folder.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()
