"""The JavaScript that draws charts in a page: Vega, Vega-Lite and Vega-Embed in one text, as vl-convert bundles them without a network.

Bundling takes one to two seconds, so the text is kept in the user's cache: one compressed entry per version of vl-convert.
"""

import functools
import zlib
from importlib import resources
from importlib.metadata import version

from gpa_lsp.basis.errors import MissingToolError, ToolError
from gpa_lsp.basis.kept_files import KeptFiles, find_cache_folder

_SNIPPET = "window.vegaEmbed = vegaEmbed; window.vegaLite = vegaLite; window.vega = vega;"

_LARGEST_BYTES = 16 << 20
"""No bundle is larger; what unpacks to more is not ours."""


@functools.cache
def read_javascript() -> str:
    """The bundle: a script that leaves ``vegaEmbed``, ``vegaLite`` and ``vega`` on ``window`` and nothing else.

    The libraries' licences stand at its head, because whoever passes a page on passes them on.

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
    notices = resources.files("gpa_lsp.render.charts").joinpath("notices.js").read_text(encoding="utf-8")
    files, key = open_scripts(), f"vega-{version('vl-convert-python')}"
    kept = files.load(key)
    known = None if kept is None else _unpack(kept)
    if known is not None:
        return notices + known
    try:
        # In a function of its own: the bundle's names would be every other script's, too.
        script = f"(() => {{{vl_convert.javascript_bundle(_SNIPPET)}}})();"
    except (ValueError, RuntimeError) as error:
        raise ToolError("vl-convert", f"cannot bundle the JavaScript of charts: {error}") from error
    if "</script" in script.lower() or "<!--" in script:
        raise ToolError("vl-convert", "its JavaScript cannot be embedded in a page")
    files.store(key, zlib.compress(script.encode("utf-8"), 6))
    files.trim()
    return notices + script


def open_scripts() -> KeptFiles:
    """The user's cache of bundles."""
    return KeptFiles(find_cache_folder() / "charts", limit_bytes=_LARGEST_BYTES)


def _unpack(packed: bytes) -> str | None:
    """The script in an entry; None when there is no sound one."""
    try:
        unpack = zlib.decompressobj()
        script = unpack.decompress(packed, _LARGEST_BYTES)
    except zlib.error:
        return None
    return script.decode("utf-8") if unpack.eof else None
