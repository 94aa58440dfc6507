"""Recordings of a kernel's report for the history."""

import hashlib
import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

import msgspec.structs
from msgspec.structs import replace

from gpa_lsp.foundation.errors import InputError
from gpa_lsp.foundation.files import Stamp, open_regular_file, read_stamp
from gpa_lsp.foundation.records import ColumnRecord
from gpa_lsp.report.changes import Place, ReasonCounts
from gpa_lsp.report.compare import measure_work
from gpa_lsp.report.history.model import (
    DEFAULT_LIMITS,
    Commit,
    HistoryLimits,
    KernelKey,
    Measurement,
    Recording,
    RememberedAdvice,
    RememberedFile,
    RememberedLine,
    RememberedLines,
    RememberedPlace,
)
from gpa_lsp.report.history.rows import make_storable, make_storable_time
from gpa_lsp.report.kernel_lines import LineCauses, find_body
from gpa_lsp.report.launch_places import list_launch_places
from gpa_lsp.report.measured_files import MeasuredFile
from gpa_lsp.report.model import KernelReport
from gpa_lsp.report.source_paths import parse_compiled_path

# Which commit was checked out when something was measured, from git's own log of that; git itself is not run.
#
# The log is what `git reflog` prints. It is private to a working tree, so that linked ones and submodules have theirs; a measurement from before
# its first entry (a clone that came later) belongs to no commit anybody knows.
#
# Source: git, "gitrepository-layout" (gitfile, logs/HEAD), and "git-reflog".

_MOST_FOLDERS = 64
_MOST_LINK_BYTES = 4096
_MOST_LOG_BYTES = 1 << 20  # Of the end of the log: thousands of entries

_MOST_SUBJECT_CHARS = 120
_SECOND_NS = 1_000_000_000

_ENTRY = re.compile(rb"[0-9a-f]{40,64} ([0-9a-f]{40,64}) [^\t\n]*? (\d{1,12}) [-+]\d{4}(?:\t([^\n]*))?")
_SUBJECT = re.compile(r"(?:commit(?: \([a-z]+\))?|cherry-pick|rebase(?: -i)? \((?:pick|reword)\)): (.*)")


_Entry = tuple[
    str, int, str
]  # Digest of what became the checked out commit, since when (s since 1970), and what git did


def find_commit(path: Path, measured_ns: int) -> Commit | None:
    """The commit checked out in the working tree of a path at a time; None outside of a repository, and before its log begins."""
    folder = _find_repository(path)
    if folder is None:
        return None
    log = folder / "logs" / "HEAD"
    stamp = read_stamp(log)
    if stamp is None:
        return None
    try:
        entries = _read_log(log, stamp)
    except (InputError, OSError):
        return None
    measured_s = measured_ns // _SECOND_NS
    digest = next((digest for digest, begun_s, _ in reversed(entries) if begun_s <= measured_s), "")
    return Commit(digest=digest, subject=_find_subject(entries, digest)) if digest.strip("0") else None


def _find_repository(path: Path) -> Path | None:
    """Git folder of the working tree: ``.git``, or the folder named by a file ``.git``."""
    for folder in (path, *path.parents)[:_MOST_FOLDERS]:
        found = folder / ".git"
        try:
            if found.is_dir():
                return found
            if not found.exists():
                continue
            text = _read_end(found, _MOST_LINK_BYTES).decode("utf-8", "surrogateescape")
        except (InputError, OSError, ValueError):
            return None
        target = text.partition("\n")[0].removeprefix("gitdir: ").rstrip("\r")
        return folder / target if text.startswith("gitdir: ") and "\0" not in target else None
    return None


@lru_cache(maxsize=8)
def _read_log(log: Path, stamp: Stamp) -> tuple[_Entry, ...]:
    """Entries of a log, oldest first; cached by *stamp*, since a profile has many kernels."""
    del stamp
    found = (_ENTRY.fullmatch(line) for line in _read_end(log, _MOST_LOG_BYTES).split(b"\n"))
    return tuple(
        (entry[1].decode("ascii"), int(entry[2]), (entry[3] or b"").decode("utf-8", "replace"))
        for entry in found
        if entry is not None
    )


def _read_end(path: Path, most_bytes: int) -> bytes:
    """The end of a regular file.

    Raises:
        InputError: it is none, or may not be read.
        OSError: it cannot be read.
    """
    stream, size_bytes = open_regular_file(path)
    with stream:
        stream.seek(max(0, size_bytes - most_bytes))
        return stream.read(most_bytes)


def _find_subject(entries: tuple[_Entry, ...], digest: str) -> str:
    """The first line of a commit's message, where it was made in this working tree."""
    for own, _, message in reversed(entries):
        found = _SUBJECT.fullmatch(message) if own == digest else None
        if found is not None:
            return found[1][:_MOST_SUBJECT_CHARS]
    return ""


_MOST_ADVICE = 5
_LEAST_PLACES = 2
_MOST_PLACES = 32
_MOST_REASONS = 64
_MOST_SOURCES_BYTES = 8 << 20  # Source texts of one measurement, together


def is_measured(kernel: KernelReport) -> bool:
    """Whether a kernel can be recorded: measured, not failed, not simulated."""
    return (
        bool(kernel.launches)
        and not kernel.is_simulated
        and (kernel.total_samples > 0 or kernel.duration_ns is not None)
    )


class Surroundings(ColumnRecord, frozen=True, kw_only=True):
    """Circumstances in which a profile was read: time, files, commit."""

    measured_ns: int  # when the kernel was measured, since 1970
    read_ns: int  # when ``files`` were read
    files: Mapping[str, MeasuredFile]  # path as compiled → what was found here
    body: str | None  # path as compiled of the file the kernel's body is in; None when unknown
    roots: tuple[Path, ...] = ()  # texts of files below these are kept; of others only what the profile itself carries
    # line → stalls that would go if it were free; None where nobody was blamed
    caused_samples: Mapping[Place, float] | None = None
    commit: Commit | None = None  # what was checked out where the kernel's body is; None where unknown


def describe_surroundings(
    kernel: KernelReport,
    files: Iterable[MeasuredFile],
    causes: Mapping[Place, LineCauses],
    *,
    measured_ns: int,
    read_ns: int,
    roots: Sequence[Path],
) -> Surroundings:
    """Circumstances in which a kernel was read.

    Args:
        kernel: with its instructions.
        files: of its profile, as found on this machine.
        causes: of its lines; empty where nothing was blamed.
        measured_ns: when it was measured, since 1970.
        read_ns: when the files were read.
        roots: texts of files below these are kept.
    """
    body = find_body(kernel)
    found = {file.compiled_path: file for file in files}
    body_file = None if body is None else found.get(body[0])
    return Surroundings(
        measured_ns=measured_ns,
        read_ns=read_ns,
        files=found,
        body=None if body is None else body[0],
        commit=_find_commit(kernel, body_file, measured_ns),
        roots=tuple(Path(os.path.realpath(root)) for root in roots),
        caused_samples={place: one.caused_samples for place, one in causes.items()} or None,
    )


def _find_commit(kernel: KernelReport, body: MeasuredFile | None, measured_ns: int) -> Commit | None:
    """Commit of the body's working tree; of the profile's where the body is missing or may not be read."""
    if body is not None and not body.is_outside:
        return find_commit(Path(body.local_path), measured_ns)
    if kernel.profile_path is None:
        return None
    return find_commit(Path(os.path.realpath(kernel.profile_path)), measured_ns)


def build_recording(
    kernel: KernelReport, surroundings: Surroundings, limits: HistoryLimits = DEFAULT_LIMITS
) -> Recording:
    """Recording of a kernel."""
    lines, is_whole = _choose_lines(kernel, surroundings.caused_samples, limits.lines_per_run)
    body = surroundings.body
    wanted = dict.fromkeys([*([body] if body else []), *(line.file for line in lines)])
    files = _read_files(kernel, wanted, surroundings, limits)
    stored = tuple(replace(line, file=make_storable(line.file)) for line in lines)
    return Recording(
        measurement=_describe(kernel, surroundings),
        identity=identify(kernel),
        content=RememberedLines(files=files, lines=stored, is_whole=is_whole),
    )


def _describe(kernel: KernelReport, surroundings: Surroundings) -> Measurement:
    advice = kernel.advice.ranked if kernel.advice is not None else ()
    reasons = list(kernel.by_reason.items())[:_MOST_REASONS]
    profile = None if kernel.profile_path is None else make_storable(os.path.abspath(kernel.profile_path))  # noqa: PTH100
    work = measure_work(kernel)
    device, commit = make_storable(work.device), surroundings.commit
    shared = msgspec.structs.asdict(work) | {
        "device": device,
        "by_reason": {make_storable(name): count for name, count in reasons},
    }
    return Measurement(
        **shared,
        key=KernelKey(
            mangled_name=make_storable(kernel.mangled_name),
            home=make_storable(_find_home(kernel, surroundings)),
            device=device,
            compute_capability=kernel.device.compute_capability,
        ),
        name=make_storable(kernel.name),
        measured_ns=make_storable_time(surroundings.measured_ns),
        profile=profile,
        session=_name_session(kernel, surroundings.measured_ns),
        latency_samples=kernel.latency_samples,
        advice=tuple(
            RememberedAdvice(optimizer=piece.optimizer, title=piece.title, speedup=piece.speedup.estimate)
            for piece in advice[:_MOST_ADVICE]
        ),
        commit=None if commit is None else replace(commit, subject=make_storable(commit.subject)),
        places=_list_places(kernel),
    )


def _list_places(kernel: KernelReport) -> tuple[RememberedPlace, ...]:
    """Call sites of a kernel, where there are several: their mean alone would hide changes of each."""
    places = list_launch_places(kernel)
    if len(places) < _LEAST_PLACES:
        return ()
    return tuple(
        RememberedPlace(
            name=make_storable(place.name),
            function=make_storable(place.function),
            launches=place.launches,
            duration_ns=place.duration_ns,
        )
        for place in places[:_MOST_PLACES]
        if place.duration_ns is not None
    )


def _find_home(kernel: KernelReport, surroundings: Surroundings) -> str:
    body = surroundings.body
    if body is not None and body in surroundings.files:
        return surroundings.files[body].local_path
    if body is not None and parse_compiled_path(body).anchor:
        return body
    folder = "" if kernel.profile_path is None else os.path.realpath(kernel.profile_path.parent)
    return "/".join(part for part in (folder, body) if part)


def identify(kernel: KernelReport) -> str:
    """Digest of a measurement that does not depend on where the profile lies or who reads it."""
    launches = [
        [launch.duration_ns, sorted((name, count.all_samples) for name, count in launch.by_reason.items())]
        for launch in kernel.launches
    ]
    facts = [
        kernel.mangled_name,
        kernel.device.name,
        kernel.device.compute_capability,
        kernel.measured_unix_s,
        launches,
    ]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()


def _name_session(kernel: KernelReport, measured_ns: int) -> str:
    """Key shared by all kernels of one state of a profile."""
    path = kernel.profile_path
    if path is None:
        return str(measured_ns)
    try:
        facts = path.stat()
        stamp = [facts.st_mtime_ns, facts.st_size]
    except OSError:
        stamp = [measured_ns]  # deleted since: its kernels were measured at about one time
    return hashlib.sha256(json.dumps([os.path.realpath(path), *stamp]).encode()).hexdigest()


def _choose_lines(
    kernel: KernelReport, caused_samples: Mapping[Place, float] | None, most: int
) -> tuple[tuple[RememberedLine, ...], bool]:
    """Lines with most samples or caused stalls, and whether these are all."""
    found: dict[Place, RememberedLine] = {}
    for row in kernel.lines:
        if row.file is None or row.line is None:
            continue
        found[(row.file, row.line)] = RememberedLine(
            file=row.file,
            line=row.line,
            samples=row.inclusive_samples,
            latency_samples=row.inclusive_latency_samples,
            called_samples=row.called_samples,
            caused_samples=None if caused_samples is None else caused_samples.get((row.file, row.line), 0.0),
            reason=_find_top_reason(row.inclusive_by_reason),
        )
    for (file, line), caused in (caused_samples or {}).items():
        if caused > 0 and (file, line) not in found:
            found[(file, line)] = RememberedLine(
                file=file,
                line=line,
                samples=0,
                latency_samples=None if kernel.latency_samples is None else 0,
                called_samples=0.0,
                caused_samples=caused,
                reason="",
            )
    ranked = sorted(
        found.values(),
        key=lambda one: (-max(one.samples + one.called_samples, one.caused_samples or 0.0), one.file, one.line),
    )
    return tuple(ranked[:most]), len(ranked) <= most


def _find_top_reason(counts: ReasonCounts) -> str:
    if not counts:
        return ""
    return make_storable(max(counts, key=lambda name: counts[name].all_samples))


def _read_files(
    kernel: KernelReport, wanted: Iterable[str], surroundings: Surroundings, limits: HistoryLimits
) -> tuple[RememberedFile, ...]:
    """Files of the kept lines, with their texts as far as there is room, hottest first."""
    left_bytes = _MOST_SOURCES_BYTES
    found = []
    for path in wanted:
        file = surroundings.files.get(path)
        text, read_ns = _find_text(kernel, path, surroundings)
        size_bytes = 0 if text is None else len(text.encode("utf-8", "backslashreplace"))
        if size_bytes > min(limits.source_bytes, left_bytes):
            text, size_bytes = None, 0
        left_bytes -= size_bytes
        found.append(
            RememberedFile(
                compiled_path=make_storable(path),
                local_path=None if file is None else make_storable(file.local_path),
                text=text,
                read_ns=make_storable_time(read_ns),
            )
        )
    return tuple(found)


def _find_text(kernel: KernelReport, path: str, surroundings: Surroundings) -> tuple[str | None, int]:
    """Text of a file as measured, and the time until which the file is known to have held it."""
    embedded = kernel.embedded_sources.get(path)
    if embedded is not None:
        return embedded, surroundings.measured_ns
    file = surroundings.files.get(path)
    if file is None or file.lines is None or not file.is_verified:
        return None, surroundings.measured_ns
    local_path = Path(file.local_path)
    if not any(local_path.is_relative_to(root) for root in surroundings.roots):
        return None, surroundings.measured_ns
    held_ns = surroundings.read_ns if _is_untouched(local_path, surroundings.measured_ns) else surroundings.measured_ns
    return "\n".join(file.lines), held_ns


def _is_untouched(path: Path, measured_ns: int) -> bool:
    """Whether the file still holds what was measured; else the text is a copy and says nothing about later times."""
    try:
        return path.stat().st_mtime_ns <= measured_ns
    except OSError:
        return False
