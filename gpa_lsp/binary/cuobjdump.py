"""Device images out of containers that only NVIDIA's cuobjdump opens: LZ4-compressed entries, static libraries, Windows programs."""

import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from gpa_lsp.binary.tool_location import require_tool
from gpa_lsp.errors import InputError, ToolError

TOOL = "cuobjdump"
_LONGEST_RUN_S = 120.0
_POLL_INTERVAL_S = 0.02
_LOG_NAME = "output.log"
_LOG_TAIL = 2000
_NOTHING_FOUND = ("does not contain device code", "No device code")


def extract_images(path: Path, *, limit_bytes: int, longest_run_s: float = _LONGEST_RUN_S) -> Iterator[bytes]:
    """Let cuobjdump take all cubins out of a file.

    Args:
        path: the container.
        limit_bytes: how much all images together may take on the disk.
        longest_run_s: seconds after which the tool is stopped.

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
        _run(tool, path.resolve(), folder, limit_bytes=limit_bytes, longest_run_s=longest_run_s)
        for image in sorted(folder.glob("*.cubin"), key=_order):
            yield image.read_bytes()


def _order(image: Path) -> tuple[int, str]:
    """The tool numbers its files ``name.<number>.sm_90.cubin``; the number orders them."""
    numbers = [part for part in image.name.split(".") if part.isdigit()]
    return (int(numbers[-1]) if numbers else 0, image.name)


def _run(tool: Path, path: Path, folder: Path, *, limit_bytes: int, longest_run_s: float) -> None:
    log = folder / _LOG_NAME
    deadline = time.monotonic() + longest_run_s
    with log.open("wb") as output:
        process = subprocess.Popen(
            [tool, "-xelf", "all", path], cwd=folder, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
        )
        try:
            while process.poll() is None:
                _check_progress(path, folder, limit_bytes=limit_bytes, deadline=deadline)
                time.sleep(_POLL_INTERVAL_S)
        finally:
            process.kill()
            process.wait()
    _check_progress(path, folder, limit_bytes=limit_bytes, deadline=float("inf"))
    words = log.read_bytes()[-_LOG_TAIL:].decode("utf-8", errors="replace")
    if process.returncode != 0 and not any(phrase in words for phrase in _NOTHING_FOUND):
        raise ToolError(TOOL, f"could not read {path.name} (exit status {process.returncode})", output=words)


def _check_progress(path: Path, folder: Path, *, limit_bytes: int, deadline: float) -> None:
    """What the tool writes is bounded by looking at it, because a small file can claim to unpack to any size."""
    if time.monotonic() > deadline:
        raise ToolError(TOOL, f"did not finish reading {path.name} in time")
    if sum(file.stat().st_size for file in folder.iterdir()) > limit_bytes:
        raise InputError(
            f"the device code unpacks to more than {limit_bytes} bytes",
            path=path,
            remedy="extract the cubin you need with cuobjdump -xelf",
        )
