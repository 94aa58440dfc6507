"""Serve with the copy of the server that comes with the extension: ``serve.py FOLDER``, where it is unpacked the first time.

The folder of the package goes on PYTHONPATH, because the server starts further processes of itself; it holds nothing but the server, so that programs
of the user which inherit it find nothing else there. The libraries come last: those of the interpreter go first.
"""

import hashlib
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path
from zipfile import ZipFile

ARCHIVE = Path(__file__).resolve().parent.parent / "server.zip"

UNUSED_S = 30 * 24 * 3600.0
"""Copies of other versions are removed when nobody used them for so long: another window may run one."""


def unpack(folder: Path) -> Path:
    """The unpacked archive, in a folder of its own below ``folder``; one name never changes its content."""
    target = folder / f"server-{hashlib.sha256(ARCHIVE.read_bytes()).hexdigest()[:16]}"
    if not target.is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(prefix="partial-", dir=folder))
        with ZipFile(ARCHIVE) as archive:
            archive.extractall(partial)
        try:
            partial.rename(target)
        except OSError:  # another window was first
            shutil.rmtree(partial, ignore_errors=True)
    os.utime(target)
    return target


def remove_unused(folder: Path) -> None:
    """Remove copies of the server, and environments made for it, that nobody uses any more."""
    storage = folder.parent
    if Path(sys.prefix).parent == storage:
        os.utime(sys.prefix)
    for copy in (
        *folder.glob("server-*"),
        *folder.glob("partial-*"),
        *storage.glob("environment*"),
        *storage.glob("partial-*"),
    ):
        if copy.stat().st_mtime < time.time() - UNUSED_S:
            shutil.rmtree(copy, ignore_errors=True)


def main(folder: Path) -> int:
    """Serve one client."""
    unpacked = unpack(folder)
    remove_unused(folder)
    server = str(unpacked / "server")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [server, os.environ.get("PYTHONPATH")]))
    sys.path[0] = server
    sys.path.append(str(unpacked / "libs"))
    from gpa_lsp.editor.protocol.start import serve

    return serve()


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
