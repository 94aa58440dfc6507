"""The JavaScript that draws charts in a page: Vega, Vega-Lite and Vega-Embed in one text, as vl-convert bundles them without a network.

Bundling takes one to two seconds, so the text is kept in the user's cache: one file per version of vl-convert, compressed, with its digest in
front. A file that does not fit its digest is made again, and a folder that cannot be written costs only time.
"""

import functools
import hashlib
import logging
import os
import zlib
from importlib.metadata import version
from pathlib import Path

from gpa_lsp.errors import MissingToolError, ToolError
from gpa_lsp.whole_files import open_whole

_LOG = logging.getLogger(__name__)

FOLDER_VARIABLE = "GPA_LSP_CACHE_DIR"
"""The folder for everything that can be made again, where the platform's is not wanted."""

_SNIPPET = "window.vegaEmbed = vegaEmbed; window.vegaLite = vegaLite; window.vega = vega;"

_DIGEST_BYTES = 32
_LARGEST_BYTES = 16 << 20
"""No bundle is larger; what unpacks to more is not ours."""


@functools.cache
def read_javascript() -> str:
    """The bundle: a script that leaves ``vegaEmbed``, ``vegaLite`` and ``vega`` on ``window`` and nothing else.

    It holds no ``</script`` and no ``<!--``, so it can stand in a page as it is.

    Raises:
        MissingToolError: vl-convert is not installed.
        ToolError: vl-convert failed.
    """
    try:
        import vl_convert  # brings a JavaScript engine of 50 MB; only where charts are drawn
    except ImportError as error:
        raise MissingToolError(
            "vl-convert-python", needed_for="drawing charts", install="pip install vl-convert-python"
        ) from error
    path = _find_folder() / f"vega-{version('vl-convert-python')}.js.z"
    kept = _load(path)
    if kept is not None:
        return kept
    try:
        # In a function of its own: the bundle's names would be every other script's, too.
        script = f"(() => {{{vl_convert.javascript_bundle(_SNIPPET)}}})();"
    except (ValueError, RuntimeError) as error:
        raise ToolError("vl-convert", f"cannot bundle the JavaScript of charts: {error}") from error
    if "</script" in script.lower() or "<!--" in script:
        raise ToolError("vl-convert", "its JavaScript cannot stand in a page as it is")
    _store(path, script)
    return script


def _find_folder() -> Path:
    chosen = os.environ.get(FOLDER_VARIABLE)
    if chosen:
        return Path(chosen).expanduser() / "charts"
    from platformdirs import user_cache_path  # only where it is needed: it costs start-up time

    return user_cache_path("gpa-lsp", appauthor=False) / "charts"


def _load(path: Path) -> str | None:
    """The script in a file; None when there is no sound one."""
    try:
        packed = path.read_bytes()
        unpack = zlib.decompressobj()
        script = unpack.decompress(packed[_DIGEST_BYTES:], _LARGEST_BYTES)
    except (OSError, zlib.error):
        return None
    if not unpack.eof or hashlib.sha256(script).digest() != packed[:_DIGEST_BYTES]:
        return None
    return script.decode("utf-8")


def _store(path: Path, script: str) -> None:
    text = script.encode("utf-8")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open_whole(path, encoding=None) as stream:
            stream.write(hashlib.sha256(text).digest() + zlib.compress(text, 6))
    except OSError as error:
        _LOG.debug("not kept in %s: %s", path, error)
