"""Charts as pictures, drawn without a browser by vl-convert.

The engine aborts the process at characters that XML does not have, so all texts are made visible first.
"""

import importlib.util
from typing import Any

from gpa_lsp.document.charts.themes import build_config
from gpa_lsp.foundation.errors import MissingToolError, ToolError
from gpa_lsp.foundation.visible_text import make_values_visible, make_visible

_SCALE = 2  # Pixels of a PNG per pixel of its specification


def draw_svg(spec: dict[str, Any], dark: bool = False) -> str:
    """A Vega-Lite specification as SVG; nothing is loaded from a network.

    Args:
        spec: with its data in it.
        dark: light marks on dark ground.

    Raises:
        MissingToolError: vl-convert is not installed.
        ToolError: the specification cannot be drawn.
    """
    return str(_convert("svg", spec, dark))


def draw_png(spec: dict[str, Any], dark: bool = False) -> bytes:
    """A Vega-Lite specification as PNG; arguments and errors as of :func:`draw_svg`."""
    return bytes(_convert("png", spec, dark, scale=_SCALE))


def _convert(form: str, spec: dict[str, Any], dark: bool, **options: Any) -> Any:
    check_drawing()
    import vl_convert  # brings a JavaScript engine of 50 MB

    draw = getattr(vl_convert, f"vegalite_to_{form}")
    shown = make_values_visible(spec, make_visible)
    try:
        return draw(shown, config=build_config(dark=dark), allowed_base_urls=[], **options)
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
