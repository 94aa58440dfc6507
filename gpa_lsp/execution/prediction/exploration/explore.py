"""A space of configurations, evaluated and ranked: the parts already in the journal are not done again."""

from collections.abc import Callable, Sequence

from msgspec import Struct

from gpa_lsp.execution.prediction.exploration.journal import Journal
from gpa_lsp.execution.prediction.exploration.model import Configuration, RankedConfiguration, rank
from gpa_lsp.execution.prediction.exploration.workers import Evaluate, Workers
from gpa_lsp.foundation.native.shared_library import prepare_core
from gpa_lsp.foundation.prose import Sentence

Progress = Callable[[int, int], None]  # Told (done, total)


class Exploration(Struct, frozen=True, kw_only=True):
    """A space with what is predicted of it."""

    kernel: str  # for people
    device: str  # name of the machine
    mode: str  # of the model
    ranked: tuple[RankedConfiguration, ...]  # fastest first; those nothing is predicted of last
    current: Configuration | None = None  # that of the launch; None when the space does not hold it
    resumed: int = 0  # how many were in the journal already
    notes: tuple[Sentence, ...] = ()  # what a reader must know, one sentence each
    is_simulated: bool = False  # launches were simulated, not predicted from their volumes

    @property
    def how(self) -> str:
        """What became of its configurations, in a word."""
        return "simulated" if self.is_simulated else "predicted"

    def find(self, configuration: Configuration) -> RankedConfiguration | None:
        """What is predicted of one configuration; None when it is not in the space."""
        return next((one for one in self.ranked if one.configuration == configuration), None)


def evaluate_space(
    configurations: Sequence[Configuration],
    evaluate: Evaluate,
    workers: Workers,
    *,
    journal: Journal | None = None,
    progress: Progress | None = None,
) -> tuple[tuple[RankedConfiguration, ...], int]:
    """Evaluate what is not in the journal yet, and rank all of it.

    Args:
        configurations: the space.
        evaluate: what evaluates.
        workers: where.
        journal: takes each part as it is known, so that an interruption loses only what is under way; None keeps nothing.
        progress: told how far it is.

    Returns:
        The space, ranked, and how many of it were in the journal.

    Raises:
        GpaError: see ``workers`` and ``journal``; what was evaluated until then is in the journal.
    """
    wanted = set(configurations)
    known = [one for one in (journal.done if journal is not None else ()) if one.configuration in wanted]
    done = {one.configuration for one in known}
    left = [one for one in configurations if one not in done]
    found = list(known)
    if left:
        prepare_core()  # before processes begin, which do not look for it again
    if progress is not None:
        progress(len(found), len(configurations))
    for part in workers.run(evaluate, left):
        found.extend(part)
        if journal is not None:
            journal.add(part)
        if progress is not None:
            progress(len(found), len(configurations))
    return rank(found), len(known)
