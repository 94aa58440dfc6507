"""Profiles that are to be read: in which order, what each of them waits for, and how far all of them are."""

from collections.abc import Iterable, Mapping
from dataclasses import field
from pathlib import Path

from gpa_lsp.basis.file_stamps import Stamp
from gpa_lsp.basis.lazy_dataclass import dataclass

_UNRANKED = 1 << 30


@dataclass(slots=True)
class LoadingQueue:
    """The files from one moment without work to the next.

    A file waits, is read, or stands aside until the file it is a copy of was read.

    Attributes:
        done: files that are through.
    """

    done: int = 0
    _stamps: dict[Path, Stamp] = field(default_factory=dict)
    _waiting: dict[Path, None] = field(default_factory=dict)
    _ratios: dict[Path, float] = field(default_factory=dict)
    _copies: dict[Path, list[Path]] = field(default_factory=dict)
    _ranks: dict[Path, int] = field(default_factory=dict)

    def update(self, due: Iterable[Path], found: Mapping[Path, Stamp]) -> tuple[Path, ...]:
        """Take in what a look at the workspace found.

        Args:
            due: files to read. Others that wait do so no more; those that are being read are read to the end.
            found: what files look like.

        Returns:
            Files that were not there before.
        """
        wanted = set(due)
        for path in [path for path in self._stamps if path not in wanted and path not in self._ratios]:
            self._forget(path)
        new = tuple(path for path in due if path not in self._stamps)
        for path in wanted - self._ratios.keys():
            self._stamps[path] = found[path]
        self._waiting.update(dict.fromkeys(new))
        return new

    def rank(self, ranks: Mapping[Path, int]) -> None:
        """Files that come before the others, the smallest number first."""
        self._ranks = dict(ranks)

    def pick(self) -> Path | None:
        """The file that is next; it waits no more. None when none waits."""
        path = min(self._waiting, key=self._order, default=None)
        if path is not None:
            del self._waiting[path]
        return path

    def _order(self, path: Path) -> tuple[int, int, Path]:
        return self._ranks.get(path, _UNRANKED), -self._stamps[path].modified_ns, path

    def begin(self, path: Path) -> None:
        """A picked file is being read."""
        self._ratios[path] = 0.0

    def set_aside(self, path: Path, original: Path) -> None:
        """A picked file is a copy of one that is being read."""
        self._copies.setdefault(original, []).append(path)

    def put_back(self, path: Path) -> None:
        """A file waits again."""
        self._waiting[path] = None

    def advance(self, path: Path, ratio: float) -> None:
        """So much of a file was read."""
        self._ratios[path] = ratio

    def finish(self, path: Path) -> tuple[Path, ...]:
        """A file is through; the copies that waited for it, which neither wait nor are read now."""
        self.done += 1
        copies = self._copies.pop(path, [])
        self._forget(path)
        return tuple(copies)

    def _forget(self, path: Path) -> None:
        self._stamps.pop(path, None)
        self._waiting.pop(path, None)
        self._ratios.pop(path, None)
        self._ranks.pop(path, None)
        for copies in self._copies.values():
            if path in copies:
                copies.remove(path)

    def stamp(self, path: Path) -> Stamp:
        """What a file that is not through looked like when it was found."""
        return self._stamps[path]

    @property
    def waiting(self) -> tuple[Path, ...]:
        """Files nobody reads yet, in order."""
        return tuple(sorted(self._waiting, key=self._order))

    @property
    def left(self) -> Mapping[Path, Stamp]:
        """All files that are not through."""
        return self._stamps

    @property
    def total(self) -> int:
        """All files, those that are through included."""
        return self.done + len(self._stamps)

    @property
    def ratio(self) -> float:
        """How much of all is done, 0 to 1."""
        return (self.done + sum(self._ratios.values())) / self.total if self.total else 1.0
