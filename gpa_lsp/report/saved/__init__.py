"""SAVE: a report ↔ JSON, and the reports that were analysed before in the user's cache.

The JSON format's schema, ``report_schema.json``, is its documentation; the tests write it from the types.
"""

from pathlib import Path

from gpa_lsp.foundation.errors import InputError
from gpa_lsp.foundation.files import read_head

SCHEMA_NAME = "gpa-lsp/report/3"  # The value of a report's first property

# What is read. The earlier versions have everything in place, as the third has it with ``--expand``.
SCHEMA_NAMES = ("gpa-lsp/report/1", "gpa-lsp/report/2", SCHEMA_NAME)

_SNIFFED_BYTES = 4096
_FORMAT_PREFIX = "gpa-lsp/report/"


def is_saved_report(path: Path) -> bool:
    """Whether a file looks like a report of any version, from its first bytes; False when it cannot be read."""
    try:
        start = read_head(path)[:_SNIFFED_BYTES].decode("ascii", errors="replace")
    except InputError:
        return False
    return start.lstrip().startswith("{") and f'"{_FORMAT_PREFIX}' in start
