"""The terms of the field that users read, in ``glossary.toml``: what each means, and the words that are not used for it.

Every text a user reads keeps to it: ``tests/house/test_words.py`` looks through all of them.
"""

from pathlib import Path

import msgspec
import tomli
from msgspec import Struct


class Term(Struct, frozen=True, kw_only=True):
    """A term of the field."""

    name: str  # as it is written, in the singular
    meaning: str  # one sentence for a reader who meets it for the first time
    not_said: tuple[str, ...] = ()  # regular expressions of what is not written instead, case ignored
    is_plain: bool = False  # English that needs no explanation where it is read


TERMS = msgspec.convert(
    tomli.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))["term"], tuple[Term, ...]
)
