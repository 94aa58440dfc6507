"""What the client says of settings, as the protocol brings it."""

from typing import Any

from lsprotocol import types

from gpa_lsp.editor.settings import HeldSettings
from gpa_lsp.lsp.editor import Editor

_SECTION = "gpaLsp"


class SettingsSync:
    """Hands on what comes, asks for what does not, and complains of values that make no sense.

    Args:
        editor: the client.
        held: the settings as they came to be.
    """

    def __init__(self, editor: Editor, held: HeldSettings) -> None:
        self._editor = editor
        self._held = held

    def begin(self, initialization_options: object, *, is_trusted: bool) -> None:
        """The first thing the client says."""
        self._complain(self._held.begin(initialization_options, is_trusted=is_trusted))

    async def fetch(self) -> None:
        """Ask a client that can be asked."""
        if not self._editor.can("workspace.configuration"):
            return
        item = types.ConfigurationItem(section=_SECTION)
        answer = await self._editor.ask(types.WORKSPACE_CONFIGURATION, types.ConfigurationParams(items=[item]))
        if isinstance(answer, list | tuple) and answer:
            self._complain(self._held.take(answer[0], is_whole=True))

    async def change(self, sent: Any) -> None:
        """The client says that something changed: what, or nothing at all."""
        if isinstance(sent, dict) and _SECTION in sent:
            self._complain(self._held.take(sent[_SECTION]))
        else:
            await self.fetch()

    def _complain(self, complaints: tuple[str, ...]) -> None:
        for complaint in complaints:
            self._editor.warn(complaint)
