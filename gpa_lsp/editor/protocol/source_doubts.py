"""Messages and choices about sources that may not be what was measured: one message per workspace, and a command to ask again."""

from collections.abc import Callable, Sequence
from pathlib import Path

from gpa_lsp.editor.documents import Documents, UnmappedSource, UnverifiedSource
from gpa_lsp.editor.lines.places import name_file
from gpa_lsp.editor.protocol.client import Client
from gpa_lsp.editor.protocol.kept_choices import KeptChoices
from gpa_lsp.editor.settings import UnverifiedChoice
from gpa_lsp.foundation.numbers import format_count

SHOW = "Show"  # Numbers on all their lines, marked

HIDE = "Hide"  # No numbers on their lines

MAP = "Map sources…"  # A page that says which file is taken for which, and how to say otherwise

COMMAND_NAME = "gpaLsp.chooseSources"

_CHOICE = "sources"  # what the choice is called among those that are kept

_CHOICES = {SHOW: UnverifiedChoice.ALL, HIDE: UnverifiedChoice.NONE}


class SourceDoubts:
    """Tells and asks.

    Args:
        client: the editor.
        documents: the open ones.
        take: is given what the user chose.
        is_asked: the client shows a question without being in the way; others are told, and ask by the command.
        choices: what was chosen before.
    """

    def __init__(
        self,
        client: Client,
        documents: Documents,
        take: Callable[[UnverifiedChoice], None],
        *,
        is_asked: bool,
        choices: KeptChoices,
    ) -> None:
        self._client = client
        self._documents = documents
        self._take = take
        self._is_asked = is_asked
        self._choices = choices
        self._workspace: Path | None = None
        self._is_told = True

    async def configure(self, workspace: Path | None) -> None:
        """Take a workspace and the choice that was made for it before."""
        if workspace == self._workspace:
            return
        self._workspace = workspace
        names = self._choices.read_names(_CHOICE) if workspace is not None else None
        chosen = [one for one in UnverifiedChoice if one.value in (names or ())]
        self._is_told = bool(chosen)
        if chosen:
            self._take(chosen[0])
        else:
            await self.tell()

    async def tell(self, *, is_decided: bool = False) -> None:
        """Look at the open documents again; say something if there is something to say, and nothing was said in this workspace."""
        unverified = () if is_decided else self._documents.find_unverified()
        unmapped = self._documents.find_unmapped()
        if self._is_told or not (unverified or unmapped):
            return
        self._is_told = True
        text = describe_doubts(unverified, unmapped)
        if self._is_asked:
            self._settle(await self._client.choose(text, (SHOW, HIDE, MAP)))
        else:
            self._client.inform(f"{text}; {COMMAND_NAME} shows, hides or maps such sources")
            self._keep(UnverifiedChoice.FITTING)

    async def ask(self, wanted: str | None = None) -> str | None:
        """Ask the user, or take the choice that their command names.

        Args:
            wanted: ``show``, ``hide`` or ``map``; None to ask.

        Returns:
            One of these; None for no answer.
        """
        by_word = {"show": SHOW, "hide": HIDE, "map": MAP}
        if wanted in by_word:
            answer: str | None = by_word[wanted]
        else:
            text = describe_doubts(self._documents.find_unverified(), self._documents.find_unmapped())
            answer = await self._client.choose(text, (SHOW, HIDE, MAP))
        self._settle(answer)
        return next((word for word, action in by_word.items() if action == answer), None)

    def _settle(self, answer: str | None) -> None:
        if answer == MAP:
            page = write_mapping_page(self._documents.find_unverified(), self._documents.find_unmapped())
            self._client.show_document("Sources", page)
        choice = _CHOICES.get(answer or "", UnverifiedChoice.FITTING)
        if answer in _CHOICES:
            self._take(choice)
        if answer != MAP:
            self._keep(choice)

    def _keep(self, choice: UnverifiedChoice) -> None:
        if self._workspace is not None:
            self._choices.keep_names(_CHOICE, (choice.value,))


def describe_doubts(unverified: Sequence[UnverifiedSource], unmapped: Sequence[UnmappedSource]) -> str:
    """One sentence or two about all of them.

    >>> one = UnverifiedSource(
    ...     local_path="/w/k.cu", compiled_path="/b/k.cu", profile="k.ncu-rep", doubt="was saved after it was measured", is_shown=True
    ... )
    >>> describe_doubts([one], [])
    'k.cu was saved after it was measured: its numbers are marked with ? (there is no copy of it in k.ncu-rep)'
    """
    parts = []
    shown = [one for one in unverified if one.is_shown]
    hidden = [one for one in unverified if not one.is_shown]
    for group, outcome in ((shown, "numbers are marked with ?"), (hidden, "numbers are hidden")):
        if group:
            first = group[0]
            others = f", like {format_count(len(group) - 1)} more," if len(group) > 1 else ""
            why = first.doubt if first.is_shown else f"does not fit what was measured: it {first.doubt}"
            copy = f"there is no copy of it in {first.profile}"
            parts.append(f"{name_file(first.local_path)}{others} {why}: its {outcome} ({copy})")
    parts.extend(
        f"{one.profile} was measured with {one.compiled_path}, which is not in this workspace; if {one.local_path} is that file, map its folder"
        for one in unmapped[:1]
    )
    return ". ".join(parts) or "every open source is what was measured, as far as anyone can tell"


def write_mapping_page(unverified: Sequence[UnverifiedSource], unmapped: Sequence[UnmappedSource]) -> str:
    """Write which file is taken for which, and the setting that says otherwise; Markdown."""
    rows = [f"* `{one.compiled_path}` is taken to be `{one.local_path}`, which {one.doubt}" for one in unverified]
    rows += [f"* `{one.compiled_path}` was not found here; `{one.local_path}` has the same name" for one in unmapped]
    pairs = dict(map(_guess_folders, unmapped)) or {"/folder/as/compiled": "/folder/here"}
    lines = ",\n".join(f'    "{compiled}": "{here}"' for compiled, here in pairs.items())
    return "\n".join(
        [
            "# Sources of profiles",
            "",
            *(rows or ["* every open source was found"]),
            "",
            "To say where sources lie, set `gpaLsp.pathMappings`, a folder as compiled and the folder here:",
            "",
            "```json",
            '"gpaLsp.pathMappings": {',
            lines,
            "}",
            "```",
            "",
            "A copy of the sources in the report leaves no doubt: record with `--import-source yes`.",
            "",
        ]
    )


def _guess_folders(source: UnmappedSource) -> tuple[str, str]:
    """The folders above the part of both paths that is alike."""
    compiled = source.compiled_path.replace("\\", "/").split("/")
    here = source.local_path.replace("\\", "/").split("/")
    while len(compiled) > 1 and len(here) > 1 and compiled[-1] == here[-1]:
        compiled.pop()
        here.pop()
    return "/".join(compiled) or "/", "/".join(here) or "/"
