"""Device images out of containers that only NVIDIA's cuobjdump opens: LZ4-compressed entries, static libraries, Windows programs."""

import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from gpa_lsp.basis.errors import InputError, ToolError
from gpa_lsp.basis.numbers import format_bytes
from gpa_lsp.binary.tool_location import require_tool
from gpa_lsp.processes.time_limits import TimeLimits, run_limited

TOOL = "cuobjdump"
_LONGEST_RUN = TimeLimits.for_work(120.0)
_POLL_INTERVAL_S = 0.02
_LOG_NAME = "output.log"
_LOG_TAIL = 2000
_NOTHING_FOUND = ("does not contain device code", "No device code")


def extract_images(path: Path, *, limit_bytes: int, longest_run: TimeLimits = _LONGEST_RUN) -> Iterator[bytes]:
    """Let cuobjdump take all cubins out of a file.

    Args:
        path: the container.
        limit_bytes: how much all images together may take on the disk.
        longest_run: how long the tool may take.

    Yields:
        Each image, in the tool's order; nothing when there is none.

    Raises:
        MissingToolError: cuobjdump is not installed.
        ToolError: it failed, or did not end in time.
        InputError: the images are larger than the limit.
    """
    tool = require_tool(TOOL, needed_for=f"taking the device code out of {path.name}")
    with tempfile.TemporaryDirectory(prefix="gpa-lsp-") as name:
        folder = Path(name)
        _run(tool, path.resolve(), folder, limit_bytes=limit_bytes, longest_run=longest_run)
        for image in sorted(folder.glob("*.cubin"), key=_order):
            yield image.read_bytes()


def _order(image: Path) -> tuple[int, str]:
    """The tool numbers its files ``name.<number>.sm_90.cubin``; the number orders them."""
    numbers = [part for part in image.name.split(".") if part.isdigit()]
    return (int(numbers[-1]) if numbers else 0, image.name)


def _run(tool: Path, path: Path, folder: Path, *, limit_bytes: int, longest_run: TimeLimits) -> None:
    log = folder / _LOG_NAME
    with log.open("wb") as output:
        command = [str(tool), "-xelf", "all", str(path)]
        with run_limited(
            TOOL,
            command,
            longest_run,
            folder=folder,
            output=output,
            errors=subprocess.STDOUT,
            work=f"reading {path.name}",
        ) as process:
            while process.poll() is None:
                _check_size(path, folder, limit_bytes=limit_bytes)
                time.sleep(_POLL_INTERVAL_S)
    _check_size(path, folder, limit_bytes=limit_bytes)
    words = log.read_bytes()[-_LOG_TAIL:].decode("utf-8", errors="replace")
    if process.returncode != 0 and not any(phrase in words for phrase in _NOTHING_FOUND):
        raise ToolError(TOOL, f"could not read {path.name} (exit status {process.returncode})", output=words)


def _check_size(path: Path, folder: Path, *, limit_bytes: int) -> None:
    """What the tool writes is bounded by looking at it, because a small file can claim to unpack to any size."""
    if sum(file.stat().st_size for file in folder.iterdir()) > limit_bytes:
        raise InputError(
            f"the device code unpacks to more than {format_bytes(limit_bytes)}",
            path=path,
            remedy="extract the cubin you need with cuobjdump -xelf",
        )
