"""A folder full of modules and programs by the names of everything that could be imported or run; each leaves a mark when it is."""

import importlib.metadata
import os
import sys
from collections.abc import Iterable
from pathlib import Path

PROGRAMS = (
    *("nvdisasm", "cuobjdump", "ptxas", "nvcc", "ncu", "nsys", "g++", "gcc", "clang++", "cc", "cl", "c++filt"),
    *("python", "python3", "sh", "env", "ps", "taskkill", "git", "uname", "ldconfig", "objdump", "lsb_release", "true"),
)

_TRAP = """\
import {system} as system
system.write(system.open({{mark!r}}, system.O_WRONLY | system.O_CREAT | system.O_APPEND, 0o600), b"{{name}}\\n")
""".format(system="nt" if os.name == "nt" else "posix")
"""Works in a Python that has only begun to start, which looks for ``encodings`` then."""


def name_modules() -> set[str]:
    """Every top-level module of the standard library and of what is installed, ours among them, and those Python looks for as it starts."""
    installed = {name for name in importlib.metadata.packages_distributions() if name.isidentifier()}
    return {*sys.stdlib_module_names, *installed, "gpa_lsp", "sitecustomize", "usercustomize"}


class HostileFolder:
    """A folder somebody is in.

    Args:
        path: is made.
        mark: the file that traps write their names to.
        modules: to set traps for.
    """

    def __init__(self, path: Path, mark: Path, modules: Iterable[str]) -> None:
        self.path, self._mark = path, mark
        path.mkdir()
        for name in modules:  # a package comes before a module of the same name, and stands for all that is below it
            (path / name).mkdir()
            (path / name / "__init__.py").write_text(_TRAP.format(mark=str(mark), name=name))
        for name in PROGRAMS:
            if not (path / name).exists():
                (path / name).write_text(f"#!/bin/sh\necho 'program {name}' >> '{mark}'\n")
                (path / name).chmod(0o755)

    def list_run(self) -> list[str]:
        """The traps that somebody walked into."""
        return sorted(set(self._mark.read_text().split("\n")) - {""}) if self._mark.exists() else []
