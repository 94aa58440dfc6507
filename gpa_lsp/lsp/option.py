"""What an option of the editor is: :class:`Option`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

FLAG = {"type": "boolean"}
"""Schema of a switch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """An option as an editor sees it.

    Attributes:
        field: of :class:`~gpa_lsp.lsp.settings.Settings`.
        read: the reader of its value, which raises ValueError saying what it takes.
        summary: what it means, one sentence.
        schema: JSON Schema of its value, without default and description.
        default: as the editor writes it.
        is_restricted: a workspace that is not trusted must not set it: it starts programs, or widens what is read.
    """

    field: str
    read: Callable[[object], object]
    summary: str
    schema: Mapping[str, object]
    default: object
    is_restricted: bool = False
