"""The SASS documents of the shown kernels: made when asked for, kept while the client holds their text."""

import hashlib
import re
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

from lsprotocol.types import TextDocumentContentChangeEvent
from msgspec import Struct

from gpa_lsp.editor.lines.places import PlaceFinder
from gpa_lsp.editor.lines.positions import Positions, UnitCounter
from gpa_lsp.editor.settings import Settings
from gpa_lsp.editor.snapshot import VisibleKernel
from gpa_lsp.editor.text_changes import apply_changes
from gpa_lsp.foundation.records import ColumnRecord

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_KEPT_DOCUMENTS = 8
_LONGEST_NAME = 60


class SectionKind(Enum):
    """Kinds of parts of a document."""

    FUNCTION = "function"
    LOOP = "loop"
    BLOCK = "block"


class Section(Struct, frozen=True, kw_only=True):
    """A part of the document that belongs together; parts nest or are apart, a loop may hold gaps that are not shown as its."""

    kind: SectionKind  # what it is
    name: str  # as its heading names it
    detail: str  # its samples and what they mostly are, in words; empty without samples
    first_line: int  # its heading, 1-based
    last_line: int  # its last line
    first_row: int  # first instruction


class SassDocument(ColumnRecord, frozen=True, kw_only=True):
    """The SASS of one kernel as text of l lines. A line holds one instruction or none, or stands for several that only fill up."""

    uri: str  # ``gpa-sass:///NAME.DIGEST.nvsass``; the same for later measurements of the kernel
    shown: VisibleKernel  # the kernel and its profile
    lines: tuple[str, ...]  # without line ends
    # int32[l], the (first) instruction on each line (the first line is at index 0); -1 for headings, remarks and empty lines
    row_of_line: "npt.NDArray[np.int32]"
    line_of_row: "npt.NDArray[np.int32]"  # int32[n], the 1-based line of each instruction
    # where the instruction's text, ``InstructionColumns.texts`` of its row verbatim, begins on every instruction's line; characters before it
    instruction_column: int
    # characters from the beginning of the remark behind an instruction to the stall reason in it; None where that is not shown
    reason_offset: int | None
    sections: tuple[Section, ...]  # by first line, outer ones first

    @property
    def text(self) -> str:
        """The whole text; every line ends with a line feed but the last, which is empty."""
        return "\n".join(self.lines)

    def find_row(self, line: int) -> int | None:
        """The instruction on a 1-based line; None when there is none."""
        if not 1 <= line <= len(self.lines):
            return None
        row = int(self.row_of_line[line - 1])
        return None if row < 0 else row

    def find_place(self, row: int) -> tuple[int, int, int]:
        """Find the text of an instruction: its 1-based line, and the characters before its first and behind its last one."""
        start = self.instruction_column
        return int(self.line_of_row[row]), start, start + len(self.shown.kernel.report.instructions.texts[row])


BuildDocument = Callable[[str, VisibleKernel, Sequence[str] | None], SassDocument]


class SassView(Struct, frozen=True, kw_only=True):
    """An open SASS document. Features answer from it and from nothing else."""

    document: SassDocument  # the document whose text the client holds, which may be of an earlier measurement
    positions: "Positions"  # translates lines and columns for the client
    settings: "Settings"  # the options
    places: "PlaceFinder"  # finds measured places on this machine
    has_links: bool = False  # hovers may end in links that run commands of ours


class _OpenDocument(Struct):
    uri: str  # As the client writes it
    version: int | None
    text: str
    document: SassDocument | None
    view: SassView | None = None


class SassDocuments:
    """Every kernel's document, and which of them the client has open.

    The client's text may be of an earlier measurement than the one that is shown: answers then go with the text the client has, as long as that
    measurement is kept, and cease when the text is none of ours.

    Args:
        build: makes a document, with the columns that were chosen.
        units: counts columns for the client.
        has_links: hovers may end in links that run commands of ours.
    """

    def __init__(self, build: BuildDocument, units: UnitCounter, *, has_links: bool = False) -> None:
        self._build = build
        self._units = units
        self._has_links = has_links
        self._kernels: Mapping[str, VisibleKernel] = {}
        self._uris: Mapping[int, str] = {}
        self._made: OrderedDict[str, SassDocument] = OrderedDict()
        self._open: dict[str, _OpenDocument] = {}
        self._settings = Settings()
        self._places: PlaceFinder | None = None
        self.columns: tuple[str, ...] | None = None
        """Names of the columns that were chosen, in their order; None for the usual ones."""

    def choose_columns(self, names: Sequence[str] | None) -> tuple[str, ...]:
        """A person wants to see some columns, or with None the usual ones."""
        chosen = None if names is None else tuple(names)
        if chosen == self.columns:
            return ()
        self.columns = chosen
        self._made.clear()
        return tuple(uri for uri in self._open if uri in self._kernels)

    def take(self, kernels: Iterable[VisibleKernel], settings: Settings, places: PlaceFinder) -> tuple[str, ...]:
        """Take new kernels, settings and places; the open documents whose text changed."""
        self._settings, self._places = settings, places
        before = self._kernels
        self._kernels = {make_uri(shown): shown for shown in kernels}
        self._uris = {id(shown.kernel): uri for uri, shown in self._kernels.items()}
        for document in self._open.values():
            document.view = None
        changed = [uri for uri, shown in self._kernels.items() if uri in before and not _is_same(before[uri], shown)]
        for uri in [*changed, *(uri for uri in self._made if uri not in self._kernels)]:
            self._made.pop(uri, None)
        came = [uri for uri in self._kernels if uri not in before]
        return tuple(uri for uri in (*changed, *came) if uri in self._open)

    def find_uri(self, shown: VisibleKernel) -> str:
        """The document of a kernel."""
        return self._uris.get(id(shown.kernel)) or make_uri(shown)

    def find_kernel(self, uri: str) -> VisibleKernel | None:
        """The kernel of a document; None when no loaded profile has it."""
        return self._kernels.get(normalise_uri(uri))

    def make(self, uri: str) -> SassDocument | None:
        """The document as of now; None when no loaded profile has the kernel."""
        uri = normalise_uri(uri)
        shown = self._kernels.get(uri)
        if shown is None:
            return None
        if uri not in self._made:
            self._made[uri] = self._build(uri, shown, self.columns)
        self._made.move_to_end(uri)
        while len(self._made) > _KEPT_DOCUMENTS:
            self._made.popitem(last=False)
        return self._made[uri]

    def open(self, uri: str, text: str, version: int | None = None) -> None:
        """The client opened a document, or has a new text for it."""
        known = self._open.get(normalise_uri(uri))
        document = self.make(uri)
        if document is not None and not _holds(document, text):
            document = known.document if known is not None and known.document and _holds(known.document, text) else None
        self._open[normalise_uri(uri)] = _OpenDocument(uri=uri, version=version, text=text, document=document)

    def change(self, uri: str, changes: Sequence[TextDocumentContentChangeEvent], version: int | None = None) -> None:
        """The client's text was changed, which happens when the editor reads it again."""
        opened = self._open.get(normalise_uri(uri))
        if opened is not None:
            self.open(uri, apply_changes(opened.text, changes, self._units), version)

    def close(self, uri: str) -> None:
        """The client closed a document."""
        self._open.pop(normalise_uri(uri), None)

    def list_open(self) -> tuple[tuple[str, int | None], ...]:
        """The documents the client has open, as it writes them, with its numbers for their texts."""
        return tuple((document.uri, document.version) for document in self._open.values())

    def view(self, uri: str) -> SassView | None:
        """The view of an open document that goes with the text its client holds; None when it is not open, or the text is none of ours."""
        opened = self._open.get(normalise_uri(uri))
        if opened is None or self._places is None:
            return None
        if opened.document is None:  # the client had the text before we had the profile
            made = self.make(uri)
            opened.document = made if made is not None and _holds(made, opened.text) else None
        if opened.document is None:
            return None
        if opened.view is None:
            positions = Positions(lines=opened.document.lines, units=self._units)
            opened.view = SassView(
                document=opened.document,
                positions=positions,
                settings=self._settings,
                places=self._places,
                has_links=self._has_links,
            )
        return opened.view


def _is_same(one: VisibleKernel, other: VisibleKernel) -> bool:
    return one.kernel is other.kernel and one.name == other.name


def _holds(document: SassDocument, text: str) -> bool:
    """Whether a client's text is this document: editors change line ends, and some take away the last one."""
    plain = text.replace("\r\n", "\n")
    own = document.text
    return plain == own or plain == own.removesuffix("\n") or plain.removesuffix("\n") == own


def make_uri(shown: VisibleKernel) -> str:
    """The document of a kernel: its short name for people, and what tells it from others of that name."""
    home = shown.kernel.body[0] if shown.kernel.body is not None else ""
    file = shown.profile.files.get(home)
    identity = f"{shown.kernel.report.mangled_name}\0{file.local_path if file is not None else home}"
    digest = hashlib.sha256(identity.encode("utf-8", errors="replace")).hexdigest()[:8]
    name = re.sub(r"[^\w.-]+", "_", shown.name, flags=re.ASCII)[:_LONGEST_NAME].strip("_.") or "kernel"
    return f"{SCHEME}:///{name}.{digest}.nvsass"


def normalise_uri(uri: str) -> str:
    """One spelling: clients quote what needs no quoting.

    >>> normalise_uri("gpa-sass:///a%5Fb.0011aabb.nvsass")
    'gpa-sass:///a_b.0011aabb.nvsass'
    """
    scheme, _, path = uri.partition(":")
    return f"{scheme}:///{quote(unquote(path.lstrip('/')), errors='replace')}"


def is_sass_uri(uri: str) -> bool:
    """Whether a document is one of ours."""
    return uri.startswith(f"{SCHEME}:")


SCHEME = "gpa-sass"
LANGUAGE_ID = "nvsass"


def is_same_code(one: VisibleKernel, other: VisibleKernel) -> bool:
    """Whether the rows of two measurements are the same instructions."""
    left, right = one.kernel.report.instructions, other.kernel.report.instructions
    return left is right or left.texts == right.texts
