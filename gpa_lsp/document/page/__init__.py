"""Frame of every page: one self-contained file that opens from disk, loads nothing, and reads on light and on dark ground."""

import base64
import gzip
import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any

from jinja2 import BaseLoader, Environment, StrictUndefined, TemplateNotFound
from markupsafe import Markup, escape

from gpa_lsp.document.blocks import Gauge
from gpa_lsp.document.charts.themes import build_config
from gpa_lsp.document.layout import clamp_ratio
from gpa_lsp.foundation.glossary import TERMS
from gpa_lsp.foundation.numbers import format_count, format_count_of, format_percent
from gpa_lsp.foundation.prose import Code, Part, Place, Sentence
from gpa_lsp.foundation.visible_text import make_lines_visible, make_values_visible

# Data and scripts inside a page, so that nothing in them can end the element they stand in.
#
# A kernel's name, a line of source or a rule's remark may hold ``</script>``; none of it may become markup. Nor does
# any text reach the page's script that steers or hides: what a script shows has been made visible here.

_ESCAPED = {ord(character): f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"}

_LEVEL = 6  # Of compression: beyond it the time doubles and a page gets 2 % smaller


def embed_json(value: Any) -> Markup:
    r"""A value as JSON for a ``<script type="application/json">``.

    >>> str(embed_json({"name": "</script><b>&"}))
    '{"name":"\\u003c/script\\u003e\\u003cb\\u003e\\u0026"}'
    """
    text = json.dumps(make_values_visible(value), ensure_ascii=False, separators=(",", ":"), allow_nan=False).translate(
        _ESCAPED
    )
    return Markup(text)


def embed_compressed(value: Any) -> Markup:
    r"""A value as JSON, compressed with gzip and written in base64: a quarter of the size for large columns. The page's script unpacks it.

    The same value gives the same text, whenever it is written.

    >>> import gzip, base64
    >>> gzip.decompress(base64.b64decode(embed_compressed(["</script>"])))
    b'["</script>"]'
    """
    text = json.dumps(make_values_visible(value), ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    return Markup(base64.b64encode(gzip.compress(text.encode("ascii"), _LEVEL, mtime=0)).decode("ascii"))


def embed_script(text: str) -> Markup:
    r"""A script of ours or of a library for a ``<script>``: what would end the element inside a string is written otherwise.

    >>> str(embed_script('const end = "</script>";'))
    'const end = "<\\/script>";'
    """
    safe = text.replace("\r\n", "\n").replace("</script", "<\\/script").replace("<!--", "<\\!--")
    return Markup(safe)


def hash_script(text: Markup) -> str:
    """Source expression of the content security policy that allows exactly this script.

    Source: Content Security Policy Level 3, section 2.3.1, hash-source.

    >>> hash_script(embed_script(""))
    "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='"
    """
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


_CODE = re.compile(r"`([^`]+)`")


def render_prose(text: str, link: Callable[[Place], str] | None = None) -> Markup:
    """A sentence with its code marked as such, and its places as links. What is markup stays as it is.

    Args:
        text: mostly a :class:`Sentence`; of a plain text, what stands between single backticks is code.
        link: from a place to its address in the page; None, or an empty one, leaves the words.

    >>> str(render_prose("put `#pragma unroll` above a<b>"))
    'put <code>#pragma unroll</code> above a&lt;b&gt;'
    >>> str(render_prose(Sentence(["see ", Place(file="/k.cu", line=3)]), lambda place: "#k0/line/0/3"))
    'see <a href="#k0/line/0/3">line 3</a>'
    """
    if isinstance(text, Markup):
        return text
    if isinstance(text, Sentence):
        return Markup("").join(_render_part(part, link) for part in text.parts)
    return _render_words(text)


def _render_part(part: Part, link: Callable[[Place], str] | None) -> Markup:
    if isinstance(part, Code):
        return Markup("<code>{}</code>").format(make_lines_visible(part.text))
    address = link(part) if link is not None and isinstance(part, Place) else ""
    words = _render_words(str(part))
    return Markup('<a href="{}">{}</a>').format(address, words) if address else words


def _render_words(text: str) -> Markup:
    parts = _CODE.split(make_lines_visible(text))
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if position % 2 else escape(part) for position, part in enumerate(parts)
    )


_MEANINGS = {term.name: term.meaning for term in TERMS if not term.is_plain}
_TERMS = re.compile(
    rf"\b(?:{'|'.join(sorted(map(re.escape, _MEANINGS), key=len, reverse=True))})(?=e?s?\b)", re.IGNORECASE
)
_LONGEST_HEADING = 40  # Characters of a label in which terms are explained; what is longer is a sentence or a name


def explain_term(label: str) -> Markup:
    """A heading or a label, with the meaning of the first term of the glossary in it.

    >>> str(explain_term("achieved occupancy")).partition(" title")[0]
    'achieved <abbr'
    >>> str(explain_term("time"))
    'time'
    """
    found = _TERMS.search(label) if len(label) <= _LONGEST_HEADING else None
    if found is None or isinstance(label, Markup):
        return escape(make_lines_visible(label))
    before, term, after = label[: found.start()], found.group(), label[found.end() :]
    explained = Markup('<abbr title="{}">{}</abbr>').format(_MEANINGS[term.lower()], term)
    return escape(make_lines_visible(before)) + explained + escape(make_lines_visible(after))


def draw_gauge(gauge: Gauge, tone: str = "") -> Markup:
    """A bar; its numbers stand in the next cell."""
    ceiling = "" if gauge.ceiling is None else f";--ceiling:{clamp_ratio(gauge.ceiling)}"
    tick = Markup("<b></b>") if gauge.ceiling is not None else ""
    return Markup('<span class="meter {}" style="--ratio:{}{}" aria-hidden="true"><i></i>{}</span>').format(
        tone, clamp_ratio(gauge.ratio), ceiling, tick
    )


_SHELL = "gpa_lsp.document.page"
_CHARTS = "gpa_lsp.document.charts"


class _PackageTemplates(BaseLoader):
    """Templates named ``package/file`` from the ``assets`` of packages; works from a wheel, a zip and a checkout alike."""

    def get_source(self, environment: Environment, template: str) -> tuple[str, str | None, None]:
        """Text of a template (method of :class:`BaseLoader`)."""
        package, _, name = template.rpartition("/")
        try:
            return read_asset(package, name), None, None
        except (OSError, ModuleNotFoundError) as error:
            raise TemplateNotFound(template) from error


@cache
def make_environment() -> Environment:
    """The jinja2 environment of all pages: it escapes everything, shows control characters, and fails on undefined names."""
    environment = Environment(
        loader=_PackageTemplates(),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_make_visible,
    )
    environment.filters["prose"] = render_prose
    environment.filters["term"] = explain_term
    environment.filters["meaning"] = _MEANINGS.__getitem__
    environment.filters["bar"] = draw_gauge
    environment.filters["percent"] = format_percent
    environment.filters["count"] = format_count
    environment.filters["counted"] = format_count_of
    return environment


def _make_visible(value: Any) -> Any:
    """Make control characters in a template's value visible; markup has been through here before."""
    return make_lines_visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


@cache
def read_asset(package: str, name: str) -> str:
    """The text of a file in the ``assets`` folder of a package of ours."""
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
        template: ``package/file``; it extends ``gpa_lsp.document.page/frame.html.jinja`` and fills its blocks ``header``, ``main`` and ``data``.
        draws_charts: bring Vega along, with the looks of charts on both grounds, so that ``gpaPage.drawChart`` works.
    """
    # its licence notices stand at its head, because passing a page on passes the libraries on
    libraries = (read_asset(_CHARTS, "vega.js"),) if draws_charts else ()
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
    """Content security policy of a page: it may run these scripts, style itself and show embedded pictures, and load nothing.

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
