"""The invariants of a :class:`Profile`, checked after every read, whatever the reader.

A broken invariant is a :class:`Problem` beside the data, not an exception: the rest of the profile is still worth showing.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from gpa_lsp.foundation.errors import Problem, ProblemSeverity
from gpa_lsp.foundation.numbers import format_count
from gpa_lsp.profile.model import Launch, Module, Profile, StallSamples
from gpa_lsp.profile.sampling import Sampling

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
            place = f"module {module_id}"
            yield Problem(severity=ProblemSeverity.WARNING, message=message, path=profile.path, place=place)


def _check_run(profile: Profile) -> Iterator[Problem]:
    """What is in no launch is said, and that everything the run sampled is somewhere."""
    severity = ProblemSeverity.WARNING
    launches, run = profile.launches, profile.sampling
    if profile.samples_truncated:
        message = "a sampling buffer overflowed; later code was sampled less, or not at all"
        remedy = "record with a larger buffer or a longer sampling period"
        yield Problem(severity=severity, message=message, path=profile.path, remedy=remedy)
    if run.dropped_samples:
        message = f"{format_count(run.dropped_samples)} samples of the run were dropped, of which kernels is unknown; all shares are less certain"
        yield Problem(
            severity=severity, message=message, path=profile.path, remedy="record with a longer sampling period"
        )
    if run.foreign_samples:
        message = f"{format_count(run.foreign_samples)} samples of the run are of code outside all launches of the profile; no kernel counts them"
        yield Problem(severity=ProblemSeverity.NOTE, message=message, path=profile.path)
    placed = sum(launch.samples.total_samples for launch in launches if launch.samples is not None)
    apart = [(launch.sampling.dropped_samples, launch.sampling.foreign_samples) for launch in launches]
    known = sum((dropped or 0) + (foreign or 0) for dropped, foreign in apart)
    if (wrong := _check_total(run, placed + known)) is not None:
        yield Problem(severity=ProblemSeverity.ERROR, message=wrong, path=profile.path, place="the whole run")


def _check_total(sampling: Sampling, placed: int) -> str | None:
    """What is wrong with the parts of a collector's total; unknown parts may be of any size."""
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
