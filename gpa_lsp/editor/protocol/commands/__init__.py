"""One file per command the editor can ask the server to execute; each defines ``COMMAND``. ``editors/PROTOCOL.md`` lists them.

A command must do something in every client: one that cannot open documents gets a message instead. What only a person asks for is
imported when they ask: the answer to initialize must not wait for it.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

from msgspec import Struct

from gpa_lsp.editor.documents import Documents
from gpa_lsp.editor.jobs.predicted import Predictions
from gpa_lsp.editor.jobs.simulated import Simulations
from gpa_lsp.editor.metrics import LineMetric
from gpa_lsp.editor.model import Location
from gpa_lsp.editor.protocol.pages import Pages
from gpa_lsp.editor.session_view import SessionView
from gpa_lsp.editor.snapshot import MeasuredKernel


class SessionActions(SessionView, Protocol):
    """What a command may do beside reading the session."""

    @property
    def pages(self) -> Pages:
        """The report as a page."""
        ...

    @property
    def documents(self) -> Documents:
        """What is open."""
        ...

    @property
    def predictions(self) -> Predictions:
        """What was emulated of open sources."""
        ...

    @property
    def simulations(self) -> Simulations:
        """What was simulated of open sources."""
        ...

    async def append_beside(self, uri: str, path: Path, text: str | None, addition: str, label: str) -> None:
        """Let the client append to a file beside a document, or make it, and show it.

        Args:
            text: what the file holds; None where there is none.
        """
        ...

    async def wait_for_profiles(self, uri: str) -> None:
        """Until something is known of a document or everything was read, but not for long."""
        ...

    async def write_page_of(self, profile: Path) -> tuple[Path, tuple[str, ...]]:
        """The page of one profile, and the mangled names of its kernels.

        Raises:
            GpaError: it cannot be read.
        """
        ...

    def reload(self) -> None:
        """Read every profile again."""
        ...

    def choose_columns(self, names: Sequence[str] | None) -> None:
        """Show some columns in SASS documents from now on, in this workspace; None for the usual ones."""
        ...

    def choose_metric(self, metric: LineMetric) -> None:
        """Show a metric on lines from now on, in this workspace."""
        ...

    def show_document(self, title: str, markdown: str) -> None:
        """Open a text in the editor, or say where it lies when the editor cannot be asked to."""
        ...

    def show_location(self, location: Location) -> None:
        """Put the cursor there, or say where that is when the editor cannot be asked to."""
        ...

    def show_message(self, text: str) -> None:
        """Say a sentence."""
        ...

    def warn(self, text: str) -> None:
        """Say what the user must know."""
        ...

    async def ask_for_text(self, text: str, value: str) -> str | None:
        """A line that the user types, where the client can ask for one, with what stands in it at first, else that; None for no answer."""
        ...

    def measure(self, uri: str | None) -> bool:
        """Run the user's command for a document, or for none; whether there is one that may be run."""
        ...

    async def record_launches(self, uri: str | None, command: tuple[str, ...] | None) -> bool:
        """Run a program and record its launches, for a document, or for none; None for that of the settings. Whether there is one that may be run."""
        ...

    def answer_measuring(self, answer: str | None) -> str:
        """Whether the command that measures may run: ``once``, ``always`` or ``never``; None to be asked again. What came of it."""
        ...

    def cancel_measuring(self) -> bool:
        """End the run that goes on; whether there was one."""
        ...

    def set_trust(self, is_trusted: bool) -> None:
        """The user trusts the workspace, or does not any more."""
        ...

    async def choose_sources(self, wanted: str | None) -> str | None:
        """What is to be shown of sources that may have changed: ``show``, ``hide`` or ``map``, asked where it is not said; None for no answer."""
        ...

    def show_all_hints(self, is_wanted: bool | None) -> bool:
        """Every hint instead of as many as a screen bears, or the other way round; None for whichever it is not. What it is now."""
        ...

    async def pin(self, kernels: Sequence[MeasuredKernel], *, is_pinned: bool) -> int:
        """Make measurements the baselines of their kernels, or take the baselines away; for how many that could be done."""
        ...

    def choose_measurement(self, mangled_name: str, profile: Path) -> None:
        """Show the measurement of a kernel in one profile until there is a newer one."""
        ...

    async def ask_for_measurement(self, titles: Sequence[str]) -> str | None:
        """Which of some measurements of a kernel a person chooses; None for none."""
        ...


class Command(Struct, frozen=True, kw_only=True):
    """One command."""

    name: str  # starts with ``gpaLsp.``; the same for all clients
    # (session, the request's arguments) → the result, plain JSON, or a coroutine of it. Arguments come from the client unchecked.
    run: Callable[[SessionActions, Sequence[Any]], Any]
