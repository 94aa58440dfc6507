"""Ask every optimizer about one kernel, and rank what they say."""

from collections.abc import Callable, Mapping
from functools import cache

from msgspec.structs import replace

import gpa_lsp.diagnosis.advice.optimizers as catalogue
from gpa_lsp.diagnosis.advice.model import (
    LEAST_SPEEDUP,
    LIBRARY_USE,
    UNPRICED,
    Advice,
    KernelAdvice,
    Silence,
    SilenceStage,
)
from gpa_lsp.diagnosis.advice.optimizers import NO_STATES, Optimizer, find_lack
from gpa_lsp.diagnosis.advice.residency import measure_issue_ratio
from gpa_lsp.diagnosis.advice.verdict import decide_standing, describe_memory, is_memory_full, list_units, rank
from gpa_lsp.diagnosis.analyses.limiter import find_limiter
from gpa_lsp.diagnosis.analyses.model import Limiter, LimiterKind
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.foundation.catalogue import load_catalogue
from gpa_lsp.foundation.errors import Problem
from gpa_lsp.foundation.prose import Code, begin_lower, percent, say

# Why latency hiding is not priced
NO_SPLIT = say("the profile does not separate not-issued samples, which Equations 3 to 5 need")

# The first reason of advice on a kernel that was not sampled
WITHOUT_SAMPLES = say("without samples: by counters alone")


@cache
def list_optimizers() -> Mapping[str, Optimizer]:
    """The optimizers, by name."""
    return load_catalogue(catalogue, "OPTIMIZER", Optimizer)


def advise_kernel(subject: Subject) -> tuple[KernelAdvice, tuple[Problem, ...]]:
    """Advise on changes of a kernel, best first.

    Returns:
        The advice, and a problem for each optimizer that failed.
    """
    limiter = find_limiter(subject)
    found: list[Advice] = []
    silences: list[Silence] = []
    problems: list[Problem] = []
    for optimizer in list_optimizers().values():
        answer = find_obstacle(optimizer, subject) or ask(optimizer.name, optimizer.advise, subject, problems)
        if isinstance(answer, Silence):
            silences.append(answer)
        elif answer.optimizer not in UNPRICED and answer.speedup.estimate < LEAST_SPEEDUP:
            saved = percent(1 - 1 / answer.speedup.estimate)
            message = say("would save {saved} of the run time, too little for a change", saved=saved)
            silences.append(optimizer.silent(SilenceStage.TOO_SMALL, message))
        else:
            found.append(answer)
    spoken = {one.optimizer for one in found}
    for optimizer in list_optimizers().values():
        if optimizer.name in spoken and optimizer.yields_to in spoken:
            found = [one for one in found if one.optimizer != optimizer.name]
            title = begin_lower(list_optimizers()[optimizer.yields_to].title)
            silences.append(
                optimizer.silent(SilenceStage.NOT_MATCHED, say("another one says it: {title}", title=title))
            )
    if subject.total_samples == 0:
        found = [replace(one, by_counters=True, reasons=(WITHOUT_SAMPLES, *one.reasons)) for one in found]
    advice = KernelAdvice(
        advice=rank(limiter, found, list_optimizers()),
        silences=tuple(silences),
        memory=describe_memory(limiter),
        is_bandwidth_bound=is_memory_full(limiter),
        units=list_units(limiter),
    )
    return decide(advice, limiter), tuple(problems)


def decide(advice: KernelAdvice, limiter: Limiter | None) -> KernelAdvice:
    """Ranked advice with its verdict (:mod:`gpa_lsp.diagnosis.advice.verdict`)."""
    return decide_standing(advice, limiter, list_optimizers())


def find_obstacle(optimizer: Optimizer, subject: Subject) -> Silence | None:
    """Obstacle to asking an optimizer: library code, or unknown samples, launch, counters or metrics that it needs; None without one."""
    if (library := subject.kernel.library) and optimizer.name != LIBRARY_USE:
        message = say("the code of this {library} library kernel is not yours", library=library)
        return optimizer.silent(SilenceStage.NOT_YOURS, message)
    if subject.total_samples == 0 and optimizer.needs_samples:
        return optimizer.silent(SilenceStage.NO_SAMPLES, say("the report has no stall samples of this kernel"))
    if optimizer.needs_split and not subject.kernel.is_split:
        return optimizer.silent(SilenceStage.NOT_KNOWN, NO_SPLIT)
    if optimizer.is_compiled and find_limiter(subject).kind is LimiterKind.BUILD:
        return optimizer.silent(SilenceStage.GATED, say("{debug} disables it", debug=Code(text="-G")))
    longest = subject.longest
    if optimizer.needs_grid and longest is not None and (longest.grid is None or longest.block is None):
        message = say("the profile does not record the grid and block size of the launch")
        return optimizer.silent(SilenceStage.NOT_KNOWN, message)
    if optimizer.needs_states and subject.total_samples == 0 and not measure_issue_ratio(subject):
        return optimizer.silent(SilenceStage.NOT_KNOWN, NO_STATES)
    lack = find_lack(subject, optimizer.needs_counters, optimizer.needs_metrics)
    return None if lack is None else optimizer.silent(*lack)


def ask(
    name: str, advise: Callable[[Subject], Advice | Silence], subject: Subject, problems: list[Problem]
) -> Advice | Silence:
    """One optimizer's answer; a fault in it is a problem, and the others go on."""
    try:
        return advise(subject)
    except Exception as error:
        # Whatever an optimizer trips over, the reader still gets the advice of the others.
        message = f"the optimizer {name} failed: {type(error).__name__}: {error}"
        remedy = "please report this with the profile"
        problems.append(
            Problem.warning(message, remedy, path=subject.kernel.profile_path, kernel=subject.kernel.mangled_name)
        )
        return Silence(optimizer=name, stage=SilenceStage.FAILED, message=say("{what}", what=message))
