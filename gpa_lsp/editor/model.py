"""What answers about a document are made of: places, and what is said at them.

Lines count from 0 and columns in the code units that the client chose (UTF-16 where it did not choose), because that is how editors ask and are
answered. :mod:`~gpa_lsp.editor.lines.positions` is the only place that counts them; everywhere else a line is 1-based, and a column does not exist.
"""

from collections.abc import Mapping
from enum import Enum
from typing import Any

from msgspec import Struct


class Position(Struct, frozen=True):
    """Between two characters of a document."""

    line: int  # from 0
    character: int  # code units before it on its line


class Range(Struct, frozen=True):
    """Some of a document's text."""

    start: Position  # before its first character
    end: Position  # behind its last one


class Location(Struct, frozen=True, kw_only=True):
    """Some of the text of a document, which need not be open."""

    uri: str  # the document, as the client writes it where it has it open
    range: Range  # in it


class TextChange(Struct, frozen=True, kw_only=True):
    """What a person did to the text of an open document."""

    range: Range | None  # what was replaced; None for the whole text
    text: str  # instead of it


class TextEdit(Struct, frozen=True, kw_only=True):
    """What may be done to the text of a document."""

    range: Range  # what is replaced
    new_text: str  # instead of it


class CommandCall(Struct, frozen=True, kw_only=True):
    """A command with its arguments, for a person to run."""

    title: str  # what it is called where it is offered
    command: str  # its name
    arguments: tuple[Any, ...] = ()  # plain JSON


class Lens(Struct, frozen=True, kw_only=True):
    """A line above a line of the document."""

    range: Range  # where it stands
    command: CommandCall  # what it says, and what a click on it does


class LabelPart(Struct, frozen=True, kw_only=True):
    """Some of the words of a hint."""

    value: str  # the words
    tooltip: str | None = None  # what is said of them when they are pointed at
    location: Location | None = None  # where they lead


class Hint(Struct, frozen=True, kw_only=True):
    """A few words behind the text of a line."""

    position: Position  # where they stand; they keep a distance from the text before them
    label: str | tuple[LabelPart, ...]  # the words, in parts where some of them lead somewhere
    tooltip: str | None = None  # what is said of them when they are pointed at


class Hover(Struct, frozen=True, kw_only=True):
    """What is said of what a cursor points at."""

    text: str  # Markdown
    range: Range  # what it is about


class DiagnosticSeverity(Enum):
    """How loud a diagnostic is."""

    ERROR = "error"
    WARNING = "warning"
    INFORMATION = "information"
    HINT = "hint"


class RelatedPlace(Struct, frozen=True, kw_only=True):
    """A place a diagnostic has to do with."""

    location: Location  # the place
    message: str  # what happens there


class Diagnostic(Struct, frozen=True, kw_only=True):
    """What a person should know of a line."""

    range: Range  # its text
    severity: DiagnosticSeverity  # how loud
    code: str | None  # what kind of thing it is, in a word or two; None where nobody knows
    message: str  # what is to be known
    related: tuple[RelatedPlace, ...] = ()  # other places it has to do with


class ActionKind(Enum):
    """What an action is; the values are the names editors know kinds of actions by, a hierarchy by dots."""

    QUICK_FIX = "quickfix"
    REWRITE = "refactor.rewrite"
    WAY = ""  # It changes nothing: it leads somewhere


class Verification(Struct, frozen=True, kw_only=True):
    """What is known of an action before it is taken."""

    key: str  # by which the client asks for more
    state: str  # of :class:`~gpa_lsp.report.fixes.results.FixState`
    title: str  # of the action, without anything else
    sentences: tuple[str, ...]  # what is known
    is_doubtful: bool  # nobody should take it without having read them


class Action(Struct, frozen=True, kw_only=True):
    """What can be done about some lines."""

    title: str  # what it is called where it is offered
    kind: ActionKind  # what it is
    # of documents, by URI; None for one that runs a command, and where they come later
    edits: Mapping[str, tuple[TextEdit, ...]] | None = None
    command: CommandCall | None = None  # what it runs; None for one that edits
    is_preferred: bool = False  # nobody would choose another one
    verification: Verification | None = None  # what is known of it; None where nothing is tried


class SymbolKind(Enum):
    """What a part of a document is."""

    FUNCTION = "function"
    EVENT = "event"  # A loop, or a call: where something happens many times
    BLOCK = "block"


class Symbol(Struct, frozen=True, kw_only=True):
    """A part of a document with a name."""

    name: str  # its name
    detail: str | None  # a few words beside it; None for none
    kind: SymbolKind  # what it is
    range: Range  # all of it
    selection_range: Range  # the line it begins with
    children: tuple["Symbol", ...] = ()  # the parts of it


class KernelSymbol(Struct, frozen=True, kw_only=True):
    """A kernel, wherever it is."""

    name: str  # its name, and its time where that is known
    location: Location  # its definition, or its SASS document
    container: str  # the profile it was found in


class FoldKind(Enum):
    """What can be folded away."""

    COMMENT = "comment"
    REGION = "region"


class Fold(Struct, frozen=True, kw_only=True):
    """Lines that can be folded away."""

    start_line: int  # the one that stays; from 0
    end_line: int  # the last one that goes
    kind: FoldKind  # what they are


class HighlightKind(Enum):
    """What is done at a highlighted place."""

    TEXT = "text"
    READ = "read"
    WRITE = "write"


class Highlight(Struct, frozen=True, kw_only=True):
    """A place that has to do with what a cursor points at."""

    range: Range  # the place
    kind: HighlightKind  # what is done there


class ChainItem(Struct, frozen=True, kw_only=True):
    """A line or an instruction in a chain of defs and uses, which editors show as a call hierarchy."""

    name: str  # what it is called in a list
    uri: str  # its document
    range: Range  # its text
    detail: str  # a few words beside it
    data: Mapping[str, Any]  # plain JSON by which it is known again when the client asks for its neighbours


class ChainLink(Struct, frozen=True, kw_only=True):
    """A neighbour in such a chain."""

    item: ChainItem  # the neighbour
    ranges: tuple[Range, ...]  # where what is defined there, or used here, stands


class Jump(Struct, frozen=True, kw_only=True):
    """Where a stall comes from, or where it is suffered."""

    location: Location  # the whole text of the line
    text: str  # a few words about it, for a list to choose from
    ratio: float  # of the kernel's samples, 0 to 1
    samples: float  # of the pair
    # the causing (suffering) instruction in the kernel's SASS document; None when it is not known
    sass: Location | None = None


class MarkKind(Enum):
    """What a line's share means."""

    SUFFERS = "suffers"  # The samples were taken here; or it is no samples that are shown
    CAUSES = "causes"  # They were taken elsewhere and are blamed on this line


class Origin(Enum):
    """Where a number comes from."""

    MEASURED = "measured"
    SIMULATED = "simulated"
    EMULATED = "emulated"  # or predicted from what was emulated


class Freshness(Enum):
    """How far a number belongs to the line as it is now."""

    CURRENT = "current"
    UNVERIFIED = "unverified"  # Nobody can tell whether the source is what was measured
    STALE = "stale"  # The line was edited since, and carries no number


class Mark(Struct, frozen=True, kw_only=True):
    """The one mark of a line: hints, lists, heat and SASS documents show it; hovers and diagnostics say more of the same line."""

    line: int  # 1-based, as the document is now
    kind: MarkKind = MarkKind.SUFFERS  # what its share means
    share_ratio: float = 0.0  # of the samples of the kernel it is hottest in, or of what else is shown
    text: str = ""  # the share with its noun, and what it is mostly, in a few words
    kernel: str = ""  # short name of that kernel
    origin: Origin = Origin.MEASURED
    freshness: Freshness = Freshness.CURRENT
