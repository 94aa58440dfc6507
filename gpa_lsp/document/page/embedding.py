r"""Data and scripts inside a page, so that nothing in them can end the element they stand in.

A kernel's name, a line of source or a rule's remark may hold ``</script>``; none of it may become markup. Nor does any text reach the
page's script that steers or hides: what a script shows has been made visible here.
"""

import base64
import gzip
import hashlib
import json
from typing import Any

from markupsafe import Markup

from gpa_lsp.foundation.visible_text import make_values_visible

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
    """The source expression that lets exactly this script run.

    Source: Content Security Policy Level 3, section 2.3.1, hash-source.

    >>> hash_script(embed_script(""))
    "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='"
    """
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
