"""A session without a server: what features and commands ask about it, over real snapshots, views and SASS documents."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from lsprotocol.types import Location
from msgspec.structs import replace
from pygls.workspace import PositionCodec

from gpa_lsp.editor.document_view import DocumentView
from gpa_lsp.editor.documents import Documents
from gpa_lsp.editor.lines.places import PlaceFinder
from gpa_lsp.editor.metrics import LineMetric
from gpa_lsp.editor.protocol.safe_markdown import defuse
from gpa_lsp.editor.sass.document import build_document
from gpa_lsp.editor.sass.library import SassDocuments
from gpa_lsp.editor.settings import Abilities, Settings
from gpa_lsp.editor.snapshot import LoadedProfile, Snapshot
from gpa_lsp.editor.source.fixes import Fix, FixVerifier, OfferedFix
from gpa_lsp.report.fixes.results import UNKNOWN
from tests.editor.views import SOURCE, make_snapshot


class Nobody:
    """Is told of documents, and sends nothing."""

    def changed(self, uri: str, version: int | None, find_view: Callable[[], DocumentView | None]) -> None: ...

    def closed(self, uri: str) -> None: ...


class NoVerifier:
    """Tries nothing."""

    may_leave_edits = False

    def offer(self, view: DocumentView, fixes: Sequence[Fix]) -> tuple[OfferedFix, ...]:
        return tuple(OfferedFix(key="", uri=view.uri, text=view.text, fix=fix, verdict=UNKNOWN) for fix in fixes)

    def find(self, key: str) -> OfferedFix | None:
        return None

    async def wait(self, key: str) -> OfferedFix | None:
        return None


class Session:
    """A desk that remembers what commands did to it.

    Args:
        profiles: what is loaded.
        opened: path → text of the open documents.
        settings: the options.
        abilities: what the client wants.
    """

    def __init__(
        self,
        profiles: LoadedProfile | Sequence[LoadedProfile] = (),
        opened: Mapping[str, str] | None = None,
        *,
        settings: Settings | None = None,
        abilities: Abilities | None = None,
    ) -> None:
        self.snapshot: Snapshot = make_snapshot(*([profiles] if isinstance(profiles, LoadedProfile) else profiles))
        self.settings = settings or Settings()
        self.abilities = abilities or Abilities()
        self.documents = Documents(units=PositionCodec(), abilities=self.abilities, watcher=Nobody())
        self.documents.take(self.snapshot, self.settings)
        for path, text in ({"/project/saxpy.cu": SOURCE} if opened is None else opened).items():
            self.documents.open(Path(path).as_uri(), path, text, 1)
        self.sass = SassDocuments(build_document, PositionCodec())
        self.sass.take(self.snapshot.visible, self.settings, self.places)
        self.fixes: FixVerifier = NoVerifier()
        self.locations: list[Location] = []
        self.documents_shown: list[tuple[str, str]] = []
        self.messages: list[str] = []
        self.client = self

    @property
    def places(self) -> PlaceFinder:
        return self.documents.places

    def can(self, capability: str) -> bool:
        return False

    def view(self, uri: str) -> DocumentView | None:
        return self.documents.view(uri)

    def choose_metric(self, metric: LineMetric) -> None:
        self.settings = replace(self.settings, metric=metric)
        self.documents.take(self.snapshot, self.settings)
        self.sass.take(self.snapshot.visible, self.settings, self.places)

    def show_document(self, title: str, markdown: str) -> str:
        self.documents_shown.append((title, defuse(markdown)))
        return self.documents_shown[-1][1]

    def show_location(self, location: Location) -> None:
        self.locations.append(location)

    def inform(self, text: str) -> None:
        self.messages.append(text)

    def warn(self, text: str) -> None:
        raise AssertionError(text)
