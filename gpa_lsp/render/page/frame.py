"""Pages from templates: :func:`render_page`."""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any

from jinja2 import BaseLoader, Environment, StrictUndefined, TemplateNotFound
from markupsafe import Markup, escape

from gpa_lsp.basis.visible_text import make_lines_visible
from gpa_lsp.render.charts.javascript import read_javascript
from gpa_lsp.render.charts.themes import build_config
from gpa_lsp.render.page.embedding import embed_json, embed_script, hash_script

_CODE = re.compile(r"`([^`]+)`")


def render_prose(text: str) -> Markup:
    """A sentence with its code marked as such.

    >>> str(render_prose("put `#pragma unroll` above a<b>"))
    'put <code>#pragma unroll</code> above a&lt;b&gt;'
    """
    parts = _CODE.split(make_lines_visible(text))
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if position % 2 else escape(part) for position, part in enumerate(parts)
    )


_SHELL = "gpa_lsp.render.page"


class _PackageTemplates(BaseLoader):
    """Templates named ``package/file`` from the ``assets`` of packages; works from a wheel, a zip and a checkout alike."""

    def get_source(self, environment: Environment, template: str) -> tuple[str, str | None, None]:
        """The text of a template."""
        package, _, name = template.rpartition("/")
        try:
            return read_asset(package, name), None, None
        except (OSError, ModuleNotFoundError) as error:
            raise TemplateNotFound(template) from error


@cache
def make_environment() -> Environment:
    """The one environment of all pages: everything is escaped, names cannot hide anything, and a name that is not defined is an error."""
    environment = Environment(
        loader=_PackageTemplates(),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_make_visible,
    )
    environment.filters["prose"] = render_prose
    return environment


def _make_visible(value: Any) -> Any:
    """What stands between double braces; what is markup already was text before, and went through here."""
    return make_lines_visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


@cache
def read_asset(package: str, name: str) -> str:
    """The text of a file in the ``assets`` folder of a package of ours.

    Args:
        package: dotted name.
        name: of the file.
    """
    folder: Traversable = resources.files(package)
    return (folder / "assets" / name).read_text(encoding="utf-8")


def render_page(
    template: str,
    *,
    title: str,
    values: Mapping[str, Any],
    styles: Sequence[str] = (),
    scripts: Sequence[str] = (),
    draws_charts: bool = False,
) -> str:
    """A whole page.

    Args:
        template: ``package/file``; it extends ``gpa_lsp.render.page/frame.html.jinja`` and fills its blocks ``header``, ``main`` and ``data``.
        title: of the document.
        values: what the template names.
        styles: style sheets after the shell's own.
        scripts: run in this order at the end of the page, after the shell's own. They alone may run: a policy in the page lists their hashes.
        draws_charts: bring Vega along, with the looks of charts on both grounds, so that ``gpaPage.drawChart`` works.

    Returns:
        HTML that loads nothing.
    """
    libraries = (read_javascript(),) if draws_charts else ()
    embedded = [embed_script(text) for text in (*libraries, read_asset(_SHELL, "page.js"), *scripts)]
    sheets = [Markup(text) for text in (read_asset(_SHELL, "page.css"), *styles)]
    return (
        make_environment()
        .get_template(template)
        .render(
            {
                **values,
                "title": title,
                "styles": sheets,
                "scripts": embedded,
                "chart_configs": _build_chart_configs() if draws_charts else None,
                "policy": make_policy(embedded),
            }
        )
    )


def _build_chart_configs() -> Markup:
    return embed_json({"light": build_config(dark=False), "dark": build_config(dark=True)})


def make_policy(scripts: Sequence[Markup]) -> str:
    """What the page may do: run these scripts, style itself, show pictures it holds, and nothing else; above all no network.

    Source: Content Security Policy Level 3, section 6.

    >>> make_policy([])
    "default-src 'none'; script-src 'none'; style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'"
    """
    sources = [
        hash_script(text) for text in scripts
    ]  # charts interpret their expressions, so nothing is compiled as it runs
    parts = {
        "default-src": "'none'",
        "script-src": " ".join(sources) or "'none'",
        "style-src": "'unsafe-inline'",  # bars carry their length in a style attribute
        "img-src": "data: blob:",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    return "; ".join(f"{name} {value}" for name, value in parts.items())
