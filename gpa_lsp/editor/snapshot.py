"""The :class:`Snapshot`: everything known at one moment. Handlers read it and never change it; loading a profile makes a new one.

These objects cross the pipe from the worker process, so they hold nothing that cannot be pickled, and this module imports nothing heavy.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from gpa_lsp.foundation.numbers import format_count, format_percent
from gpa_lsp.foundation.records import SharedFacts
from gpa_lsp.kernel.names import shorten_distinctly
from gpa_lsp.report.history.model import KernelHistory

if TYPE_CHECKING:
    from gpa_lsp.diagnosis.advice.model import Advice
    from gpa_lsp.foundation.locations import Frame
    from gpa_lsp.report.fixes.try_advice import TriedFix
    from gpa_lsp.report.kernel_lines import LineCauses
    from gpa_lsp.report.measured_files import MeasuredFile
    from gpa_lsp.report.model import InstructionColumns, KernelReport


class KernelBrief(Struct, frozen=True, kw_only=True):
    """Words about a kernel; each is empty where there is nothing to say."""

    time: str  # it took
    limit: str  # what limits it, or what most samples are stalled on
    suggestion: str  # what to do first
    places: str  # that launched it, else how many launch contexts there are
    verdict: str  # what limits it, in a sentence
    first: str  # what to do first, in a sentence with its gain
    ceiling: str  # how close it is to its nearest ceiling
    simulated: str  # what is to be thought of samples that a model says
    doubts: str  # what keeps its samples, or what is made of them, from being whole


def make_brief(report: "KernelReport") -> KernelBrief:
    """The words about a kernel."""
    # They need numpy, which the answer to initialize must not wait for.
    from gpa_lsp.document.advice_words import (
        describe_limit,
        describe_limit_briefly,
        describe_priced,
        find_first_suggestion,
        label_suggestion,
    )
    from gpa_lsp.document.context_words import count_contexts
    from gpa_lsp.document.launch_place_words import describe_places_briefly
    from gpa_lsp.document.roofline_text import describe_nearest_roof
    from gpa_lsp.document.sampling_words import describe_simulation, describe_time
    from gpa_lsp.report.launch_places import list_launch_places

    time = ""
    if report.duration_ns is not None:
        launches = f" × {format_count(report.launch_count)}" if report.launch_count not in (1, None) else ""
        time = f"{describe_time(report, report.duration_ns)}{launches}"
    first = find_first_suggestion(report)
    return KernelBrief(
        time=time,
        limit=describe_limit_briefly(report) or ("" if report.lacks_sass and first else _describe_top_reason(report)),
        suggestion="" if first is None else label_suggestion(first),
        places=describe_places_briefly(list_launch_places(report)) or count_contexts(report),
        verdict="" if report.limiter is None else describe_limit(report),
        first="" if first is None or report.limiter is None else describe_priced(first),
        ceiling=describe_nearest_roof(report),
        simulated=describe_simulation(report),
        doubts="; ".join(_list_doubts(report)),
    )


def _list_doubts(report: "KernelReport") -> Iterator[str]:
    from gpa_lsp.document.advice_words import NO_SASS
    from gpa_lsp.document.sampling_words import describe_dropped

    if report.samples_truncated:
        yield "the sampling buffer was full, so only the first part of the run was sampled"
    if report.sampling.dropped_samples:
        yield describe_dropped(report)
    if report.lacks_sass:
        yield f"{NO_SASS}, so causes and most advice are missing"


def _describe_top_reason(report: "KernelReport") -> str:
    """Share of the stall reason with most samples, where no limiter is known; empty without samples."""
    from gpa_lsp.document.findings import choose_reasons

    reasons = choose_reasons(report.by_reason)
    if not reasons:
        return ""
    name = reasons[0].name
    return f"{format_percent(report.by_reason[name].all_samples / report.total_samples)} {name}"


class MeasuredKernel(Struct, SharedFacts, frozen=True, kw_only=True, dict=True, weakref=True):
    """A kernel with what the editor asks for beside its report."""

    report: "KernelReport"  # the kernel's report, without embedded sources (they are in the files)
    measured_ns: int  # when, since 1970; the profile's own modification time where it does not say
    # (file as compiled, line) → indices into the instruction columns, most samples first, a few at most. Every frame of an inline chain counts.
    hottest: Mapping[tuple[str, int], tuple[int, ...]]
    # file as compiled, and the lines of it the kernel's own body has instructions on, ascending; None without lines
    body: tuple[str, tuple[int, ...]] | None
    brief: "KernelBrief"  # what a lens says of it
    # (file as compiled, line) → what it is stalled on and what is stalled on it; empty where nothing was blamed
    causes: Mapping[tuple[str, int], "LineCauses"] = field(default_factory=dict)
    # (file as compiled, line) → advice that names it, as indices into the report's, best first
    remedies: Mapping[tuple[str, int], tuple[int, ...]] = field(default_factory=dict)
    history: KernelHistory | None = None  # what changed since earlier measurements; None where nothing is remembered
    # (file as compiled, line) → the line of another function that most of what the line calls was sampled on, where that is known
    callees: Mapping[tuple[str, int], tuple[str, int]] = field(default_factory=dict)
    # the report before its advice was held to what its edits compile to; None where nothing was compiled
    untried: "KernelReport | None" = None

    @property
    def identity(self) -> tuple[str, int, float]:
        """A measurement, which copies of its file have as well."""
        return self.report.mangled_name, self.measured_ns, self.report.total_duration_ns

    @property
    def origin(self) -> "KernelReport":
        """Report as it was read, the same object however often history and advice of the kernel are replaced."""
        return self.untried or self.report

    @property
    def advice(self) -> "tuple[Advice, ...]":
        """The kernel's advice, best first."""
        return () if self.report.advice is None else self.report.advice.advice


def measure_kernel(kernel: "KernelReport", profile_modified_ns: int) -> MeasuredKernel:
    """Make what the server keeps of a kernel; called in the worker process, so that it delays no answer."""
    from gpa_lsp.report.kernel_lines import find_body, find_causes, find_hottest, find_remedies
    from gpa_lsp.report.measured_files import read_measured_ns

    slim = replace(kernel, embedded_sources={}, source_sizes={}, instructions=_share_frames(kernel.instructions))
    return MeasuredKernel(
        report=slim,
        measured_ns=read_measured_ns(kernel, profile_modified_ns),
        hottest=find_hottest(kernel.instructions),
        body=find_body(kernel),
        brief=make_brief(kernel),
        causes=find_causes(kernel),
        remedies=find_remedies(kernel),
    )


def hold_kernel(kernel: MeasuredKernel, tried: "Sequence[TriedFix]") -> MeasuredKernel:
    """A kernel whose advice promises only what its edits bear out; the same one where they say nothing new. Takes longer than a keystroke may."""
    from gpa_lsp.report.fixes.try_advice import hold_to_witnesses
    from gpa_lsp.report.kernel_lines import find_remedies

    report = hold_to_witnesses(kernel.origin, tried)
    if report.advice == kernel.report.advice:
        return kernel
    return replace(
        kernel, report=report, untried=kernel.origin, brief=make_brief(report), remedies=find_remedies(report)
    )


def _share_frames(instructions: "InstructionColumns") -> "InstructionColumns":
    """The same columns with equal frames being one object: a tenth of the bytes in the pipe, and of the time to unpickle them."""
    known: dict[Frame, Frame] = {}
    chains = (tuple(known.setdefault(frame, frame) for frame in chain) for chain in instructions.chains)
    return replace(instructions, chains=tuple(chains))


class LoadedProfile(Struct, frozen=True, kw_only=True):
    """One profile as it was read."""

    path: Path  # the file
    files: Mapping[str, "MeasuredFile"]  # its sources found on this machine, by path as compiled
    kernels: tuple[MeasuredKernel, ...]  # in report order
    size_bytes: int = 0  # what keeping it costs, in proportion; 0 when nobody counted

    def list_missing(self) -> frozenset[str]:
        """Files as compiled that kernels of this profile are written in and that were not found here."""
        return frozenset(kernel.body[0] for kernel in self.kernels if kernel.body and kernel.body[0] not in self.files)


class VisibleKernel(Struct, frozen=True, kw_only=True):
    """A kernel that is shown."""

    name: str  # short, and different for different kernels that are shown
    profile: LoadedProfile  # where it comes from
    kernel: MeasuredKernel  # what was measured
    measurement_count: int = 1  # of this kernel, in all profiles; copies of one file count once


class Choice(Struct, frozen=True):
    """A measurement of a kernel that somebody chose to see."""

    profile: Path  # where it comes from
    newest_ns: int  # of the measurements of the kernel at that moment: a newer one is shown instead


class Snapshot(Struct, frozen=True, kw_only=True):
    """All loaded profiles, and which of their kernels are shown: the newest measurement of each, or the one that was chosen."""

    generation: int = 0  # grows with every snapshot
    profiles: Mapping[Path, LoadedProfile] = field(default_factory=dict)  # by path
    visible: tuple[VisibleKernel, ...] = ()  # shown kernels, longest first
    # local path → shown kernels with lines in that file, longest first
    by_file: Mapping[str, tuple[VisibleKernel, ...]] = field(default_factory=dict)
    unreadable: frozenset[Path] = frozenset()  # profiles that were found and could not be read
    choices: Mapping[str, Choice] = field(default_factory=dict)  # by mangled name of the kernel

    def find_gpu(self) -> str | None:
        """Name of the GPU that was measured on last, as the driver reports it; None where nothing was, or nobody says."""
        measured = (shown for shown in self.visible if not shown.kernel.report.is_simulated)
        newest = max(measured, key=lambda shown: shown.kernel.measured_ns, default=None)
        return None if newest is None else newest.kernel.report.device.name

    def with_profiles(self, profiles: Iterable[LoadedProfile]) -> "Snapshot":
        """Return a snapshot with profiles added, or read again."""
        return self._rebuild({**self.profiles, **{profile.path: profile for profile in profiles}})

    def without_profiles(self, paths: Iterable[Path]) -> "Snapshot":
        """Return a snapshot without some profiles."""
        gone = set(paths)
        return self._rebuild({path: profile for path, profile in self.profiles.items() if path not in gone})

    def with_unreadable(self, paths: Iterable[Path]) -> "Snapshot":
        """Return a snapshot with these profiles, and no others, counted as unreadable, and without what was read of them before."""
        unreadable = frozenset(paths)
        left = self.without_profiles(unreadable) if unreadable & self.profiles.keys() else self
        return replace(left, generation=self.generation + 1, unreadable=unreadable)

    def list_measurements(self, mangled_name: str) -> "dict[Path, tuple[LoadedProfile, MeasuredKernel]]":
        """The measurements of a kernel by the path of their profile, newest first; of copies of one file the first."""
        every = [
            (profile, kernel)
            for _, profile in sorted(self.profiles.items())
            for kernel in profile.kernels
            if kernel.report.mangled_name == mangled_name
        ]
        found: dict[int, tuple[LoadedProfile, MeasuredKernel]] = {}
        for profile, kernel in sorted(every, key=lambda one: _rank(one[1]), reverse=True):
            found.setdefault(kernel.measured_ns, (profile, kernel))
        return {profile.path: (profile, kernel) for profile, kernel in found.values()}

    def with_choice(self, mangled_name: str, profile: Path) -> "Snapshot":
        """Return a snapshot that shows the measurement of a kernel in one profile until there is a newer one."""
        newest_ns = max((kernel.measured_ns for _, kernel in self.list_measurements(mangled_name).values()), default=0)
        choices = {**self.choices, mangled_name: Choice(profile, newest_ns)}
        return replace(self, choices=choices)._rebuild(self.profiles)

    def with_kernels(self, change: Callable[[MeasuredKernel], MeasuredKernel]) -> "Snapshot":
        """Return a snapshot with what a function makes of its kernels."""
        profiles = {
            path: replace(profile, kernels=tuple(change(kernel) for kernel in profile.kernels))
            for path, profile in self.profiles.items()
        }
        return self._rebuild(profiles)

    def _rebuild(self, profiles: Mapping[Path, LoadedProfile]) -> "Snapshot":
        visible = _choose_shown(profiles.values(), self.choices)
        by_file: dict[str, list[VisibleKernel]] = {}
        for shown in visible:
            compiled_paths = {path for path, _ in (*shown.kernel.hottest, *shown.kernel.causes)}
            compiled_paths |= {one.file for one in shown.kernel.report.code_findings or () if one.file is not None}
            for local_path in sorted(
                {shown.profile.files[path].local_path for path in compiled_paths if path in shown.profile.files}
            ):
                by_file.setdefault(local_path, []).append(shown)
        return Snapshot(
            generation=self.generation + 1,
            profiles=profiles,
            visible=visible,
            by_file={path: tuple(kernels) for path, kernels in by_file.items()},
            unreadable=self.unreadable - profiles.keys(),
            choices=self.choices,
        )


_Measurement = tuple[LoadedProfile, MeasuredKernel]


def _choose_shown(profiles: Iterable[LoadedProfile], choices: Mapping[str, Choice]) -> tuple[VisibleKernel, ...]:
    """Choose the measurement of each kernel: the user's choice, else the newest, else the newest simulation. Kernels of one name whose
    bodies stand in different files are different kernels.
    """
    newest: dict[tuple[str, str | None], _Measurement] = {}
    chosen: dict[tuple[str, str | None], _Measurement] = {}
    moments: dict[tuple[str, str | None], set[int]] = {}
    for profile in sorted(profiles, key=lambda profile: str(profile.path)):
        for kernel in profile.kernels:
            key = (kernel.report.mangled_name, _find_home(profile, kernel))
            known = newest.get(key)
            if known is None:
                newest[key], moments[key] = (profile, kernel), {kernel.measured_ns}
            else:
                moments[key].add(kernel.measured_ns)
                if _rank(kernel) > _rank(known[1]):
                    newest[key] = (profile, kernel)
            choice = choices.get(key[0])
            if choice is not None and choice.profile == profile.path:
                chosen.setdefault(key, (profile, kernel))
    held = {key: one for key, one in chosen.items() if max(moments[key]) <= choices[key[0]].newest_ns}
    shown = sorted(
        ((held.get(key, one), len(moments[key])) for key, one in newest.items()), key=lambda one: one[0][1].report.rank
    )
    names = shorten_distinctly(kernel.report.name for (_, kernel), _ in shown)
    return tuple(
        VisibleKernel(
            name=kernel.report.mark(names[kernel.report.name]), profile=profile, kernel=kernel, measurement_count=count
        )
        for (profile, kernel), count in shown
    )


def _rank(kernel: MeasuredKernel) -> tuple[bool, int]:
    return not kernel.report.is_simulated, kernel.measured_ns


def _find_home(profile: LoadedProfile, kernel: MeasuredKernel) -> str | None:
    if kernel.body is None:
        return None
    compiled_path = kernel.body[0]
    return profile.files[compiled_path].local_path if compiled_path in profile.files else compiled_path
