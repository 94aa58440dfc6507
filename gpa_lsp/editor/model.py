"""What answers about a document are made of: places, and what is said at them.

Lines count from 0 and columns in the code units that the client chose (UTF-16 where it did not choose), because that is how editors ask and are
answered. :mod:`~gpa_lsp.editor.lines.positions` is the only place that counts them; everywhere else a line is 1-based, and a column does not exist.
"""

from collections.abc import Mapping
from enum import Enum
from typing import Any

from gpa_lsp.basis.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Position:
    """Between two characters of a document.

    Attributes:
        line: from 0.
        character: code units before it on its line.
    """

    line: int
    character: int


@dataclass(frozen=True, slots=True)
class Range:
    """Some of a document's text.

    Attributes:
        start: before its first character.
        end: behind its last one.
    """

    start: Position
    end: Position


@dataclass(frozen=True, slots=True, kw_only=True)
class Location:
    """Some of the text of a document, which need not be open.

    Attributes:
        uri: the document, as the client writes it where it has it open.
        range: in it.
    """

    uri: str
    range: Range


@dataclass(frozen=True, slots=True, kw_only=True)
class TextChange:
    """What a person did to the text of an open document.

    Attributes:
        range: what was replaced; None for the whole text.
        text: instead of it.
    """

    range: Range | None
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TextEdit:
    """What may be done to the text of a document.

    Attributes:
        range: what is replaced.
        new_text: instead of it.
    """

    range: Range
    new_text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandCall:
    """A command with its arguments, for a person to run.

    Attributes:
        title: what it is called where it is offered.
        command: its name.
        arguments: plain JSON.
    """

    title: str
    command: str
    arguments: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Lens:
    """A line above a line of the document.

    Attributes:
        range: where it stands.
        command: what it says, and what a click on it does.
    """

    range: Range
    command: CommandCall


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelPart:
    """Some of the words of a hint.

    Attributes:
        value: the words.
        tooltip: what is said of them when they are pointed at.
        location: where they lead.
    """

    value: str
    tooltip: str | None = None
    location: Location | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Hint:
    """A few words behind the text of a line.

    Attributes:
        position: where they stand; they keep a distance from the text before them.
        label: the words, in parts where some of them lead somewhere.
        tooltip: what is said of them when they are pointed at.
    """

    position: Position
    label: str | tuple[LabelPart, ...]
    tooltip: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Hover:
    """What is said of what a cursor points at.

    Attributes:
        text: Markdown.
        range: what it is about.
    """

    text: str
    range: Range


class DiagnosticSeverity(Enum):
    """How loud a diagnostic is."""

    ERROR = "error"
    WARNING = "warning"
    INFORMATION = "information"
    HINT = "hint"


@dataclass(frozen=True, slots=True, kw_only=True)
class RelatedPlace:
    """A place a diagnostic has to do with.

    Attributes:
        location: the place.
        message: what happens there.
    """

    location: Location
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnostic:
    """What a person should know of a line.

    Attributes:
        range: its text.
        severity: how loud.
        code: what kind of thing it is, in a word or two; None where nobody knows.
        message: what is to be known.
        related: other places it has to do with.
    """

    range: Range
    severity: DiagnosticSeverity
    code: str | None
    message: str
    related: tuple[RelatedPlace, ...] = ()


class ActionKind(Enum):
    """What an action is; the values are the names editors know kinds of actions by, a hierarchy by dots."""

    QUICK_FIX = "quickfix"
    REWRITE = "refactor.rewrite"
    WAY = ""
    """It changes nothing: it leads somewhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """What is known of an action before it is taken.

    Attributes:
        key: by which the client asks for more.
        state: of :class:`~gpa_lsp.editor.verified.results.FixState`.
        title: of the action, without anything else.
        sentences: what is known.
        is_doubtful: nobody should take it without having read them.
    """

    key: str
    state: str
    title: str
    sentences: tuple[str, ...]
    is_doubtful: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """What can be done about some lines.

    Attributes:
        title: what it is called where it is offered.
        kind: what it is.
        edits: of documents, by URI; None for one that runs a command, and where they come later.
        command: what it runs; None for one that edits.
        is_preferred: nobody would choose another one.
        verification: what is known of it; None where nothing is tried.
    """

    title: str
    kind: ActionKind
    edits: Mapping[str, tuple[TextEdit, ...]] | None = None
    command: CommandCall | None = None
    is_preferred: bool = False
    verification: Verification | None = None


class SymbolKind(Enum):
    """What a part of a document is."""

    FUNCTION = "function"
    EVENT = "event"
    """A loop, or a call: where something happens many times."""
    BLOCK = "block"


@dataclass(frozen=True, slots=True, kw_only=True)
class Symbol:
    """A part of a document with a name.

    Attributes:
        name: its name.
        detail: a few words beside it; None for none.
        kind: what it is.
        range: all of it.
        selection_range: the line it begins with.
        children: the parts of it.
    """

    name: str
    detail: str | None
    kind: SymbolKind
    range: Range
    selection_range: Range
    children: tuple["Symbol", ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelSymbol:
    """A kernel, wherever it is.

    Attributes:
        name: its name, and its time where that is known.
        location: its definition, or its SASS document.
        container: the profile it was found in.
    """

    name: str
    location: Location
    container: str


class FoldKind(Enum):
    """What can be folded away."""

    COMMENT = "comment"
    REGION = "region"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fold:
    """Lines that can be folded away.

    Attributes:
        start_line: the one that stays; from 0.
        end_line: the last one that goes.
        kind: what they are.
    """

    start_line: int
    end_line: int
    kind: FoldKind


class HighlightKind(Enum):
    """What is done at a highlighted place."""

    TEXT = "text"
    READ = "read"
    WRITE = "write"


@dataclass(frozen=True, slots=True, kw_only=True)
class Highlight:
    """A place that has to do with what a cursor points at.

    Attributes:
        range: the place.
        kind: what is done there.
    """

    range: Range
    kind: HighlightKind


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainItem:
    """A line or an instruction in a chain of defs and uses, which editors show as a call hierarchy.

    Attributes:
        name: what it is called in a list.
        uri: its document.
        range: its text.
        detail: a few words beside it.
        data: plain JSON by which it is known again when the client asks for its neighbours.
    """

    name: str
    uri: str
    range: Range
    detail: str
    data: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainLink:
    """A neighbour in such a chain.

    Attributes:
        item: the neighbour.
        ranges: where what is defined there, or used here, stands.
    """

    item: ChainItem
    ranges: tuple[Range, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Jump:
    """Where a stall comes from, or where it is suffered.

    Attributes:
        location: the whole text of the line.
        text: a few words about it, for a list to choose from.
        ratio: of the kernel's samples, 0 to 1.
        samples: of the pair.
        sass: the causing (suffering) instruction in the kernel's SASS document; None when it is not known.
    """

    location: Location
    text: str
    ratio: float
    samples: float
    sass: Location | None = None
