"""The terms of the field that users read, in ``glossary.toml``: what each means, and the words that are not used for it.

Every text a user reads keeps to it: ``tests/house/test_words.py`` looks through all of them.
"""

from pathlib import Path

import msgspec
from msgspec import Struct

from gpa_lsp.foundation.toml_tables import read_own_table


class Term(Struct, frozen=True, kw_only=True):
    """A term of the field."""

    name: str  # as it is written, in the singular
    meaning: str  # one sentence for a reader who meets it for the first time
    not_said: tuple[str, ...] = ()  # regular expressions of what is not written instead, case ignored
    is_plain: bool = False  # English that needs no explanation where it is read


TERMS = msgspec.convert(read_own_table(Path(__file__).with_suffix(".toml"))["term"], tuple[Term, ...])
