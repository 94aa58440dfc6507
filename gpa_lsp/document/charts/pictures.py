"""Charts as pictures, drawn without a browser by vl-convert.

The engine ends the process at characters that XML does not have, so no text reaches it as it came.
"""

import importlib.util
from typing import Any

from gpa_lsp.document.charts.themes import build_config
from gpa_lsp.foundation.errors import MissingToolError, ToolError
from gpa_lsp.foundation.visible_text import make_values_visible, make_visible


def draw_svg(spec: dict[str, Any], dark: bool = False) -> str:
    """A Vega-Lite specification as SVG; nothing is loaded from a network.

    Args:
        spec: with its data in it.
        dark: light marks on dark ground.

    Raises:
        MissingToolError: vl-convert is not installed.
        ToolError: the specification cannot be drawn.
    """
    convert = _load()
    try:
        return str(
            convert.vegalite_to_svg(
                make_values_visible(spec, make_visible), config=build_config(dark=dark), allowed_base_urls=[]
            )
        )
    except (ValueError, RuntimeError) as error:
        raise ToolError("vl-convert", f"cannot draw the chart: {error}") from error


def draw_png(spec: dict[str, Any], dark: bool = False, scale: float = 2) -> bytes:
    """The same as PNG.

    Args:
        spec: with its data in it.
        dark: light marks on dark ground.
        scale: pixels of the picture per pixel of the specification.

    Raises:
        MissingToolError: vl-convert is not installed.
        ToolError: the specification cannot be drawn.
    """
    convert = _load()
    try:
        return bytes(
            convert.vegalite_to_png(
                make_values_visible(spec, make_visible),
                config=build_config(dark=dark),
                scale=scale,
                allowed_base_urls=[],
            )
        )
    except (ValueError, RuntimeError) as error:
        raise ToolError("vl-convert", f"cannot draw the chart: {error}") from error


def check_drawing() -> None:
    """Check that charts can be drawn, before anything slow is done for them.

    Raises:
        MissingToolError: vl-convert is not installed.
    """
    if importlib.util.find_spec("vl_convert") is None:
        raise MissingToolError(
            "vl-convert-python",
            needed_for="a chart as SVG or PNG",
            install="pip install 'gpa-lsp[charts]', or write .html, which a browser draws",
        )


def _load() -> Any:
    check_drawing()
    import vl_convert  # brings a JavaScript engine of 50 MB

    return vl_convert
