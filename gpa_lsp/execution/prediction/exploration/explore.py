"""A space of configurations, evaluated (here, on all cores or on a cluster) and ranked; those in the journal are not evaluated again."""

import logging
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Protocol

from msgspec import Struct

from gpa_lsp.execution.emulator.compiled.core_functions import find_core
from gpa_lsp.execution.prediction.exploration.journal import Journal
from gpa_lsp.execution.prediction.exploration.model import Configuration, RankedConfiguration, rank
from gpa_lsp.foundation.errors import GpaError, InputError, MissingToolError, Problem, ToolError
from gpa_lsp.foundation.processes.supervision import run_parts
from gpa_lsp.foundation.prose import Sentence
from gpa_lsp.foundation.work_time import count_cores, work_time

logger = logging.getLogger(__name__)

Progress = Callable[[int, int], None]  # Told (done, total)


class Exploration(Struct, frozen=True, kw_only=True):
    """A space of configurations with their predictions."""

    kernel: str  # for people
    device: str  # name of the machine
    mode: str  # of the model
    ranked: tuple[RankedConfiguration, ...]  # fastest first; those without a prediction last
    current: Configuration | None = None  # that of the launch; None when the space does not hold it
    resumed: int = 0  # how many were in the journal already
    notes: tuple[Sentence, ...] = ()  # for the reader, one sentence each
    is_simulated: bool = False  # launches were simulated, not predicted from their volumes

    @property
    def how(self) -> str:
        """``simulated`` or ``predicted``."""
        return "simulated" if self.is_simulated else "predicted"

    def find(self, configuration: Configuration) -> RankedConfiguration | None:
        """Prediction of one configuration; None when it is not in the space."""
        return next((one for one in self.ranked if one.configuration == configuration), None)


Evaluate = Callable[[Configuration], RankedConfiguration]  # It and what it holds can be pickled


def evaluate_each(evaluate: Evaluate, configurations: Sequence[Configuration]) -> list[RankedConfiguration]:
    """Evaluate configurations; a failure, or a bug of ours, becomes the reason why one is not predicted."""
    found: list[RankedConfiguration] = []
    for one in configurations:
        try:
            found.append(evaluate(one))
        except GpaError as error:
            found.append(RankedConfiguration(configuration=one, why_not=str(error)))
        except Exception as error:
            logger.exception("evaluating %s failed", one)
            fault = Problem.from_fault("the evaluation", error)
            found.append(RankedConfiguration(configuration=one, why_not=str(fault)))
    return found


class Workers(Protocol):
    """Evaluates configurations."""

    def run(self, evaluate: Evaluate, configurations: Sequence[Configuration]) -> Iterator[list[RankedConfiguration]]:
        """Parts of the result as they are known, in any order."""
        ...


def evaluate_space(
    configurations: Sequence[Configuration],
    evaluate: Evaluate,
    workers: Workers,
    *,
    journal: Journal | None = None,
    progress: Progress | None = None,
) -> tuple[tuple[RankedConfiguration, ...], int]:
    """Evaluate configurations that are not in the journal yet, and rank all.

    Args:
        configurations: the space.
        evaluate: evaluates one configuration.
        workers: processes that evaluate.
        journal: takes each part as it is known, so that an interruption loses only what is under way; None keeps nothing.
        progress: called with each part.

    Returns:
        The space, ranked, and how many of it were in the journal.

    Raises:
        GpaError: see ``workers`` and ``journal``; the parts evaluated until then are in the journal.
    """
    wanted = set(configurations)
    known = [one for one in (journal.done if journal is not None else ()) if one.configuration in wanted]
    done = {one.configuration for one in known}
    left = [one for one in configurations if one not in done]
    found = list(known)
    if left:
        find_core()  # compiled before processes begin, all of which would
    if progress is not None:
        progress(len(found), len(configurations))
    for part in workers.run(evaluate, left):
        found.extend(part)
        if journal is not None:
            journal.add(part)
        if progress is not None:
            progress(len(found), len(configurations))
    return rank(found), len(known)


_CHUNKS_PER_WORKER = 8
_LARGEST_CHUNK = 64
_CONNECT_TIMEOUT_S = 10
_HERE_S = 1.5  # Most spaces are done before another process would have started


class LocalWorkers:
    """Workers in processes of this machine.

    Args:
        count: how many; None for as many as this process may use cores.
        here_s: seconds for which configurations are evaluated in this process before others are started; 0 for none.
    """

    def __init__(self, count: int | None = None, *, here_s: float = _HERE_S) -> None:
        self._count = count or count_cores()
        self._here_s = here_s

    def run(self, evaluate: Evaluate, configurations: Sequence[Configuration]) -> Iterator[list[RankedConfiguration]]:
        """See :class:`Workers`.

        Raises:
            ToolError: a process died.
        """
        end_s = work_time() + self._here_s
        done = 0
        while done < len(configurations) and (self._count == 1 or work_time() < end_s):
            yield evaluate_each(evaluate, [configurations[done]])
            done += 1
        left = configurations[done:]
        if not left:
            return
        chunks = split(left, self._count)
        yield from run_parts(partial(evaluate_each, evaluate), chunks, count=self._count, title="exploration process")


class DaskWorkers:
    """Workers on a Dask cluster.

    Args:
        address: of its scheduler, e.g. ``tcp://127.0.0.1:8786``. Its workers need this package, in the same version.

    Raises:
        MissingToolError: distributed is not installed here.
    """

    def __init__(self, address: str) -> None:
        self._address = address
        self._distributed = _load_distributed()

    def run(self, evaluate: Evaluate, configurations: Sequence[Configuration]) -> Iterator[list[RankedConfiguration]]:
        """See :class:`Workers`.

        Raises:
            InputError: no scheduler answers there, or it has no workers.
            ToolError: the cluster gave up on a part.
        """
        with self._connect() as client:
            cores = sum(client.ncores().values())
            if not cores:
                message = "the scheduler has no workers"
                raise InputError(message, place=self._address, remedy="start some with dask worker")
            shared = client.scatter(evaluate, broadcast=True)
            chunks = split(configurations, cores)
            futures = client.map(evaluate_each, [shared] * len(chunks), chunks, pure=False)
            try:
                for future in self._distributed.as_completed(futures, loop=client.loop):
                    yield self._take(future)
            finally:
                client.cancel(futures)

    def _connect(self) -> Any:
        try:
            return self._distributed.Client(self._address, timeout=_CONNECT_TIMEOUT_S, set_as_default=False)
        except (OSError, ValueError) as error:
            message = f"no Dask scheduler answers: {error}"
            remedy = "give the address that dask scheduler prints, such as tcp://127.0.0.1:8786"
            raise InputError(message, place=self._address, remedy=remedy) from error

    def _take(self, future: Any) -> list[RankedConfiguration]:
        try:
            found: list[RankedConfiguration] = future.result()
        except Exception as error:  # any failure over there, a version that differs above all
            hint = f"{type(error).__name__}: {error}; do its workers have the same version of gpa-lsp?"
            raise ToolError("Dask cluster", hint) from error
        return found


def _load_distributed() -> Any:
    try:
        import distributed  # an optional dependency, and slow to import
    except ImportError as error:
        install = "install gpa-lsp[dask]"
        raise MissingToolError("distributed", needed_for="exploring on a Dask cluster", install=install) from error
    return distributed


def split(configurations: Sequence[Configuration], workers: int) -> list[tuple[Configuration, ...]]:
    """Chunks of about equal size: several per worker, because they take different times.

    >>> from gpa_lsp.execution.prediction.exploration.model import Configuration
    >>> [len(chunk) for chunk in split([Configuration(block=(1, 1, 1))] * 20, 1)]
    [3, 3, 3, 3, 3, 3, 2]
    """
    size = min(_LARGEST_CHUNK, -(-len(configurations) // (_CHUNKS_PER_WORKER * workers)))
    return [tuple(configurations[start : start + size]) for start in range(0, len(configurations), max(1, size))]
