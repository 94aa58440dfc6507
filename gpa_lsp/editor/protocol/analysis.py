"""The server's end of the processes that read profiles: as many as are worth it, each with one profile at a time."""

from collections.abc import Callable

from gpa_lsp.editor.protocol.profile_messages import ProfileEnd, ProfileFailed, ProfileJob, ProfileMessage, ProfileRead
from gpa_lsp.foundation.processes.async_worker import AsyncWorker
from gpa_lsp.foundation.processes.supervision import Patience, WorkerKind
from gpa_lsp.foundation.processes.worker import read_own_bytes
from gpa_lsp.foundation.work_time import count_cores

_MOST_PROCESSES = 4  # More would take memory and cores from what the person at the keyboard does beside

_SILENCE_LIMIT_S = 600.0  # A profile of which nothing is heard for so long hangs, although its process is alive

# Long enough to stay from one measurement of a series to the next; then the memory goes back to the system
_IDLE_S = 30.0

# Of a process' own memory after a profile, beside what it shares with others. One that had to read a huge profile does not give all of it back.
_MOST_IDLE_BYTES = 160 << 20

# For this server and the processes together. The more profiles it holds, the fewer processes read others beside it; two at least.
_MOST_BYTES = 400 << 20

_COMMON_BYTES = 88 << 20  # What a process takes with the disassemblers it starts


class ProfileReaders:
    """Processes that are started when there is something to read and that nobody else is free for, and that go away when there is nothing more.

    Args:
        most: at work at one time; None for as many as this process may use cores, four at most. Where memory is short it is fewer.
        patience: when a process is given up.
    """

    def __init__(self, most: int | None = None, *, patience: Patience | None = None) -> None:
        self._most = most or max(1, min(_MOST_PROCESSES, count_cores()))
        self._kind = WorkerKind(
            module="gpa_lsp.editor.protocol.profile_reader",
            title="analysis process",
            idle_s=_IDLE_S,
            most_own_bytes=_MOST_IDLE_BYTES,
            patience=patience or Patience(),
        )
        self._free: list[AsyncWorker] = []
        self._all: list[AsyncWorker] = []

    @property
    def most(self) -> int:
        """How many may be at work now."""
        room = (_MOST_BYTES - read_own_bytes()) // _COMMON_BYTES
        return min(self._most, max(2, room))

    async def read(self, job: ProfileJob, take: Callable[[ProfileMessage], None]) -> ProfileEnd:
        """Read a profile. Cancelling the task that waits for it kills the process that reads it, and no other one.

        Raises:
            ToolError: the process died, or hangs.
        """
        if not self._free:
            self._free = [AsyncWorker(self._kind)]
            self._all += self._free
        process = self._free.pop()  # the one that was used last: it is warm, and the others get their time to go away
        try:
            end = await process.do(job, limit_s=_SILENCE_LIMIT_S, tell=take, is_per_message=True)
        finally:
            self._free.append(process)
        if sum(one.process_id is not None for one in self._all) > self.most:
            await process.leave()
        assert isinstance(end, ProfileRead | ProfileFailed)
        return end

    async def leave(self) -> None:
        """End all processes."""
        for process in self._all:
            await process.leave()
