"""Sentences in a page: what stands between backticks is code, and everything is escaped."""

import re

from markupsafe import Markup, escape

_CODE = re.compile(r"`([^`]+)`")


def render_prose(text: str) -> Markup:
    """A sentence with its code marked as such.

    >>> str(render_prose("put `#pragma unroll` above a<b>"))
    'put <code>#pragma unroll</code> above a&lt;b&gt;'
    """
    parts = _CODE.split(text)
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if position % 2 else escape(part) for position, part in enumerate(parts)
    )
