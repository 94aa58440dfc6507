"""When a profile that was found is worth reading: new, changed, gone, or still being written."""

from collections.abc import Mapping
from dataclasses import field
from pathlib import Path

from gpa_lsp.basis.file_stamps import Stamp
from gpa_lsp.basis.lazy_dataclass import dataclass

SETTLED_NS = 5_000_000_000
"""A file not written to for this long is taken to be complete, so that an error in it is an error."""


@dataclass(frozen=True, slots=True)
class _Failure:
    stamp: Stamp
    is_final: bool


@dataclass(slots=True)
class ProfileWatch:
    """Decides from one look to the next what to read.

    A file that was touched a moment ago is read when it stands still between two looks. Should it then turn out to be incomplete, it is tried
    again as soon as it changes, and once more when it has not changed for :data:`SETTLED_NS`; only that last failure is told to the user.
    """

    _loaded: dict[Path, Stamp] = field(default_factory=dict)
    _failures: dict[Path, _Failure] = field(default_factory=dict)
    _complete: set[Path] = field(default_factory=set)
    _last: Mapping[Path, Stamp] = field(default_factory=dict)

    def observe(self, found: Mapping[Path, Stamp], now_ns: int) -> tuple[Path, ...]:
        """Compare a look with what is known.

        Args:
            found: the profiles there are.
            now_ns: time since 1970.

        Returns:
            The profiles to read now, newest first.
        """
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
        if failure is not None and failure.stamp == stamp:
            return not failure.is_final and _is_settled(stamp, now_ns)
        return path in self._complete or _is_settled(stamp, now_ns) or self._last.get(path) == stamp

    def mark_loaded(self, path: Path, stamp: Stamp) -> None:
        """The profile was read while it had this stamp."""
        self._complete.discard(path)
        self._loaded[path] = stamp
        self._failures.pop(path, None)

    def mark_failed(self, path: Path, stamp: Stamp, now_ns: int) -> bool:
        """The profile could not be read; True when that is final and the user should hear of it, False when it is tried again."""
        is_final = _is_settled(stamp, now_ns)
        self._failures[path] = _Failure(stamp, is_final)
        if is_final:
            self._loaded.pop(path, None)
        return is_final

    def mark_complete(self, path: Path) -> None:
        """Nobody writes to the profile any more, however fresh it is."""
        self._complete.add(path)

    def forget_all(self) -> None:
        """Read everything again at the next look."""
        self._loaded.clear()
        self._failures.clear()


def _is_settled(stamp: Stamp, now_ns: int) -> bool:
    """Nothing was written for a while; a time stamp in the future counts as settled, or the file would never be read."""
    return not 0 <= now_ns - stamp.modified_ns < SETTLED_NS
