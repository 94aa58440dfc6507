"""Looks for profiles again and again, has them read, and hands out snapshots; makes measurements baselines (:func:`pin_kernels`), and looks up what
kernels were before (:func:`compare_again`).

The two functions block on the database: call them off the event loop.
"""

import asyncio
import contextlib
import gc
import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct, field
from msgspec.structs import replace

from gpa_lsp.editor.progress import ProgressDisplay
from gpa_lsp.editor.protocol.discovery import ProfileFinder
from gpa_lsp.editor.protocol.loading_round import LoadingRound, ProfileReaders
from gpa_lsp.editor.protocol.profile_reader import ProfileJob
from gpa_lsp.editor.settings import Settings
from gpa_lsp.editor.snapshot import LoadedProfile, MeasuredKernel, Snapshot, hold_kernel
from gpa_lsp.editor.threads import call_in_thread
from gpa_lsp.foundation.errors import GpaError
from gpa_lsp.foundation.files import Stamp, read_stamp
from gpa_lsp.foundation.numbers import format_count
from gpa_lsp.report.history.model import KernelHistory

if TYPE_CHECKING:
    # needs numpy, which the answer to initialize must not wait for
    from gpa_lsp.report.fixes.try_advice import TriedFix

# A file not written to for this long is taken to be complete, so that an error in it is an error
SETTLED_NS = 5_000_000_000


class ProfileWatch(Struct):
    """Decides from one look to the next what to read.

    A file that was touched a moment ago is read when it stands still between two looks. Should it then turn out to be incomplete, it is tried
    again as soon as it changes, and once more when it has not changed for :data:`SETTLED_NS`; only that last failure is told to the user.
    """

    _loaded: dict[Path, Stamp] = field(default_factory=dict)
    _failures: dict[Path, tuple[Stamp, bool]] = field(default_factory=dict)  # what failed, and whether that is final
    _complete: set[Path] = field(default_factory=set)
    _last: Mapping[Path, Stamp] = field(default_factory=dict)

    def observe(self, found: Mapping[Path, Stamp], now_ns: int) -> tuple[Path, ...]:
        """Compare a look with what is known."""
        load = [path for path, stamp in found.items() if self._is_due(path, stamp, now_ns)]
        load.sort(key=lambda path: (-found[path].modified_ns, path))
        self._loaded = {path: stamp for path, stamp in self._loaded.items() if path in found}
        self._failures = {path: failure for path, failure in self._failures.items() if path in found}
        self._last = dict(found)
        return tuple(load)

    def _is_due(self, path: Path, stamp: Stamp, now_ns: int) -> bool:
        if self._loaded.get(path) == stamp:
            return False
        failure = self._failures.get(path)
        if failure is not None and failure[0] == stamp:
            return not failure[1] and _is_settled(stamp, now_ns)
        return path in self._complete or _is_settled(stamp, now_ns) or self._last.get(path) == stamp

    def mark_loaded(self, path: Path, stamp: Stamp) -> None:
        """The profile was read while it had this stamp."""
        self._complete.discard(path)
        self._loaded[path] = stamp
        self._failures.pop(path, None)

    def mark_failed(self, path: Path, stamp: Stamp, now_ns: int) -> bool:
        """The profile could not be read; True when that is final and the user should hear of it, False when it is tried again."""
        is_final = _is_settled(stamp, now_ns)
        self._failures[path] = stamp, is_final
        if is_final:
            self._loaded.pop(path, None)
        return is_final

    def mark_complete(self, path: Path) -> None:
        """Take the profile for complete, however fresh it is."""
        self._complete.add(path)

    def forget_all(self) -> None:
        """Read everything again at the next look."""
        self._loaded.clear()
        self._failures.clear()


def _is_settled(stamp: Stamp, now_ns: int) -> bool:
    """Whether nothing was written for a while; a time stamp in the future counts as settled, or the file would never be read."""
    return not 0 <= now_ns - stamp.modified_ns < SETTLED_NS


logger = logging.getLogger(__name__)

# Of messages from which the kept profiles were made; objects take about three times that. 100 kernels of 500 instructions have 30 MiB.
MOST_KEPT_BYTES = 256 << 20

_MOST_PROFILES = 2000  # Of one session: newer ones replace the others

_MOST_COMPLAINTS = 20

_ENOUGH_LOOKS = 2  # At the first one a file may just have been written, and is left alone until the second

# The pause between two looks is at least so many times as long as a look, however large the workspace
_PAUSE_FACTOR = 20

# The pause after showing what was read, in times that showing took: of a hundred answers meanwhile, one may have to wait
_QUIET_FACTOR = 100

_PART_PAUSE_S = 0.5  # At least so long nothing is shown between two parts of a profile: each has the client ask again


class Audience(Protocol):
    """Receiver of the loader's news."""

    def take_snapshot(self, snapshot: Snapshot) -> None:
        """Take a new snapshot."""
        ...

    def start_progress(self, title: str, cancel: Callable[[], None]) -> ProgressDisplay:
        """Long work begins; ``cancel`` ends it."""
        ...

    def warn(self, text: str) -> None:
        """Show a warning."""
        ...


class ProfileLoader:
    """Keeps the snapshot in step with the profiles in the workspace.

    Looks go on while profiles are read: what they find is added to what is left to do. As many profiles are read at once as there are readers.

    Args:
        audience: who hears of it.
        readers: read the profiles; None for processes of its own.
    """

    def __init__(self, audience: Audience, readers: ProfileReaders | None = None) -> None:
        self._audience = audience
        self._readers = readers or ProfileReaders()
        self._watch = ProfileWatch()
        self._snapshot = Snapshot()
        self._settings = Settings()
        self._roots: tuple[Path, ...] = ()
        self._max_depth = 0
        self._may_ask_git = False
        self._included: set[Path] = set()
        self._look_count = 0
        self._finder = ProfileFinder((), ())
        self._found: Mapping[Path, Stamp] = {}
        self._wake = asyncio.Event()
        self._round: LoadingRound | None = None
        self._display: ProgressDisplay | None = None
        self._sources: tuple[str, ...] = ()
        self._must_look_back = False
        self._look_s = 0.0
        self._told_unsearched: tuple[str, ...] = ()
        self._has_told_limit = False
        self._has_told_count = False
        self._complaint_count = 0
        self._pending: dict[Path, LoadedProfile] = {}
        self._parts: dict[Path, LoadedProfile] = {}
        self._unreadable: set[Path] = set()
        self._quiet_until_s = 0.0

    @property
    def is_settled(self) -> bool:
        """The workspace was looked at, and all that was found is read or given up."""
        return self._look_count >= _ENOUGH_LOOKS and self._round is None

    def configure(
        self, roots: tuple[Path, ...], settings: Settings, *, max_depth: int = 32, may_ask_git: bool = False
    ) -> None:
        """Look in other places, or with other settings; what was read is read again if it would be read differently."""
        before = (self._roots, _choose_reading(self._settings), self._may_ask_git)
        read_differently = (roots, _choose_reading(settings), may_ask_git) != before
        self._roots, self._settings, self._max_depth = roots, settings, max_depth
        self._may_ask_git = may_ask_git
        if read_differently:
            self.reload()
        else:
            self._look_afresh()

    def reload(self) -> None:
        """Read every profile again."""
        self.cancel()
        self._watch.forget_all()
        self._complaint_count = 0
        self._look_afresh()

    def _look_afresh(self) -> None:
        self._finder = ProfileFinder(self._roots, self._settings.profile_globs, max_depth=self._max_depth)
        self._wake.set()

    def expect(self, profile: Path) -> None:
        """A profile is complete, whatever its time stamps say: read it now."""
        self._watch.mark_complete(profile)
        self._wake.set()

    def include(self, profile: Path) -> None:
        """Read a complete profile that lies elsewhere, and again whenever it is included again."""
        self._included.add(profile)
        self.expect(profile)

    def exclude(self, profile: Path | None) -> None:
        """Forget a profile that was included; None for all of them."""
        gone = {profile} if profile is not None else {*self._included}
        if gone & {*self._included}:
            self._included -= gone
            self._wake.set()

    def cancel(self) -> None:
        """Stop the reading that goes on, if any."""
        if self._round is not None:
            self._round.cancel()
            self._end_display()

    def put_first(self, sources: Sequence[str]) -> None:
        """Read what is about these sources before the rest."""
        self._sources = tuple(sources)
        if self._round is not None:
            self._round.put_first(self._sources)

    async def run(self) -> None:
        """Look, read, wait, for ever. Cancelling the task ends the processes that read."""
        try:
            while True:
                self._wake.clear()
                try:
                    await self._look()
                    if self._must_look_back and self._round is None:
                        await self.look_back()
                except Exception:  # the next look may go better; without it the server would fall silent
                    logger.exception("looking for profiles failed")
                pause_s = max(self._settings.poll_seconds, _PAUSE_FACTOR * self._look_s)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(pause_s):
                        await self._wake.wait()
        finally:
            self.cancel()
            await self._readers.leave()

    async def _look(self) -> None:
        finder = self._finder
        started_s = time.monotonic()
        included = frozenset(self._included)
        found = self._choose(await call_in_thread(lambda: {**finder.look(), **_read_stamps(included)}))
        self._look_s = time.monotonic() - started_s
        if finder is not self._finder:
            return  # other places by now
        if finder.unsearched != self._told_unsearched:
            self._told_unsearched = finder.unsearched
            for root in finder.unsearched:
                self._audience.warn(
                    f"{root} has too many folders to search all of them for profiles; set gpaLsp.profileGlobs"
                )
        self._found = found
        due = self._watch.observe(found, time.time_ns())
        gone = [path for path in self._snapshot.profiles if path not in found]
        if gone:
            self._publish(self._snapshot.without_profiles(gone))
        self._unreadable.intersection_update(found)
        if self._round is None:
            self._publish_unreadable()
        if due and self._round is None:
            self._round = LoadingRound(self, self._readers, self.make_job, self._sources)
            self._display = self._audience.start_progress("Reading profiles", self._give_up)
        if self._round is not None:
            self._round.update(due, found)
        self._look_count += _ENOUGH_LOOKS if due or not found else 1

    def make_job(self, path: Path) -> ProfileJob:
        """Make the job that reads a profile with the present settings."""
        return ProfileJob(
            profile=path,
            roots=self._roots,
            path_mappings=self._settings.path_mappings,
            keeps_history=self._settings.keeps_history,
            may_ask_git=self._may_ask_git,
        )

    def _end_display(self) -> None:
        if self._round is not None and self._display is not None:
            self._display.end(self._round.describe())
        self._round = self._display = None

    def _choose(self, found: Mapping[Path, Stamp]) -> Mapping[Path, Stamp]:
        """The newest profiles, where there are more than anybody compares."""
        if len(found) <= _MOST_PROFILES:
            return found
        if not self._has_told_count:
            self._has_told_count = True
            self._audience.warn(
                f"there are {format_count(len(found))} profiles in the workspace, of which the newest {format_count(_MOST_PROFILES)} are read; "
                "name fewer of them in gpaLsp.profileGlobs"
            )
        newest = sorted(found, key=lambda path: (-found[path].modified_ns, path))
        return {path: found[path] for path in newest[:_MOST_PROFILES]}

    def _has_older(self) -> bool:
        """Whether there are measurements that are older than what is shown: what is shown may have been compared before they were read."""
        shown = len(self._snapshot.visible)
        return sum(len(profile.kernels) for profile in self._snapshot.profiles.values()) > shown

    async def look_back(self) -> None:
        """Compare what is shown with its past again; what is still being read was compared before, and is so once more when all is read."""
        self._must_look_back = self._round is not None
        kernels = [shown.kernel for shown in self._snapshot.visible]
        try:
            histories = await call_in_thread(lambda: compare_again(kernels))
        except (GpaError, OSError, ImportError) as error:
            logger.warning("measurements cannot be compared with earlier ones: %s", error)
            return
        known = {id(kernel.origin): histories[id(kernel)] for kernel in kernels if id(kernel) in histories}

        def change(kernel: MeasuredKernel) -> MeasuredKernel:
            history = known.get(id(kernel.origin), kernel.history)
            return kernel if history == kernel.history else replace(kernel, history=history)

        if any(change(kernel) is not kernel for kernel in kernels):
            self._publish(self._snapshot.with_kernels(change))

    async def hold(self, tried: Sequence[tuple[MeasuredKernel, Sequence["TriedFix"]]]) -> None:
        """Let the advice of kernels promise only what came of its edits."""
        held = await call_in_thread(lambda: [hold_kernel(kernel, fixes) for kernel, fixes in tried])
        known = {id(new.origin): new for (old, _), new in zip(tried, held, strict=True) if new is not old}

        def change(kernel: MeasuredKernel) -> MeasuredKernel:
            new = known.get(id(kernel.origin))
            return kernel if new is None else replace(new, history=kernel.history)

        if known:
            self._publish(self._snapshot.with_kernels(change))

    def choose_measurement(self, mangled_name: str, profile: Path) -> None:
        """Show the measurement of a kernel in one profile until there is a newer one."""
        self._publish(self._snapshot.with_choice(mangled_name, profile))

    # What was read (the shelf of a round)

    def find(self, path: Path) -> LoadedProfile | None:
        """A profile that was read, as a whole."""
        if path in self._parts:
            return None
        return self._pending.get(path) or self._snapshot.profiles.get(path)

    def put(self, profile: LoadedProfile, stamp: Stamp) -> None:
        """A profile was read while it had this stamp."""
        _keep_from_garbage()
        self._parts.pop(profile.path, None)
        self._watch.mark_loaded(profile.path, stamp)
        self._unreadable.discard(profile.path)
        if profile.path in self._found:
            self._pending[profile.path] = profile
        if time.monotonic() >= self._quiet_until_s:
            self._publish_pending()

    def put_part(self, path: Path, make: Callable[[], LoadedProfile]) -> None:
        """Some kernels of a profile were read. Those of one that is shown from before stay until all are read."""
        _keep_from_garbage()
        if path not in self._found or time.monotonic() < self._quiet_until_s:
            return
        shown = self._snapshot.profiles.get(path)
        if shown is None or self._parts.get(path) is shown:
            self._pending[path] = self._parts[path] = make()
            self._publish_pending()
            self._quiet_until_s = max(self._quiet_until_s, time.monotonic() + _PART_PAUSE_S)

    def fail(self, path: Path, stamp: Stamp, reason: str) -> None:
        """A profile could not be read."""
        if not self._watch.mark_failed(path, stamp, time.time_ns()):
            logger.info("%s; it may still be written to and is tried again", reason)
            return
        if path not in self._found:
            return  # and that is why
        self._complain(reason)
        self._parts.pop(path, None)
        self._pending.pop(path, None)
        self._unreadable.add(path)
        if path in self._snapshot.profiles:
            self._publish_unreadable()

    def _publish_unreadable(self) -> None:
        if self._unreadable != self._snapshot.unreadable:
            self._publish(self._snapshot.with_unreadable(self._unreadable))

    def report(self, text: str, ratio: float) -> None:
        """Report the progress of a round, 0 to 1."""
        if self._display is not None:
            self._display.report(text, ratio)

    def end_round(self) -> None:
        """All that was due was read."""
        self._publish_pending()
        self._publish_unreadable()
        self._end_display()
        self._must_look_back = self._settings.keeps_history and (self._must_look_back or self._has_older())
        self._wake.set()

    def _publish_pending(self) -> None:
        """Show what was read. Among a thousand profiles that takes half a second, in which nobody is answered: then it is done less often."""
        if not self._pending:
            return
        pending, self._pending = self._pending, {}
        started_s = time.monotonic()
        self._keep(self._snapshot.with_profiles(pending.values()), self._found)
        now_s = time.monotonic()
        self._quiet_until_s = now_s + _QUIET_FACTOR * (now_s - started_s)
        _keep_from_garbage()

    def _keep(self, snapshot: Snapshot, found: Mapping[Path, Stamp]) -> None:
        """Publish a snapshot without the oldest profiles that are too many for the memory; they are not read again until they change."""
        newest = sorted(snapshot.profiles, key=lambda path: (-found[path].modified_ns if path in found else 0, path))
        sizes: dict[int, int] = {}  # profiles that are copies of one another share what they hold
        dropped: list[Path] = []
        for path in newest:
            profile = snapshot.profiles[path]
            sizes.setdefault(id(profile.files), profile.size_bytes)
            if dropped or sum(sizes.values()) > MOST_KEPT_BYTES:
                dropped.append(path)
        if dropped and not self._has_told_limit:
            self._has_told_limit = True
            self._audience.warn(
                f"the profiles in the workspace need more than {MOST_KEPT_BYTES >> 20} MiB; the oldest are left out, {dropped[-1].name} first. "
                "Name fewer of them in gpaLsp.profileGlobs"
            )
        self._publish(snapshot.without_profiles(dropped) if dropped else snapshot)

    def _complain(self, reason: str) -> None:
        """Tell the user, but not a thousand times."""
        self._complaint_count += 1
        if self._complaint_count <= _MOST_COMPLAINTS:
            self._audience.warn(reason)
            return
        logger.warning("%s", reason)
        if self._complaint_count == _MOST_COMPLAINTS + 1:
            self._audience.warn("more profiles cannot be read; the log of the language server names them")

    def _give_up(self) -> None:
        """The user's cancel: what was not read is not read until it changes, or all is reloaded."""
        if self._round is not None:
            for path, stamp in self._round.cancel().items():
                self._watch.mark_loaded(path, stamp)
        self.cancel()

    def _publish(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._audience.take_snapshot(snapshot)


def _read_stamps(profiles: Iterable[Path]) -> dict[Path, Stamp]:
    stamps = {profile: read_stamp(profile) for profile in profiles}
    return {profile: stamp for profile, stamp in stamps.items() if stamp is not None}


def _choose_reading(settings: Settings) -> tuple[object, ...]:
    """The options that decide how a profile is read."""
    return (settings.path_mappings, settings.keeps_history)


def _keep_from_garbage() -> None:
    """Exempt what was read from garbage collection: looking at all of it takes a tenth of a second in the middle of an answer.

    That goes for what waits to be shown, too, and this takes no time.
    """
    gc.freeze()


def pin_kernels(kernels: Sequence[MeasuredKernel], *, is_pinned: bool) -> int:
    """Make measurements the baselines of their kernels, or take the baselines away.

    Raises:
        InputError: the history cannot be written.
    """
    from gpa_lsp.report.history.store import (
        History,  # a Python without SQLite must do without a past, not without the rest
    )

    count = 0
    with History() as history:
        for kernel in kernels:
            run = None if kernel.history is None else history.find_run(kernel.history.run.run_id)
            if run is None:
                continue
            if is_pinned:
                history.pin(run.run_id)
                count += 1
            elif (baseline := history.find_baseline_of(run)) is not None:
                count += history.unpin(baseline.measurement.key)
    return count


def compare_again(kernels: Sequence[MeasuredKernel]) -> Mapping[int, KernelHistory]:
    """The past of kernels as it is known now.

    Returns:
        ``id`` of the kernel → what changed; kernels that are not remembered are left out.

    Raises:
        InputError: the history cannot be read.
    """
    from gpa_lsp.report.history.past import compare_with_past
    from gpa_lsp.report.history.store import History

    found: dict[int, KernelHistory] = {}
    with History() as history:
        for kernel in kernels:
            run = None if kernel.history is None else history.find_run(kernel.history.run.run_id)
            if run is not None:
                found[id(kernel)] = compare_with_past(history, run)
    return found
