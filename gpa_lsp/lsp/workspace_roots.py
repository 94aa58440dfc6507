"""Which folders a session is about."""

from collections.abc import Iterable
from pathlib import Path

from gpa_lsp.lsp.uris import read_path

_FOLDER_DEPTH = 32
_LONE_FILE_DEPTH = 3
"""Without a workspace folder profiles are looked for beside the document, but not in all of somebody's home."""


def choose_roots(
    folder_uris: Iterable[str], lone_root: Path | None, lone_folder: Path | None
) -> tuple[tuple[Path, ...], int]:
    """The folders, and how deep profiles are looked for in them.

    Args:
        folder_uris: of the workspace.
        lone_root: where a client without folders says it works.
        lone_folder: of the first document that was opened.

    >>> roots, depth = choose_roots([], None, Path("/home/me"))
    >>> [root.as_posix() for root in roots], depth
    (['/home/me'], 3)
    """
    folders = (read_path(uri) for uri in folder_uris)
    roots = tuple(Path(folder) for folder in folders if folder is not None)
    if not roots and lone_root is not None:
        roots = (lone_root,)
    if roots:
        return roots, _FOLDER_DEPTH
    return () if lone_folder is None else (lone_folder,), _LONE_FILE_DEPTH
