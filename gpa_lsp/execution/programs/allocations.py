"""Allocations of a program: which kernels access them, what is copied, and what was unnecessary: :class:`AllocationLedger`.

Source: CUDAAdvisor, Figure 9 (an access belongs to an allocation, and that to its call path, its copies and its counterpart on the host); DrGPUM,
section 3 (unused, partly used, early and late allocations, leaks, dead copies), whose findings are told here only where nothing speaks against them.
"""

from collections.abc import Callable, Iterable, Mapping

import numpy as np
import numpy.typing as npt
from msgspec import Struct, field

from gpa_lsp.execution.emulator.engine.arena import ARENA_BASE, CHUNK_BYTES, WORD_BYTES, Mark, Marks
from gpa_lsp.execution.programs.messages import AllocationKind, EventKind, MemoryEvent
from gpa_lsp.execution.programs.model import (
    AllocationFinding,
    AllocationSite,
    ArrayUse,
    CopyRuns,
    FindingKind,
    HostPath,
    MemoryUse,
)

# Bits above those of launches: state of a word since the host, or a copy, wrote it last
_HOST = 4  # it came from the host
_COPIED = 8  # and a copy read it
_EVER_READ, _EVER_WRITTEN = 16, 32  # by launches, before
_EVER_SHIFT = 4  # from the bits of launches to those
_IS_DEVICE = frozenset({AllocationKind.ON_DEVICE, AllocationKind.POOLED, AllocationKind.PITCHED})
_LEAST_UNTOUCHED_BYTES = 4096
_MOST_TOUCHED_RATIO = 0.8  # of an allocation that is called partly used; source: DrGPUM, section 5.3
# Early and late frees are reported only if shorter lifetimes would lower the peak this much
_LEAN_RATIO = 0.9
_LEAST_SAVED_BYTES = 1 << 20
_MOST_PENDING = 4096  # copies to one allocation that are not judged yet
_MOST_HELD = 1 << 16  # allocations at once; programs with more are not judged
_MOST_LIVES = 1 << 18


class _Copies(Struct):
    """Copies of one place in one direction."""

    copies: int = 0
    size_bytes: int = 0
    useless: int = 0  # brought what nothing read, or took what the host had sent
    hosts: set[int] = field(default_factory=set)  # paths that allocated the host's side, as far as they are known

    def add(self, other: "_Copies") -> None:
        self.hosts |= other.hosts
        self.copies += other.copies
        self.size_bytes += other.size_bytes
        self.useless += other.useless


class _Use(Struct):
    """Accesses of one kernel to the allocations of one site."""

    name: str
    launches: int = 0
    marks: int = 0


class _Moment(Struct, frozen=True):
    """Time of an event of an allocation."""

    step: int = -1
    launches: int = 0  # before, or with it
    path: int = 0  # of the host
    kernel: str = ""  # linkage name; empty for copies


class _Life(Struct, frozen=True):
    """Lifetime of an allocation, and the first and last use within it."""

    size_bytes: int
    site: int
    born: _Moment
    first: _Moment
    last: _Moment
    freed: _Moment
    is_freed: bool
    is_opaque: bool


class _Allocation(Struct):
    base: int
    size_bytes: int
    kind: int
    born: _Moment
    first: _Moment = _Moment()
    last: _Moment = _Moment()
    is_opaque: bool = False  # others access it that leave no marks
    is_passed_on: bool = False  # copied from or to other device memory
    uses: dict[str, _Use] = field(default_factory=dict)  # by linkage name
    copies: dict[tuple[int, bool], _Copies] = field(default_factory=dict)  # by path, and whether to it
    pending: list[tuple[int, int, int]] = field(
        default_factory=list
    )  # first byte, end and path of unjudged copies to it


class _Site(Struct):
    """Totals of all allocations made at one place of the host code."""

    allocations: int = 0
    size_bytes: int = 0
    read_bytes: int = 0
    written_bytes: int = 0
    judged: int = 0  # allocations that something can be said of
    untouched: int = 0  # that no launch accessed
    part: int = 0  # that launches accessed a part of
    part_bytes: int = 0  # of those
    accessed_bytes: int = 0  # in those
    left: int = 0  # that the program did not free
    left_bytes: int = 0  # of those
    uses: dict[str, _Use] = field(default_factory=dict)
    copies: dict[tuple[int, bool], _Copies] = field(default_factory=dict)


class AllocationLedger:
    """Follows the allocations of a process.

    Args:
        marks: of its device memory; the bits above those of launches, and the chunks, are the ledger's.
        host_base: address from which on the host has access.
        is_followed: False if allocations are not to be followed; then it knows launch paths only.
    """

    def __init__(self, marks: Marks, host_base: int, *, is_followed: bool = True) -> None:
        self._marks = marks
        self._host_base = host_base
        self._end = ARENA_BASE + len(marks.words) * WORD_BYTES
        self._held: dict[int, _Allocation] = {}
        self._columns: tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]] | None = None
        self._sites: dict[int, _Site] = {}
        self._lives: list[_Life] = []
        self._step = 0
        self._launches = 0
        self._path = 0
        self._is_whole = is_followed  # False once there was more than is followed, or what the program said cannot be

    def take(self, events: Iterable[MemoryEvent]) -> None:
        """Apply the events since the last launch."""
        for event in events:
            if event.kind is EventKind.LAUNCH:
                self._path = event.path
            if not self._is_whole:
                continue
            match event.kind:
                case EventKind.ALLOCATE:
                    self._allocate(event)
                case EventKind.RELEASE:
                    self._release(self._held.get(event.target), self._now(event.path))
                case EventKind.COPY:
                    self._copy(event)
                case EventKind.FILL:
                    self._fill(event)
                case EventKind.LOCATE:
                    self._locate(event)

    @property
    def launch_path(self) -> int:
        """Number of the host's call path of the last launch; 0 if unknown."""
        return self._path

    def hide(self, address: int) -> None:
        """Exempt an allocation from findings: textures and the like access it without leaving marks."""
        found = self._find(address)
        if found is not None:
            found.is_opaque = True

    def end_launch(self, kernel: str, name_arrays: Callable[[], Mapping[int, tuple[str, int]]]) -> None:
        """Attribute the marks that a launch left to its kernel.

        Args:
            kernel: its linkage name.
            name_arrays: gives the names that the kernel has for allocations, by base.
        """
        self._step += 1
        self._launches += 1
        now = _Moment(self._step, self._launches, self._path, kernel)
        names: Mapping[int, tuple[str, int]] | None = None
        for base, marks in self._list_touched():
            one = self._held[base]
            self._note_use(one, now)
            use = one.uses.get(kernel)
            if use is None:
                names = name_arrays() if names is None else names
                use = one.uses[kernel] = _Use(names.get(base, ("", 0))[0])
            use.launches += 1
            use.marks |= marks

    def _list_touched(self) -> list[tuple[int, int]]:
        """Bases of the allocations that the launch accessed, with its marks; clears the chunk marks."""
        bases, ends = self._index()
        split = int(np.searchsorted(bases, self._host_base))
        found: list[tuple[int, int]] = []
        for first, last in ((0, split), (split, len(bases))):
            if first == last:
                continue
            begin = (int(bases[first]) - ARENA_BASE) // CHUNK_BYTES // 8 * 8
            end = -(-(int(ends[last - 1]) - ARENA_BASE) // CHUNK_BYTES // 8) * 8 + 8
            chunks = self._marks.chunks[begin:end]
            groups = np.flatnonzero(chunks[: len(chunks) // 8 * 8].view(np.uint64))
            places = (groups[:, None] * 8 + np.arange(8)).ravel()
            places = places[chunks[places] != 0]
            owners = np.searchsorted(bases, (places + begin) * CHUNK_BYTES + ARENA_BASE, side="right") - 1
            for owner in np.unique(owners[owners >= 0]).tolist():
                marks = int(np.bitwise_or.reduce(chunks[places[owners == owner]]))
                found.append((int(bases[owner]), marks))
            chunks[places] = 0
        return found

    def _index(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Bases and ends of the allocations, by address."""
        if self._columns is None:
            bases = np.array(sorted(self._held), np.int64)
            sizes = [self._held[base].size_bytes for base in bases.tolist()]
            self._columns = bases, bases + np.array(sizes, np.int64)
        return self._columns

    def _now(self, path: int) -> _Moment:
        return _Moment(self._step, self._launches, path)

    def _next(self, path: int) -> _Moment:
        self._step += 1
        return self._now(path)

    def _find(self, address: int, size_bytes: int = 1) -> _Allocation | None:
        """The allocation that contains all of some bytes."""
        found = self._held.get(address)
        if found is None and self._held and ARENA_BASE <= address < self._end:
            bases = self._index()[0]
            place = int(np.searchsorted(bases, address, side="right")) - 1
            found = self._held[int(bases[place])] if place >= 0 else None
        return found if found is not None and address + size_bytes <= found.base + found.size_bytes else None

    def _words(self, address: int, size_bytes: int, *, is_inner: bool = False) -> npt.NDArray[np.uint8]:
        """Marks of the words that overlap some bytes or, if inner, that lie within them."""
        first, end = address - ARENA_BASE, address - ARENA_BASE + size_bytes
        if is_inner:
            return self._marks.words[-(-first // WORD_BYTES) : max(end // WORD_BYTES, -(-first // WORD_BYTES))]
        return self._marks.words[first // WORD_BYTES : -(-end // WORD_BYTES)]

    def _allocate(self, event: MemoryEvent) -> None:
        base, size = event.target, event.size_bytes
        is_possible = ARENA_BASE <= base < base + size <= self._end and base % CHUNK_BYTES == 0
        if not is_possible or base in self._held or len(self._held) >= _MOST_HELD:
            self._is_whole = False
            self._held.clear()
            self._columns = None
        if self._is_whole:
            self._words(base, size).fill(0)
            self._held[base] = _Allocation(base, size, event.source, self._now(event.path))
            self._columns = None

    @staticmethod
    def _note_use(one: _Allocation, now: _Moment) -> None:
        if one.first.step < 0:
            one.first = now
        one.last = now

    def _copy(self, event: MemoryEvent) -> None:
        now = self._next(event.path)
        source = self._find_device(event.source, event.size_bytes)
        target = self._find_device(event.target, event.size_bytes)
        if source is not None:
            self._note_use(source, now)
            words = self._words(event.source, event.size_bytes)
            if self._is_host(event.target):
                copies = source.copies.setdefault((event.path, False), _Copies())
                is_as_sent = not event.is_gapped and bool(((words & (_HOST | Mark.WRITTEN)) == _HOST).all())
                copies.add(_Copies(1, event.size_bytes, int(is_as_sent), self._find_host(event, event.target)))
            words[(words & Mark.WRITTEN) == 0] |= _COPIED
            source.is_passed_on |= not self._is_host(event.target)
        if target is not None:
            self._note_use(target, now)
            is_from_host = self._is_host(event.source)
            target.is_passed_on |= not is_from_host
            self._overwrite(target, event, is_from_host=is_from_host)

    def _is_host(self, address: int) -> bool:
        """Whether an address is visible to the host, rather than device memory."""
        return not ARENA_BASE <= address < self._host_base

    def _find_host(self, event: MemoryEvent, address: int) -> set[int]:
        """The call path that allocated the host's side of a copy, pinned or ordinary memory; empty if unknown."""
        pinned = self._find(address)
        return {event.host_path if pinned is None else pinned.born.path} - {0}

    def _find_device(self, address: int, size_bytes: int) -> _Allocation | None:
        found = self._find(address, size_bytes) if size_bytes else None
        return found if found is not None and found.kind in _IS_DEVICE else None

    def _overwrite(self, target: _Allocation, event: MemoryEvent, *, is_from_host: bool) -> None:
        first, end = event.target, event.target + event.size_bytes
        if is_from_host:
            copies = target.copies.setdefault((event.path, True), _Copies())
            copies.add(_Copies(1, event.size_bytes, hosts=self._find_host(event, event.source)))
        if event.is_gapped:  # what lies between the rows stays
            words = self._words(first, event.size_bytes)
            words |= _COPIED
            words &= ~np.uint8(_HOST)
            return
        kept = []
        for one in target.pending:
            if first <= one[0] and one[1] <= end:
                self._settle(target, one)
            elif one[1] <= first or end <= one[0]:
                kept.append(one)  # those that are overwritten in part count as read
        target.pending = kept[-_MOST_PENDING + 1 :]
        self._words(first, event.size_bytes)[[0, -1]] |= np.uint8(_COPIED)  # in case that they are written in part
        words = self._words(first, event.size_bytes, is_inner=True)
        words[:] = _remember(words)
        if is_from_host and len(words):
            words |= _HOST
            target.pending.append((first, end, event.path))

    def _settle(self, target: _Allocation, copy: tuple[int, int, int]) -> None:
        """Judge a copy whose data are overwritten or freed."""
        first, end, path = copy
        words = self._words(first, end - first, is_inner=True)
        is_read = bool((words & (Mark.READ | _COPIED)).any())
        target.copies[(path, True)].useless += not is_read

    def _fill(self, event: MemoryEvent) -> None:
        target = self._find_device(event.target, event.size_bytes)
        if target is not None:
            self._note_use(target, self._next(event.path))
            self._overwrite(target, event, is_from_host=False)

    def _locate(self, event: MemoryEvent) -> None:
        found = self._find(event.target)
        if found is not None:
            found.is_opaque = True
            self._note_use(found, self._next(event.path))

    def _release(self, one: _Allocation | None, now: _Moment, *, is_freed: bool = True) -> None:
        if one is None:
            return
        for copy in one.pending:
            self._settle(one, copy)
        words = self._words(one.base, one.size_bytes)
        site = self._sites.setdefault(one.born.path, _Site())
        site.allocations += 1
        site.size_bytes += one.size_bytes
        site.left += not is_freed
        site.left_bytes += 0 if is_freed else one.size_bytes
        ever = _remember(words)
        site.read_bytes += WORD_BYTES * int(np.count_nonzero(ever & _EVER_READ))
        site.written_bytes += WORD_BYTES * int(np.count_nonzero(ever & _EVER_WRITTEN))
        if one.kind in _IS_DEVICE and not one.is_opaque:
            site.judged += 1
            accessed = min(WORD_BYTES * int(np.count_nonzero(ever)), one.size_bytes)
            site.untouched += not one.uses and not one.is_passed_on
            is_part = accessed <= min(_MOST_TOUCHED_RATIO * one.size_bytes, one.size_bytes - _LEAST_UNTOUCHED_BYTES)
            if one.uses and is_part and one.kind != AllocationKind.PITCHED:
                site.part += 1
                site.part_bytes += one.size_bytes
                site.accessed_bytes += accessed
        for kernel, use in one.uses.items():
            known = site.uses.setdefault(kernel, _Use(use.name))
            known.launches += use.launches
            known.marks |= use.marks
        for key, copies in one.copies.items():
            site.copies.setdefault(key, _Copies()).add(copies)
        if one.kind in _IS_DEVICE:
            moments = one.born, one.first, one.last, now
            self._lives.append(_Life(one.size_bytes, one.born.path, *moments, is_freed, one.is_opaque))
            self._is_whole = len(self._lives) < _MOST_LIVES
        del self._held[one.base]
        self._columns = None

    def list_paths(self) -> set[int]:
        """Numbers of the call paths that :meth:`tell` needs, once the process has ended."""
        found = set(self._sites)
        copies = [pair for site in self._sites.values() for pair in site.copies.items()]
        found.update(path for (path, _), _ in copies)
        found = found.union(*(one.hosts for _, one in copies))
        return found.union(*({life.first.path, life.last.path} for life in self._lives))

    def finish(self) -> None:
        """Release at the end of the process what is still allocated."""
        self._step += 1
        for one in list(self._held.values()):
            self._release(one, self._now(0), is_freed=False)

    def tell(self, paths: Mapping[int, HostPath], *, is_judged: bool) -> MemoryUse:
        """Memory use of the process, once it has ended.

        Args:
            paths: frames by the numbers of :meth:`list_paths`.
            is_judged: whether everything ran as it would on a GPU, so that findings hold.
        """
        if not self._is_whole:
            return MemoryUse()
        peak, lean, late = _measure_lives(self._lives)
        frees = any(life.is_freed for life in self._lives)  # a program that frees nothing leaves it to its end
        sites = []
        for number, site in self._sites.items():
            findings = list(_judge_all(site, late.get(number, ()), paths, frees=frees)) if is_judged else []
            sites.append(
                AllocationSite(
                    path=paths.get(number, ()),
                    allocations=site.allocations,
                    size_bytes=site.size_bytes,
                    read_bytes=site.read_bytes,
                    written_bytes=site.written_bytes,
                    uses=tuple(
                        ArrayUse(
                            kernel=kernel,
                            name=use.name,
                            launches=use.launches,
                            reads=bool(use.marks & Mark.READ),
                            writes=bool(use.marks & Mark.WRITTEN),
                        )
                        for kernel, use in site.uses.items()
                    ),
                    copies=tuple(
                        CopyRuns(
                            path=paths.get(path, ()),
                            is_to_device=to,
                            copies=one.copies,
                            size_bytes=one.size_bytes,
                            hosts=tuple(paths[host] for host in sorted(one.hosts) if host in paths),
                        )
                        for (path, to), one in site.copies.items()
                    ),
                    findings=tuple(findings),
                )
            )
        return MemoryUse(sites=tuple(sites), peak_bytes=peak, lean_peak_bytes=lean)


def _remember(words: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Marks of all earlier launches, without the bits that describe the current content."""
    done = words & np.uint8(Mark.READ | Mark.WRITTEN)
    return ((done << np.uint8(_EVER_SHIFT)) | (words & np.uint8(_EVER_READ | _EVER_WRITTEN))).astype(np.uint8)


def _judge_all(
    site: _Site, lives: Iterable[tuple[_Life, bool, bool]], paths: Mapping[int, HostPath], *, frees: bool
) -> Iterable[AllocationFinding]:
    """All findings about a site. UNUSED excludes EARLY and LATE; a site that leaks repeatedly is NEVER_FREED, not LATE."""
    found = [*_judge_site(site, paths)]
    if all(one.kind is not FindingKind.UNUSED for one in found):
        found += [one for one in _judge_lives(lives, paths) if site.left <= 1 or not _lasts(one)]
    yield from found
    if not any(map(_lasts, found)) and (site.left > 1 or (site.left and frees)):
        yield AllocationFinding(kind=FindingKind.NEVER_FREED, count=site.left, size_bytes=site.left_bytes)


def _lasts(finding: AllocationFinding) -> bool:
    """Whether a finding is about idle time before the end of the program."""
    return finding.kind is FindingKind.LATE and not finding.is_freed


def _judge_site(site: _Site, paths: Mapping[int, HostPath]) -> Iterable[AllocationFinding]:
    if site.untouched == site.allocations:
        copied = sum(one.size_bytes for one in site.copies.values())
        yield AllocationFinding(
            kind=FindingKind.UNUSED, count=site.untouched, size_bytes=site.size_bytes, part_bytes=copied
        )
        return
    if site.part == site.allocations:
        yield AllocationFinding(
            kind=FindingKind.PARTLY_USED, count=site.part, size_bytes=site.part_bytes, part_bytes=site.accessed_bytes
        )
    if site.judged < site.allocations:
        return
    for (path, is_to_device), one in site.copies.items():
        if one.useless == one.copies:
            yield AllocationFinding(
                kind=FindingKind.NEVER_READ if is_to_device else FindingKind.UNCHANGED,
                count=one.copies,
                size_bytes=one.size_bytes,
                path=paths.get(path, ()),
            )


def _measure_lives(lives: list[_Life]) -> tuple[int, int, dict[int, list[tuple[_Life, bool, bool]]]]:
    """Peaks, and the allocations that add to the first although idle.

    Returns:
        Most bytes that were allocated while something was used; the same if each allocation were there only from its first use to its last; and
        where the second is clearly less, by site, allocations with whether they are early, and late.
    """
    steps = max((life.freed.step for life in lives), default=0) + 2
    whole, lean = np.zeros(steps + 1, np.int64), np.zeros(steps + 1, np.int64)
    for life in lives:
        whole[life.born.step + 1] += life.size_bytes
        whole[life.freed.step + 1] -= life.size_bytes
        if life.is_opaque or life.first.step >= 0:
            lean[life.born.step + 1 if life.is_opaque else life.first.step] += life.size_bytes
            lean[life.freed.step + 1 if life.is_opaque else life.last.step + 1] -= life.size_bytes
    whole, lean = whole.cumsum(), lean.cumsum()
    peak, least = int(whole.max()), int(lean.max())
    found: dict[int, list[tuple[_Life, bool, bool]]] = {}
    if least > _LEAN_RATIO * peak or peak - least < _LEAST_SAVED_BYTES:
        return peak, least, found
    over = np.append(0, (whole > least).cumsum())
    for life in lives:
        if life.is_opaque or life.first.step < 0:
            continue
        waited, lay = _count_waits(life)
        is_early = waited > 0 and over[life.first.step] > over[life.born.step + 1]
        is_late = lay > 0 and over[life.freed.step + 1] > over[life.last.step + 1]
        if is_early or is_late:
            found.setdefault(life.site, []).append((life, bool(is_early), bool(is_late)))
    return peak, least, found


def _count_waits(life: _Life) -> tuple[int, int]:
    """Launches between an allocation and its first use, and between its last use and its end."""
    first = life.first.launches - bool(life.first.kernel)
    return first - life.born.launches, life.freed.launches - life.last.launches


def _judge_lives(
    lives: Iterable[tuple[_Life, bool, bool]], paths: Mapping[int, HostPath]
) -> Iterable[AllocationFinding]:
    for kind in (FindingKind.EARLY, FindingKind.LATE):
        is_early = kind is FindingKind.EARLY
        chosen = [life for life, early, late in lives if (early if is_early else late)]
        if not chosen:
            continue
        moments = [life.first if is_early else life.last for life in chosen]
        yield AllocationFinding(
            kind=kind,
            count=len(chosen),
            size_bytes=sum(life.size_bytes for life in chosen),
            path=paths.get(moments[0].path, ()) if len({one.path for one in moments}) == 1 else (),
            kernel=moments[0].kernel if len({one.kernel for one in moments}) == 1 else "",
            launches=min(_count_waits(life)[not is_early] for life in chosen),
            is_freed=all(life.is_freed for life in chosen),
        )
