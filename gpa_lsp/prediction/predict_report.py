"""From a report to predictions that stand beside what was measured: :func:`predict_report`. It tells all of a launch but its arguments."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from gpa_lsp.analyses.answers import Answer
from gpa_lsp.basis.errors import InputError, Problem, spare_others
from gpa_lsp.basis.numbers import format_count
from gpa_lsp.compiler.builds import build_unit
from gpa_lsp.device.products import find_product_of, note_choice
from gpa_lsp.emulator.model import TraceSink
from gpa_lsp.launches.read_launches import find_launch_file, read_launches
from gpa_lsp.native.shared_library import prepare_core
from gpa_lsp.prediction.compare_counts import compare_counts
from gpa_lsp.prediction.comparing import compare_launches
from gpa_lsp.prediction.emulated_counts import count_launch
from gpa_lsp.prediction.launch_sources import EVERY_LAUNCH, LaunchChoice
from gpa_lsp.prediction.launch_subject import LaunchSubject
from gpa_lsp.prediction.measured_answer import answer_measured
from gpa_lsp.prediction.measured_model import CountComparison
from gpa_lsp.prediction.model import DEFAULT_PREDICTION, KernelPrediction, PredictionSettings, SourcePrediction
from gpa_lsp.prediction.predict import Progress
from gpa_lsp.prediction.predict_launch import predict_launch
from gpa_lsp.prediction.report_launches import MeasuredLaunch, explain_no_code, list_measured_launches
from gpa_lsp.prediction.static_source import SourceStatics, examine_unit
from gpa_lsp.profile.model import Profile
from gpa_lsp.profile.read import read_profile
from gpa_lsp.report.names import demangle
from gpa_lsp.rows.join import join_profile
from gpa_lsp.traces.request_counts import RequestCollector


def predict_report(
    path: Path,
    *,
    kernel: str | None = None,
    launches: LaunchChoice = EVERY_LAUNCH,
    settings: PredictionSettings = DEFAULT_PREDICTION,
    sinks: Iterable[TraceSink] = (),
    progress: Progress | None = None,
) -> SourcePrediction:
    """Take the code out of a report, emulate its launches, and lay what each access did over what was measured of it.

    Args:
        path: of the report.
        kernel: only the kernel of this name, or else those whose name contains it; None for all.
        launches: the description with the arguments, and which of the launches: those that are alike count as one.
        settings: how much it may cost; without a GPU in it, it is for the one that was measured on.
        sinks: get the traces as well, of one launch after the other.
        progress: told how far it is.

    Raises:
        InputError: the report or the description cannot be read, none of its kernels has the name, or it holds the PTX of none of them.
    """
    profile = read_profile(path)
    described = launches.path or find_launch_file(path)
    given = () if described is None else read_launches(described, text=launches.text)
    problems = [Problem.note(note) for note in note_choice(settings.machine)]
    found = list_measured_launches(profile, kernel, given, problems)
    if not found:
        raise explain_no_code(path, problems)
    chosen = _choose([one for one in found if one.is_described], launches, described)
    work = _ReportWork(profile, settings, tuple(sinks), problems)
    predictions = []
    for number, one in enumerate(chosen):
        name = demangle(one.launch.mangled_name)
        if progress is not None:
            progress(f"emulating {name}", number, len(chosen))
        with spare_others(f"predicting a launch of {name}", problems, kernel=one.launch.mangled_name):
            predictions.append(work.predict(one, name))
    undescribed = dict.fromkeys(demangle(one.launch.mangled_name) for one in found if not one.is_described)
    return SourcePrediction(
        path=path,
        launches_path=described,
        statics=work.examine((*chosen, *found)[0]),
        kernels=tuple(predictions),
        undescribed=tuple(undescribed),
        problems=tuple(problems),
        comparisons=compare_launches(predictions),
    )


def _choose(found: list[MeasuredLaunch], choice: LaunchChoice, described: Path | None) -> Sequence[MeasuredLaunch]:
    if choice.number is not None:
        if not 1 <= choice.number <= len(found):
            remedy = f"give a number from 1 to {len(found)}" if found else "describe a launch's arguments"
            raise InputError(f"there is no launch {choice.number}", path=described, remedy=remedy)
        return found[choice.number - 1 : choice.number]
    if choice.is_single and len(found) > 1:
        message = f"{format_count(len(found))} launches match, and one is asked for"
        raise InputError(message, path=described, remedy="choose one with --kernel and --launch")
    return found


class _ReportWork:
    """What all launches of a report have in common."""

    def __init__(
        self, profile: Profile, settings: PredictionSettings, sinks: tuple[TraceSink, ...], problems: list[Problem]
    ) -> None:
        self._profile = profile
        self._settings = settings
        self._sinks = sinks
        self._problems = problems
        self._examined: dict[str, SourceStatics] = {}

    def examine(self, one: MeasuredLaunch) -> SourceStatics:
        """What the code of a launch says without being run."""
        path = (self._profile.path or Path()).absolute()
        name = one.launch.mangled_name
        if name not in self._examined:
            unit = build_unit(one.code.cubin, one.code.unit.text, one.code.cubin.sm)
            self._examined[name] = examine_unit(unit, path=path, text="", kernel=name)
        return self._examined[name]

    def predict(self, one: MeasuredLaunch, name: str) -> KernelPrediction:
        """One launch, with what was measured of it."""
        statics = self.examine(one)
        subject = LaunchSubject(
            module=one.code.module,
            launch=one.description,
            kernel=one.code.function.name,
            name=name,
            statics=next(
                (k.statics for k in statics.kernels if k.statics.mangled_name == one.code.function.name), None
            ),
            compute_capability=one.launch.device.compute_capability or statics.unit.compute_capability,
        )
        settings, collector = self._settings, RequestCollector()
        product = find_product_of(one.launch.device)
        if settings.machine is None and product is not None:
            settings = replace(settings, machine=product.name)
        prepare_core()
        predicted = predict_launch(subject, settings, sinks=(*self._sinks, collector))
        problems: list[Problem] = []
        with spare_others("laying it over what was measured", problems, kernel=subject.kernel):
            compared = self._compare(one, subject, predicted, collector, settings)
            predicted = replace(predicted, measured=compared, answers=_put_behind_faults(predicted.answers, compared))
        return replace(predicted, problems=(*predicted.problems, *problems))

    def _compare(
        self,
        one: MeasuredLaunch,
        subject: LaunchSubject,
        predicted: KernelPrediction,
        collector: RequestCollector,
        settings: PredictionSettings,
    ) -> CountComparison:
        index = one.launch.index
        kernels, problems = join_profile(self._profile, kernel_filter=lambda launch: launch.index == index)
        if not kernels:
            return CountComparison(launch=index, why=next((one.message for one in problems), "its code cannot be read"))
        if not (kernels[0].rows.executions >= 0).any():
            why = "the report does not count executions per instruction; record it with --set full, or --section SourceCounters"
            return CountComparison(launch=index, why=why)
        emulated = count_launch(subject, predicted, collector, settings)
        if emulated is None:
            why = "the emulation did not come to an end; give it more time (--seconds) or memory (--memory)"
            return CountComparison(launch=index, why=why)
        return compare_counts(kernels[0], one.code.unit, emulated)


def _put_behind_faults(answers: tuple[Answer, ...], compared: CountComparison) -> tuple[Answer, ...]:
    return (*answers[:1], answer_measured(compared), *answers[1:])
