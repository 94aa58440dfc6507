"""Reads profiles of any format: picks the reader by content, reads, and checks the result."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import numpy as np
from msgspec.structs import replace

from gpa_lsp.foundation.catalogue import load_catalogue
from gpa_lsp.foundation.errors import InputError, Problem, ProblemSeverity, UnsupportedInputError
from gpa_lsp.foundation.files import read_head
from gpa_lsp.foundation.numbers import format_count
from gpa_lsp.profile import readers
from gpa_lsp.profile.model import Launch, LaunchOutline, Module, OpenedProfile, Profile, Sampling, StallSamples
from gpa_lsp.profile.native import SIMULATING_TOOL
from gpa_lsp.profile.readers import Reader


@cache
def find_readers() -> tuple[Reader, ...]:
    """All readers, in alphabetical order of their files."""
    return tuple(load_catalogue(readers, "READER", Reader).values())


def list_suffixes() -> tuple[str, ...]:
    """File name endings of all formats, to find profiles in a workspace.

    >>> ".ncu-rep" in list_suffixes()
    True
    """
    return tuple(suffix for reader in find_readers() for suffix in reader.suffixes)


def read_profile(path: Path) -> Profile:
    """Read a profile of any known format.

    Args:
        path: the file.

    Returns:
        The profile; ``problems`` holds what could not be read while the rest could, and every invariant :func:`check_profile` found broken.

    Raises:
        InputError: the file is missing, empty, damaged or not to be read; says where and what to do.
        UnsupportedInputError: the file is of a kind or version that is not read.
    """
    reader = _find_reader(path)
    try:
        profile = reader.read(path)
    except InputError as error:
        raise error.at(path) from None
    return _check(profile)


def is_measurement(path: Path) -> bool:
    """Whether a file is a measured profile, rather than a simulated one, by its first bytes.

    Raises:
        InputError: it cannot be read.
    """
    head = read_head(path)
    return SIMULATING_TOOL.encode() not in head and any(one.recognises(head, path) for one in find_readers())


@contextmanager
def open_profile(path: Path, *, is_known_sound: bool = False) -> Iterator[OpenedProfile | None]:
    """Open a profile to read some launches before the others.

    Args:
        path: the file.
        is_known_sound: it was opened before, by another process perhaps, and could be read launch by launch; what all launches are is found out
            when they are asked for.

    Yields:
        None where it has to be read as a whole; what is wrong with it is known then.

    Raises:
        InputError: as :func:`read_profile`.
        UnsupportedInputError: as :func:`read_profile`.
    """
    reader = _find_reader(path)
    if reader.open is None:
        yield None
        return
    with reader.open(path, is_known_sound) as opened:
        yield None if opened is None else _Checked(opened)


class _Checked:
    """Opened profile whose parts are checked as they are read."""

    def __init__(self, opened: OpenedProfile) -> None:
        self._opened = opened

    @property
    def launches(self) -> tuple[LaunchOutline, ...]:
        return self._opened.launches

    def read(self, numbers: Collection[int]) -> Profile:
        return _check(self._opened.read(numbers), tuple(sorted(numbers)))


def _find_reader(path: Path) -> Reader:
    head = read_head(path)
    reader = next((found for found in find_readers() if found.recognises(head, path)), None) if head else None
    if reader is None:
        known = "; ".join(f"{found.description} ({', '.join(found.suffixes)})" for found in find_readers())
        if path.suffix.lower() in (".cu", ".cuh"):
            remedy = "gpa-lsp check and predict tell of its code, gpa-lsp emulate runs it; what is measured is a program: gpa-lsp profile"
            raise UnsupportedInputError("is a source, not a profile", path=path, remedy=remedy)
        if not head:
            raise InputError("the file is empty", path=path, remedy="record it again")
        raise UnsupportedInputError("is not a profile in a known format", path=path, remedy=f"what is read: {known}")
    return reader


def _check(profile: Profile, positions: Sequence[int] | None = None) -> Profile:
    found_problems = (problem for problem in check_profile(profile, positions) if problem not in profile.problems)
    return replace(profile, problems=(*profile.problems, *found_problems))


# The invariants of a :class:`Profile`, checked after every read, whatever the reader.
#
# A broken invariant is a :class:`Problem` beside the data, not an exception: the rest of the profile is still worth showing.

# Nsight Compute's own total of all stall samples of a launch (2021.2 and later)
SAMPLE_COUNT_METRIC = "smsp__pcsamp_sample_count"


def check_profile(profile: Profile, positions: Sequence[int] | None = None) -> tuple[Problem, ...]:
    """Find every broken invariant of a profile.

    * launches are numbered by position, and their module is in the profile;
    * modules are filed under their own id, their functions ascend by address;
    * sample columns have one shape; addresses ascend and are unique; reasons are sorted and unique;
    * no count is negative, and latency samples are at most all samples;
    * all samples add up to the profiler's own total, where it is stored: with those dropped and foreign, of a launch and of the run.

    Args:
        positions: of its launches in the file; None where these are all of them.
    """
    found = [*_check_modules(profile), *_check_run(profile)]
    numbers = range(len(profile.launches)) if positions is None else positions
    for position, launch in zip(numbers, profile.launches, strict=positions is None):
        for message, severity in _check_launch(profile, position, launch):
            place = f"launch {position}"
            problem = Problem(
                severity=severity, message=message, path=profile.path, place=place, kernel=launch.mangled_name
            )
            found.append(problem)
    return tuple(found)


def _check_modules(profile: Profile) -> Iterator[Problem]:
    for module_id, module in profile.modules.items():
        for message in _check_module(module_id, module):
            yield Problem.warning(message, path=profile.path, place=f"module {module_id}")


def _check_run(profile: Profile) -> Iterator[Problem]:
    """Problems of the run's sampling: losses, and a total that does not add up."""
    launches, run = profile.launches, profile.sampling
    if profile.samples_truncated:
        message = "a sampling buffer overflowed; later code was sampled less, or not at all"
        remedy = "record with a larger buffer or a longer sampling period"
        yield Problem.warning(message, remedy, path=profile.path)
    if run.dropped_samples:
        message = f"{format_count(run.dropped_samples)} samples of the run were dropped, of which kernels is unknown; all shares are less certain"
        yield Problem.warning(message, "record with a longer sampling period", path=profile.path)
    if run.foreign_samples:
        message = f"{format_count(run.foreign_samples)} samples of the run are of code outside all launches of the profile; no kernel counts them"
        yield Problem.note(message, path=profile.path)
    placed = sum(launch.samples.total_samples for launch in launches if launch.samples is not None)
    apart = [(launch.sampling.dropped_samples, launch.sampling.foreign_samples) for launch in launches]
    known = sum((dropped or 0) + (foreign or 0) for dropped, foreign in apart)
    if (wrong := _check_total(run, placed + known)) is not None:
        yield Problem.error(wrong, path=profile.path, place="the whole run")


def _check_total(sampling: Sampling, placed: int) -> str | None:
    """Sentence about a collector's total that its parts do not add up to; unknown parts may be of any size."""
    total, parts = sampling.total_samples, (sampling.dropped_samples, sampling.foreign_samples)
    found = placed + sum(part or 0 for part in parts)
    if total is None or found == total or (found < total and None in parts):
        return None
    return f"the samples in rows, dropped and foreign add up to {found}, the collector counted {total}"


def _check_module(module_id: int, module: Module) -> Iterator[str]:
    if module.module_id != module_id:
        yield f"the module is filed under another id than its own ({module.module_id})"
    addresses = [function.address for function in module.functions]
    if addresses != sorted(addresses):
        yield "the functions are not in ascending order of their load addresses"


def _check_launch(profile: Profile, position: int, launch: Launch) -> Iterator[tuple[str, ProblemSeverity]]:
    if launch.index != position:
        yield f"the launch is numbered {launch.index}", ProblemSeverity.WARNING
    if launch.module_id is not None and launch.module_id not in profile.modules:
        yield f"the profile holds no module {launch.module_id}", ProblemSeverity.ERROR
    if list(launch.function_addresses) != sorted(set(launch.function_addresses)):
        yield "the function addresses are not ascending and unique", ProblemSeverity.WARNING
    if launch.samples is None:
        return
    for message in _check_samples(launch.samples):
        yield message, ProblemSeverity.ERROR
    counted = launch.read_number(SAMPLE_COUNT_METRIC)
    if (wrong := _check_total(launch.sampling, launch.samples.total_samples)) is not None:
        yield wrong, ProblemSeverity.ERROR
    total = launch.samples.total_samples
    if counted is not None and int(counted) != total:
        message = f"the stall samples add up to {total}, the profiler counted {int(counted)}"
        yield message, ProblemSeverity.ERROR


def _check_samples(samples: StallSamples) -> Iterator[str]:
    shape = (len(samples.addresses), len(samples.reasons))
    latency_samples = samples.latency_samples
    if samples.all_samples.shape != shape or (latency_samples is not None and latency_samples.shape != shape):
        yield "the sample columns do not have one row per address and one column per reason"
        return
    if np.any(samples.addresses[1:] <= samples.addresses[:-1]):
        yield "the sampled addresses are not ascending and unique"
    if list(samples.reasons) != sorted(set(samples.reasons)):
        yield "the stall reasons are not sorted and unique"
    if np.any(samples.all_samples < 0) or (latency_samples is not None and np.any(latency_samples < 0)):
        yield "there are negative sample counts"
    worse = 0 if latency_samples is None else int(np.count_nonzero(latency_samples > samples.all_samples))
    if worse:
        yield f"{worse} counts of not-issued samples exceed the count of all samples that they are part of"
