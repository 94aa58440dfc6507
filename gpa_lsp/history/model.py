"""What is remembered of a measurement, and what changed since.

These objects cross the pipe from the server's worker process and are there before any report is, so this module imports nothing heavy.
"""

from collections.abc import Mapping

from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.basis.prose import NOTHING, Sentence
from gpa_lsp.report.changes import LaunchTimes, MeasuredWork, PartChange, TimeChange, Verdict, explain_missing_stalls
from gpa_lsp.report.time_course import Commit, TimeCourse

Place = tuple[str, int]
"""File as compiled, and line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelKey:
    """Which measurements are measurements of the same thing.

    Attributes:
        mangled_name: linkage name.
        home: the file the kernel's body is in: its local path, links resolved, where it was found on this machine, else as compiled. For
            code without lines the folder of its profile.
        device: name of the GPU; empty when unknown.
        compute_capability: None when unknown.
    """

    mangled_name: str
    home: str
    device: str
    compute_capability: tuple[int, int] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RememberedLaunch:
    """How the longest launch was configured.

    Attributes:
        grid: blocks in x, y, z; None when unknown.
        block: threads in x, y, z; None when unknown.
        registers_per_thread: None when unknown.
        shared_static_bytes: per block; None when unknown.
        shared_dynamic_bytes: per block; None when unknown.
    """

    grid: tuple[int, int, int] | None
    block: tuple[int, int, int] | None
    registers_per_thread: int | None
    shared_static_bytes: int | None
    shared_dynamic_bytes: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RememberedAdvice:
    """A piece of advice that was given.

    Attributes:
        optimizer: name in the catalogue.
        title: a few words.
        speedup: its estimate, run time before / run time after.
    """

    optimizer: str
    title: str
    speedup: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RememberedPlace:
    """The launches from one place of the host program.

    Attributes:
        name: file and line, or function, by which the places of a measurement differ.
        function: of the frame; empty when unknown.
        launches: how many; None when unknown.
        duration_ns: their mean.
    """

    name: str
    function: str
    launches: int | None
    duration_ns: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """One measurement of one kernel, over all its launches in one profile.

    Attributes:
        key: of which kernel.
        name: readable name.
        measured_ns: when, since 1970.
        profile: path of the profile; None when it came from no file.
        session: what all kernels of one reading of one profile share; measurements of one session are variants, not one another's past.
        launch: configuration of the longest launch.
        duration_ns: mean over launches; None when unknown.
        times: per launch.
        total_samples: over all launches.
        latency_samples: of these, those without issue; None when unknown.
        by_reason: stall reason → all samples and those without issue (None when unknown), most samples first.
        executed_instructions: warp instructions per launch; None where not counted.
        code_digest: of instructions, control codes and launch: equal digests are the same code launched the same way. None where the
            instructions are unknown.
        advice: best first, a few at most.
        commit: what was checked out here when it was measured; None where unknown.
        places: where it was launched from, where that is known and there are several.
    """

    key: KernelKey
    name: str
    measured_ns: int
    profile: str | None
    session: str
    launch: RememberedLaunch
    duration_ns: float | None
    times: LaunchTimes
    total_samples: int
    latency_samples: int | None
    by_reason: Mapping[str, tuple[int, int | None]]
    executed_instructions: float | None
    code_digest: str | None
    advice: tuple[RememberedAdvice, ...]
    commit: Commit | None = None
    places: tuple[RememberedPlace, ...] = ()

    @property
    def work(self) -> MeasuredWork:
        """All that tells what work was measured."""
        return MeasuredWork(
            times=self.times,
            device=self.key.device,
            grid=self.launch.grid,
            block=self.launch.block,
            executed_instructions=self.executed_instructions,
            code_digest=self.code_digest,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A measurement as it is kept.

    Attributes:
        run_id: what commands call it by (``@12``); never given twice.
        measurement: what was measured.
        recorded_ns: when it was first read, since 1970.
        is_baseline: pinned, as what later ones are compared with.
        number: among the runs of its kernel, by the time they were measured; the oldest is 1.
    """

    run_id: int
    measurement: Measurement
    recorded_ns: int
    is_baseline: bool
    number: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class RememberedFile:
    """A file with lines of a kernel.

    Attributes:
        compiled_path: as the compiler wrote it.
        local_path: the file here, links resolved; None when it was not found.
        text: as it was measured; None when nobody knows, or it is not ours to keep.
        read_ns: until when the file is known to have held the text, since 1970: when it was read, or for a copy in the profile, when that was made.
    """

    compiled_path: str
    local_path: str | None
    text: str | None
    read_ns: int

    @property
    def identity(self) -> str:
        """What the same file is called in every measurement."""
        return self.local_path or self.compiled_path


@dataclass(frozen=True, slots=True, kw_only=True)
class RememberedLine:
    """Samples of one line.

    Attributes:
        file: as compiled.
        line: 1-based.
        samples: with this line anywhere in their inline chain.
        latency_samples: of these, without issue; None when unknown.
        called_samples: estimate for functions called from here, not contained in ``samples``.
        caused_samples: stalls that would go if this line were free, wherever they were taken; None where nobody was blamed.
        reason: most frequent reason among ``samples``; empty without samples.
    """

    file: str
    line: int
    samples: int
    latency_samples: int | None
    called_samples: float
    caused_samples: float | None
    reason: str

    @property
    def cost_samples(self) -> float:
        """With everything inlined into the line and called from it."""
        return self.samples + self.called_samples


@dataclass(frozen=True, slots=True, kw_only=True)
class RememberedLines:
    """The hottest lines of a measurement and the files they are in.

    Attributes:
        files: those of the lines, and the one of the kernel's body.
        lines: hottest first.
        is_whole: every line with samples is among them.
    """

    files: tuple[RememberedFile, ...]
    lines: tuple[RememberedLine, ...]
    is_whole: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """A measurement on its way into the history.

    Attributes:
        measurement: what was measured.
        identity: the same for every reading of the same measurement.
        content: its lines and files.
    """

    measurement: Measurement
    identity: str
    content: RememberedLines


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceChange:
    """What became of the launches from one place.

    Attributes:
        name: of the place, as it is now, or as it was where nothing is launched from it any more.
        before_ns: mean time; None where nothing was launched from it.
        after_ns: the same, of the later run.
    """

    name: str
    before_ns: float | None
    after_ns: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunChange:
    """Two measurements of one kernel.

    Attributes:
        before: the earlier one.
        after: the later one.
        verdict: what became of the time.
        time: None when one of the two has none, or they did not do the same work.
        note: why the two are not compared, or what may differ besides the code; empty where nothing is known to.
        instructions_ratio: executed warp instructions after / before; None where not counted.
        reasons: by stall reason, largest change first; empty where one of the two has no samples.
        lines: line after → what became of it, under the file's local path where it has one; only lines one of the two keeps samples of.
            Empty, as ``gone`` is, where one of the two has no samples, or they did not do the same work.
        gone: lines before that are not there any more, largest first.
        places: where it was launched from, and what became of the launches from there; empty where one of the two knows of one place only.
    """

    before: Run
    after: Run
    verdict: Verdict
    time: TimeChange | None
    instructions_ratio: float | None
    reasons: tuple[PartChange, ...]
    lines: Mapping[Place, PartChange]
    gone: tuple[PartChange, ...]
    places: tuple[PlaceChange, ...] = ()
    note: Sentence = NOTHING

    @property
    def no_stalls(self) -> Sentence:
        """Why nothing is said of stalls; empty where both have samples."""
        return explain_missing_stalls(self.before.measurement.total_samples, self.after.measurement.total_samples)


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelHistory:
    """What the editor keeps of a kernel's past.

    Attributes:
        run: the measurement that is shown.
        previous: since the last one before it on the same GPU that did the same work, or where none did, since the last one; None when there is none.
        baseline: since the pinned one; None when none is pinned, or it is this one.
        run_count: measurements of this kernel on this GPU, this one included.
        other_device: the GPU of the latest earlier measurement, where there is none on this one; None otherwise.
        course: the last runs up to this one; None where this is the first.
    """

    run: Run
    previous: RunChange | None = None
    baseline: RunChange | None = None
    run_count: int = 1
    other_device: str | None = None
    course: TimeCourse | None = None

    @property
    def is_baseline(self) -> bool:
        """What is shown is itself the pinned measurement."""
        return self.run.is_baseline

    def find_line_change(self, place: Place) -> PartChange | None:
        """What became of a line since the last measurement; None when it is not known."""
        return None if self.previous is None else self.previous.lines.get(place)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFilter:
    """Which runs to list; the default lists all.

    Attributes:
        paths: home or profile is one of these, or below it; empty for any.
        name: part of the kernel's name; None for any.
    """

    paths: tuple[str, ...] = ()
    name: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryLimits:
    """How much is kept.

    Attributes:
        database_bytes: of the whole file; pinned runs are kept even beyond it.
        runs_per_kernel: of one kernel on one GPU.
        lines_per_run: hottest lines of one measurement.
        source_bytes: longest source text that is kept.
    """

    database_bytes: int = 64 << 20
    runs_per_kernel: int = 200
    lines_per_run: int = 400
    source_bytes: int = 2 << 20


DEFAULT_LIMITS = HistoryLimits()
