"""Blocks that are worth a try, and the edits of a description that try them. Runs in the process that predicts."""

import re
from collections.abc import Iterator, Sequence
from math import log2

from msgspec.structs import asdict

from gpa_lsp.editor.predicted.results import BlockEdit, PredictedJob, PredictedTrial, TrialsJob, TrialsResult
from gpa_lsp.execution.compiler.model import CompileSettings
from gpa_lsp.execution.launches.launch import LaunchDescription
from gpa_lsp.execution.launches.read_launches import read_launches
from gpa_lsp.execution.prediction.exploration.answer import describe_trial, find_trial
from gpa_lsp.execution.prediction.exploration.explore import Exploration, evaluate_each
from gpa_lsp.execution.prediction.exploration.model import Configuration, RankedConfiguration, build_space, rank
from gpa_lsp.execution.prediction.exploration.subjects import ExplorationSubject, prepare_exploration
from gpa_lsp.execution.prediction.fault_answer import ENDINGS
from gpa_lsp.execution.prediction.launch_sources import LaunchChoice
from gpa_lsp.execution.prediction.model import KernelPrediction, SourcePrediction
from gpa_lsp.foundation.errors import GpaError
from gpa_lsp.foundation.processes.python_children import Step
from gpa_lsp.foundation.processes.worker import Tell
from gpa_lsp.foundation.toml_tables import TomlLines
from gpa_lsp.foundation.work_time import work_time
from gpa_lsp.gpu.device.products import list_products_named

_THREADS = range(64, 1025)
_MOST_LAUNCHES = 8
_KEY = re.compile(r"""(?:^|[\s{,])(?:block|"block"|'block')[ \t]*=[ \t]*""")
_VALUE = re.compile(r"""\[[^\[\]#]*\]|"[^"\\]*"|'[^']*'|[0-9][0-9_]*|0x[0-9a-fA-F_]+""")

Dim3 = tuple[int, int, int]


def find_trials(job: TrialsJob, prediction: SourcePrediction, settings: CompileSettings, tell: Tell) -> TrialsResult:
    """Find the block predicted to be fastest, for each launch without faults that says how many threads it must cover."""
    end_s = work_time() + job.seconds
    trials: list[PredictedTrial] = []
    remarks: list[str] = []
    wanted = [(number, one) for number, one in enumerate(prediction.kernels) if _can_vary(one)]
    for done, (number, kernel) in enumerate(wanted[:_MOST_LAUNCHES]):
        if work_time() > end_s:
            remarks.append(f"time was up before {len(wanted) - done} launches were explored")
            break
        tell(Step(words=f"trying other blocks for {kernel.name}", done=done, total=len(wanted)))
        share_s = (end_s - work_time()) / (len(wanted[:_MOST_LAUNCHES]) - done)
        try:
            trial = _explore(job.base, prediction, number, settings, work_time() + share_s)
        except GpaError as error:
            remarks.append(f"{kernel.name}: {error}")
            continue
        if trial is not None:
            trials.append(trial)
    return TrialsResult(job=job.base, trials=tuple(trials), remarks=tuple(remarks))


def _can_vary(kernel: KernelPrediction) -> bool:
    has_faults = any(fault.kind not in ENDINGS for fault in kernel.faults)
    return kernel.launch.threads is not None and kernel.volumes is not None and not has_faults


def _explore(
    job: PredictedJob, prediction: SourcePrediction, number: int, settings: CompileSettings, end_s: float
) -> PredictedTrial | None:
    kernel = prediction.kernels[number]
    before = prediction.kernels[:number]
    subject = prepare_exploration(
        job.path,
        text=job.text,
        kernel=kernel.mangled_name,
        launches=LaunchChoice(
            path=job.launches_path,
            text=job.launches_text,
            number=1 + sum(one.mangled_name == kernel.mangled_name for one in before),
        ),
        machine=choose_machine(job),
        compute_capability=job.architecture,
        compile_settings=settings,
    )
    statics = next(
        (one.statics for one in prediction.statics.kernels if one.statics.mangled_name == kernel.mangled_name), None
    )
    most = None if statics is None else statics.most_threads
    found = _evaluate(subject, list_blocks(subject, most), end_s)
    trial = find_trial(
        Exploration(kernel=subject.name, device="", mode="", ranked=rank(found), current=subject.current)
    )
    if trial is None:
        return None
    edit = find_block_edit(job.launches_text, kernel.launch, trial.best.configuration.block)
    if edit is None:
        return None
    return PredictedTrial(launch=number, words=describe_trial(trial), **asdict(edit))


def list_blocks(subject: ExplorationSubject, most_threads: int | None) -> tuple[Configuration, ...]:
    """Powers of two along the axes of the launch, those like its own first; its own is the very first.

    Args:
        most_threads: a kernel that was compiled for so many; None without a limit.
    """
    current = subject.current
    space = build_space((), (), threads=_THREADS, dimensions=subject.dimensions)
    blocks = {one.block for one in space if one.threads <= (most_threads or 1024)} - {current.block}
    ordered = sorted(blocks, key=lambda block: (_measure_distance(block, current.block), block))
    return (current, *(Configuration(block=block, fold=current.fold) for block in ordered))


def _measure_distance(block: Dim3, other: Dim3) -> float:
    """Number of doublings and halvings of sizes between two blocks."""
    return sum(abs(log2(one / another)) for one, another in zip(block, other, strict=True))


def _evaluate(
    subject: ExplorationSubject, configurations: Sequence[Configuration], end_s: float
) -> list[RankedConfiguration]:
    """Evaluate configurations until the time is up."""
    found: list[RankedConfiguration] = []
    for configuration in configurations:
        found += evaluate_each(subject.evaluate, [configuration])
        if work_time() > end_s:
            break
    return found


def find_block_edit(text: str, launch: LaunchDescription, block: Dim3) -> BlockEdit | None:
    """The edit that gives a launch another block; None where no edit within one line gives exactly that."""
    launches = read_launches(launch.path, text=text) if launch.path is not None else ()
    number = next((number for number, one in enumerate(launches) if one == launch), None)
    if number is None:
        return None
    line = TomlLines(text).find(("launch", number, "block"))
    old = text.splitlines()[line - 1]
    for start, end in _list_values(old):
        new = _write_block(block)
        changed = text.splitlines(keepends=True)
        changed[line - 1] = changed[line - 1].replace(old, f"{old[:start]}{new}{old[end:]}", 1)
        if _reads_as(launches, number, "".join(changed), block):
            return BlockEdit(line=line, old=old, start=start, end=end, new=new)
    return None


def _list_values(line: str) -> Iterator[tuple[int, int]]:
    for key in _KEY.finditer(line):
        value = _VALUE.match(line, key.end())
        if value is not None:
            yield value.start(), value.end()


def _write_block(block: Dim3) -> str:
    if block[1:] == (1, 1):
        return str(block[0])
    return str(list(block if block[2] != 1 else block[:2]))


def _reads_as(launches: Sequence[LaunchDescription], number: int, text: str, block: Dim3) -> bool:
    """Whether a text describes the same launches but for the block of one, and what follows from that."""
    path = launches[number].path
    assert path is not None
    try:
        after = read_launches(path, text=text)
    except GpaError:
        return False
    others = [one for index, one in enumerate(launches) if index != number]
    return (
        len(after) == len(launches)
        and after[number].block == block
        and after[number].kernel == launches[number].kernel
        and [one for index, one in enumerate(after) if index != number] == others
    )


def choose_machine(job: PredictedJob) -> str | None:
    """The GPU of the settings, else that of the workspace's reports if its figures are known; None for one of the architecture compiled for.

    An architecture in the settings wins over the reports.
    """
    if job.machine is not None or job.measured_on is None:
        return job.machine
    product = next(iter(list_products_named(job.measured_on)), None)
    if product is None or job.architecture not in (None, product.compute_capability):
        return None
    return product.name
