"""State of the server for a client's status line: ``gpaLsp/status``."""

from collections.abc import Callable
from typing import Any

from gpa_lsp.editor.metrics import USUAL, LineMetric
from gpa_lsp.editor.progress import ProgressDisplay
from gpa_lsp.editor.snapshot import Snapshot

METHOD = "gpaLsp/status"

READING = "reading"
MEASURING = "measuring"
RECORDING = "recording"
ASKING = "asking"
IDLE = "idle"
FAILED = "failed"

_BUSY = (MEASURING, RECORDING, ASKING, READING)  # What is said first when several go on

_WAITING = {
    MEASURING: "a save waits for your answer: measure it?",
    RECORDING: "recording waits for your answer: run the program?",
}


class Status:
    """Tells a client when what the server does changes.

    Args:
        send: sends (method, params); None for a client that does not want to know.
    """

    def __init__(self, send: Callable[[str, Any], None] | None) -> None:
        self._send = send
        self._busy = dict.fromkeys(_BUSY, 0)
        self._texts = dict.fromkeys(_BUSY, "")
        self._failure = ""
        self._profile_count = 0
        self._kernel_count = 0
        self._rest: list[tuple[int, str]] = []
        self._metric = USUAL
        self._question = ""
        self._times = self._detail = ""
        self._said: dict[str, Any] | None = None

    def take(self, snapshot: Snapshot) -> None:
        """Take a new snapshot."""
        shown = {one.profile.path for one in snapshot.visible}  # earlier measurements of the same kernels are history
        self._profile_count, self._kernel_count = len(shown) or len(snapshot.profiles), len(snapshot.visible)
        known = {one.kernel.identity for one in snapshot.visible}
        rest = [one for path, one in snapshot.profiles.items() if path not in shown] if shown else []
        empty = sum(not one.kernels for one in rest)
        copies = sum(bool(one.kernels) and known.issuperset(kernel.identity for kernel in one.kernels) for one in rest)
        self._rest = [
            (len(rest) - empty - copies, "older"),
            (copies, "copy" if copies == 1 else "copies"),
            (empty, "without kernels"),
            (len(snapshot.unreadable), "unreadable"),
        ]
        self.say()

    def show_metric(self, metric: LineMetric) -> None:
        """Lines show something else from now on."""
        self._metric = metric
        self.say()

    def show_times(self, text: str) -> None:
        """Launches were timed: what came out."""
        self._times = text
        self.say()

    def explain(self, detail: str) -> None:
        """Set the details: what is not done here, and why."""
        self._detail = detail
        self.say()

    def ask(self, question: str, state: str = MEASURING) -> None:
        """The user is asked something, or not any more: an empty question."""
        self._question = question
        self._busy[ASKING], self._texts[ASKING] = int(bool(question)), _WAITING[state]
        self.say()

    def fail(self, reason: str) -> None:
        """The last measurement failed; empty when it did not."""
        self._failure = reason
        self.say()

    def watch(self, state: str, display: ProgressDisplay) -> ProgressDisplay:
        """A progress bar whose life is this state's."""
        self._busy[state] += 1
        self._texts[state] = ""
        self.say()
        return _WatchedDisplay(self, state, display)

    def tell(self, state: str, text: str) -> None:
        """Set the text of a state."""
        self._texts[state] = text
        self.say()

    def leave(self, state: str) -> None:
        """A state's work is done."""
        self._busy[state] -= 1
        self.say()

    def say(self) -> None:
        """Send the state, if it is another one than was sent before."""
        state = next((busy for busy in _BUSY if self._busy[busy]), FAILED if self._failure else IDLE)
        text = {**self._texts, FAILED: self._failure, IDLE: self._describe()}[state]
        now = {
            "state": state,
            "text": text,
            "profiles": self._profile_count,
            "kernels": self._kernel_count,
            "metric": {"name": self._metric.name, "title": self._metric.title},
            "question": self._question,
            "detail": self._detail,
        }
        if self._send is not None and now != self._said:
            self._said = now
            self._send(METHOD, now)

    def _describe(self) -> str:
        return " · ".join(part for part in (self._times, self._describe_profiles()) if part)

    def _describe_profiles(self) -> str:
        unseen = sum(number for number, _ in self._rest)
        rest = ", ".join(f"{number} {what}" for number, what in self._rest if number)
        if not self._profile_count:
            return f"no profile ({rest})" if rest else "no profile"
        kernels = "1 kernel" if self._kernel_count == 1 else f"{self._kernel_count} kernels"
        profiles = "1 profile" if self._profile_count == 1 else f"{self._profile_count} profiles"
        if not rest:
            return f"{kernels} from {profiles}"
        return f"{kernels} from {self._profile_count} of {self._profile_count + unseen} profiles ({rest})"


class _WatchedDisplay:
    """Shows progress in two places."""

    def __init__(self, status: Status, state: str, display: ProgressDisplay) -> None:
        self._status = status
        self._state = state
        self._display = display
        self._has_ended = False

    def report(self, text: str, ratio: float | None) -> None:
        """Show what is being done."""
        self._display.report(text, ratio)
        if not self._has_ended:
            self._status.tell(self._state, text)

    def end(self, text: str) -> None:
        """Take the bar away."""
        self._display.end(text)
        if not self._has_ended:
            self._has_ended = True
            self._status.leave(self._state)
