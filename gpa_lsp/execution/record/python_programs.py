"""Kernels that a recorded Python program's libraries hold, see :mod:`~gpa_lsp.execution.record.held_kernels`."""

import json
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from gpa_lsp.code.binary.linkage_names import find_bare_name
from gpa_lsp.code.ptx.source_parameters import SourceParameter, read_source_parameters
from gpa_lsp.foundation.locations import write_place

# Run by its path: the program's interpreter has no package of ours
_HELD_KERNELS = Path(__file__).with_name("held_kernels.py")

_PATH_VARIABLE = "PYTHONPATH"
_MOST_BYTES = 1 << 30
_LONGEST_NOTE = 300
# Python runs this when it starts, then the one it would have run
_SITE = """
import sys
sys.path[:] = [one for one in sys.path if one != {site!r}]
import atexit
import importlib.machinery
import importlib.util

def write():
    sys.dont_write_bytecode = True
    try:
        spec = importlib.util.spec_from_file_location("gpa_lsp_held_kernels", {module!r})
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        module.write_held_kernels(module.Path({raw!r}))
    except Exception:
        pass

atexit.register(write)
spec = importlib.machinery.PathFinder.find_spec("sitecustomize")
if spec is not None and spec.loader is not None:
    module = importlib.util.module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)
"""


class HeldKernel(Struct, frozen=True, kw_only=True):
    """A kernel as a Python library knows it."""

    framework: str  # the library's name
    kernel: str  # mangled name; empty where ``source`` may have several
    image: str = ""  # number of its code; empty where that is not known
    ptx: str = ""  # empty where the library has none
    parameters: tuple[SourceParameter, ...] = ()  # names and types; empty where they are not known
    constants: dict[str, str] = field(default_factory=dict)  # name → what the kernel was compiled for
    file: str = ""  # of its source; empty where that is not known
    line: int = 0  # where its function begins; 0 where that is not known
    source: str = ""  # text of CUDA C++; empty where it is of another language
    options: tuple[str, ...] = ()  # it was compiled with

    def describe(self) -> str:
        """One line for people: origin and constants."""
        place = [write_place(self.file, self.line)] if self.file else []
        constants = [f"{name} = {value}" for name, value in self.constants.items()]
        text = ", ".join([self.framework, *place, *constants, *self.options])
        return "".join(letter if letter.isprintable() else " " for letter in text)[:_LONGEST_NOTE]


def add_to_environment(environment: dict[str, str], folder: Path, raw: Path) -> None:
    """Have Python programs write at exit what their libraries hold; programs that ignore the environment do not.

    Raises:
        OSError: it cannot be written.
    """
    site = folder / "python"
    site.mkdir()
    (site / "sitecustomize.py").write_text(
        _SITE.format(site=str(site), module=str(_HELD_KERNELS), raw=str(raw)),
        encoding="utf-8",
        errors="surrogateescape",
    )
    environment[_PATH_VARIABLE] = os.pathsep.join(filter(None, (str(site), environment.get(_PATH_VARIABLE, ""))))


def read_held_kernels(folder: Path) -> tuple[HeldKernel, ...]:
    """Kernels that programs wrote; damaged ones are left out."""
    rows: list[Any] = []
    for path in sorted(folder.glob("kernels-*.json")):
        try:
            found = json.loads(path.read_bytes()) if path.stat().st_size <= _MOST_BYTES else []
        except (OSError, ValueError, RecursionError):
            continue
        rows += found if isinstance(found, list) else []
    return take_held_kernels(rows)


def take_held_kernels(rows: Iterable[Any]) -> tuple[HeldKernel, ...]:
    """Decode rows; damaged ones are left out."""
    found = []
    for row in rows:
        try:
            found.append(_read(row))
        except (TypeError, ValueError, AttributeError, KeyError):
            continue
    return tuple(found)


def _read(row: Any) -> HeldKernel:
    return HeldKernel(
        framework=str(row["framework"]),
        kernel=str(row["kernel"]),
        image=str(row.get("image", "")),
        ptx=str(row.get("ptx", "")),
        parameters=tuple(
            SourceParameter(name=str(name), type=str(kind), is_pointer=bool(is_pointer))
            for name, kind, is_pointer in row.get("parameters", ())
        ),
        constants={str(name): str(value) for name, value in row.get("constants", {}).items()},
        file=str(row.get("file", "")),
        line=int(row.get("line", 0)),
        source=str(row.get("source", "")),
        options=tuple(str(word) for word in row.get("options", ())),
    )


def choose_held(kernel: str, image: str, held: Iterable[HeldKernel]) -> HeldKernel | None:
    """Held kernel that belongs to a launched one; None if there is none."""
    named = [one for one in held if one.kernel == kernel and one.image in (image, "")]
    if named:
        return max(named, key=lambda one: (one.image == image, bool(one.ptx)))
    bare = re.escape(find_bare_name(kernel))
    declared = re.compile(rf"__global__[^;{{}}]*\b{bare}\s*\(")
    return next((one for one in held if one.source and declared.search(one.source)), None)


def read_held_parameters(held: HeldKernel, kernel: str) -> tuple[SourceParameter, ...]:
    """Names and types of a kernel's parameters; empty if unknown."""
    return held.parameters or (read_source_parameters("held.cu", held.source, kernel) if held.source else ())
