"""``python -P -m gpa_lsp.notebook.cell_runner FOLDER``: runs cells of a notebook one after the other, in a process that a profiler can start.

The cells are files, so that what compilers write down of them leads back, and libraries that read the source of a function find it. They see what
cells of a notebook see: one ``__main__``, and the current folder on the path.
"""

import os
import sys
from pathlib import Path
from types import ModuleType

PATTERN = "In_*.py"


def name_file(number: int) -> str:
    """The file of a cell; names sort as the cells ran.

    >>> name_file(12)
    'In_000012.py'
    """
    return f"In_{number:06}.py"


def main() -> None:
    """Run every cell of the folder that the command line names."""
    folder = Path(sys.argv[1])
    sys.argv[:] = [""]
    sys.path.insert(0, os.getcwd())  # noqa: PTH109 - the person's own modules, as in the notebook itself
    notebook = ModuleType("__main__")
    sys.modules["__main__"] = notebook
    for path in sorted(folder.glob(PATTERN)):
        exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), notebook.__dict__)


if __name__ == "__main__":
    main()
