"""Paths as compilers write them into line tables, made comparable without looking at this machine's files."""

import ntpath
import posixpath
import re

_WINDOWS = re.compile(r"^[A-Za-z]:[\\/]|^\\\\|\\")
_ESCAPES = re.compile(r"(?:\\[23][0-7]{2})+")


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
    directory, name = read_escapes(directory), read_escapes(name)
    if _WINDOWS.search(directory) or _WINDOWS.search(name):
        return ntpath.normpath(ntpath.join(directory, name))
    return posixpath.normpath(posixpath.join(directory, name))


def read_escapes(path: str) -> str:
    r"""A path with the escapes read that NVIDIA's compilers write for everything that is not ASCII: the bytes of its UTF-8, in octal.

    A path with any other backslash is one of Windows, whose folders may have numbers for names; it stays as it is.

    Source: NVRTC and nvcc 13.5 on a source in a folder named in German; PTX and line tables alike.

    >>> read_escapes(r"/home/w\303\266rk/k.cu"), read_escapes(r"C:\303\266\k.cu"), read_escapes(r"/a/\377.cu")
    ('/home/wörk/k.cu', 'C:\\303\\266\\k.cu', '/a/\\377.cu')
    """
    if "\\" not in path:
        return path
    try:
        plain = _ESCAPES.sub(_decode, path)
    except UnicodeDecodeError:
        return path
    return path if "\\" in plain else plain


def _decode(escapes: re.Match[str]) -> str:
    return bytes(int(one, 8) for one in escapes[0].split("\\")[1:]).decode()
