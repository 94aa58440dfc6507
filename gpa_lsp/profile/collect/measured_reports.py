"""Reports measured from the editor: in the user's cache, a folder per workspace, the last few of each.

A report is written into one folder and moved into another when it is complete, so that watchers of the latter never see half of one.
Nothing is written into the workspace.
"""

import contextlib
import hashlib
import os
import time
from pathlib import Path

from gpa_lsp.foundation.kept_files import find_cache_folder
from gpa_lsp.profile.collect.model import REPORT_SUFFIX

KEPT_REPORTS = 3  # Of each workspace: the last one is shown, those before it are for comparisons

_ABANDONED_S = 24 * 3600.0  # Age of half-written reports that are removed


def find_measured_folder(workspace: Path) -> Path:
    """Folder with the complete reports of a workspace, to be watched; it may not exist yet."""
    return find_cache_folder() / "measured" / _name_workspace(workspace)


def choose_output(workspace: Path) -> Path:
    """Path for the next report of a workspace, in an existing folder that is not watched.

    Raises:
        OSError: the cache cannot be written.
    """
    folder = find_cache_folder() / "measuring" / _name_workspace(workspace)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    _remove_abandoned(folder)
    now_s = time.time()
    stamp = time.strftime("%Y%m%d-%H%M%S", time.localtime(now_s))
    return folder / f"{stamp}-{int(now_s * 1000) % 1000:03}-{os.getpid()}{REPORT_SUFFIX}"


def find_written(output: Path) -> Path | None:
    """Report that was written for ``output``; None if there is none.

    Versions differ in what they append: ``.ncu-rep`` where the name lacks it, ``.ncu-repz`` for compressed reports (2026.3 and later).
    """
    candidates = (output, output.with_name(output.name + REPORT_SUFFIX), output.with_name(output.name + "z"))
    found = [path for path in candidates if _is_report(path)]
    return max(found, key=lambda path: path.stat().st_mtime_ns, default=None)


def keep_report(written: Path, workspace: Path) -> Path:
    """Move a complete report into the watched folder, and remove the oldest ones there.

    Returns:
        Where it is now.

    Raises:
        OSError: it cannot be moved.
    """
    folder = find_measured_folder(workspace)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    suffix = REPORT_SUFFIX + "z" if written.suffix == REPORT_SUFFIX + "z" else REPORT_SUFFIX
    kept = folder / (written.name.partition(".")[0] + suffix)
    written.replace(kept)
    for old in sorted(folder.glob(f"*{REPORT_SUFFIX}*"), reverse=True)[KEPT_REPORTS:]:
        with contextlib.suppress(OSError):
            old.unlink()
    return kept


def discard_output(output: Path) -> None:
    """Remove what an ended run may have written."""
    for path in output.parent.glob(f"{output.name}*"):
        with contextlib.suppress(OSError):
            path.unlink()


def _name_workspace(workspace: Path) -> str:
    real = os.path.realpath(workspace)
    digest = hashlib.sha256(os.fsencode(real)).hexdigest()[:16]
    readable = "".join(character for character in Path(real).name if character.isalnum() or character in "-_")[:32]
    return f"{readable}-{digest}" if readable else digest


def _is_report(path: Path) -> bool:
    try:
        return path.is_file() and path.stat().st_size > 0
    except OSError:
        return False


def _remove_abandoned(folder: Path) -> None:
    oldest_s = time.time() - _ABANDONED_S
    for path in folder.iterdir():
        with contextlib.suppress(OSError):
            if path.stat().st_mtime < oldest_s:
                path.unlink()
