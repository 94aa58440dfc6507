"""Paths as compilers write them into line tables, made comparable without looking at this machine's files."""

import ntpath
import posixpath
import re

_WINDOWS = re.compile(r"^[A-Za-z]:[\\/]|^\\\\|\\")


def join_source_path(directory: str, name: str) -> str:
    """Join a line table's directory and file name and fold ``a/../b`` and ``./``.

    Args:
        directory: as in the table; empty when the file has none.
        name: as in the table; an absolute name stands for itself.

    Returns:
        The path with the separators of the machine it was compiled on; empty when both parts are.

    >>> join_source_path("/usr/cuda/bin/../include", "cuda_fp16.hpp")
    '/usr/cuda/include/cuda_fp16.hpp'
    >>> join_source_path("C:\\\\src\\\\lib\\\\..", "a.cu")
    'C:\\\\src\\\\a.cu'
    >>> join_source_path("", "./kernel.py")
    'kernel.py'
    """
    if not directory and not name:
        return ""
    if _WINDOWS.search(directory) or _WINDOWS.search(name):
        return ntpath.normpath(ntpath.join(directory, name))
    return posixpath.normpath(posixpath.join(directory, name))
