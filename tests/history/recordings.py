"""Measurements as a test writes them down: no profile, no report."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from gpa_lsp.foundation.figures import measure_spread
from gpa_lsp.kernel.names import demangle
from gpa_lsp.profile.launch_configuration import LaunchConfiguration
from gpa_lsp.report.changes import LaunchTimes, ReasonCount
from gpa_lsp.report.history.model import (
    KernelKey,
    Measurement,
    Recording,
    RememberedAdvice,
    RememberedFile,
    RememberedLine,
    RememberedLines,
    Run,
)
from gpa_lsp.report.history.store import History

SECOND_NS = 1_000_000_000
NOON_NS = 1_763_726_400 * SECOND_NS
"""2025-11-21 12:00 UTC."""

HOME = "/project/saxpy.cu"
SOURCE = "first\nsecond\nthird\nfourth"


def make_key(name: str = "_Z5saxpyPf", home: str = HOME, device: str = "NVIDIA GeForce RTX 3070") -> KernelKey:
    return KernelKey(mangled_name=name, home=home, device=device, compute_capability=(8, 6))


def make_recording(
    measured: int = 0,
    *,
    key: KernelKey | None = None,
    identity: str | None = None,
    times_ns: Sequence[float] = (2e6,),
    cycles: Sequence[float] = (),
    samples: Mapping[str, int] | None = None,
    lines: Mapping[int, int] | None = None,
    text: str | None = SOURCE,
    compiled_path: str = "saxpy.cu",
    read: int | None = None,
    session: str | None = None,
    code: str | None = None,
    grid: tuple[int, int, int] = (128, 1, 1),
    profile: str = "/project/run.ncu-rep",
    is_whole: bool = True,
    executed: float | None = 1000.0,
) -> Recording:
    """A measurement ``measured`` seconds after noon. Unless said otherwise, every second is another one, of other code."""
    key = key or make_key()
    reasons = {"long_scoreboard": 70, "wait": 30} if samples is None else samples
    spread = measure_spread(times_ns)
    measurement = Measurement(
        key=key,
        device=key.device,
        name=demangle(key.mangled_name),
        measured_ns=NOON_NS + measured * SECOND_NS,
        profile=profile,
        session=f"session of {measured}" if session is None else session,
        launch=LaunchConfiguration(
            grid=grid, block=(256, 1, 1), registers_per_thread=32, shared_static_bytes=0, shared_dynamic_bytes=None
        ),
        duration_ns=spread.mean if spread else None,
        times=LaunchTimes(cycles=measure_spread(cycles), ns=spread),
        total_samples=sum(reasons.values()),
        latency_samples=sum(reasons.values()) // 2,
        by_reason={name: ReasonCount(all_samples=count, latency_samples=count // 2) for name, count in reasons.items()},
        executed_instructions=executed,
        code_digest=f"code of {measured}" if code is None else code or None,
        advice=(RememberedAdvice(optimizer="loop_unrolling", title="Unroll the loop", speedup=1.5),),
    )
    rows = tuple(
        RememberedLine(
            file=compiled_path,
            line=line,
            samples=count,
            latency_samples=count // 2,
            called_samples=0.0,
            caused_samples=None,
            reason="wait",
        )
        for line, count in (lines if lines is not None else {2: 60, 3: 40}).items()
    )
    read_ns = measurement.measured_ns if read is None else NOON_NS + read * SECOND_NS
    file = RememberedFile(compiled_path=compiled_path, local_path=key.home, text=text, read_ns=read_ns)
    return Recording(
        measurement=measurement,
        identity=f"{measured} {key.mangled_name}" if identity is None else identity,
        content=RememberedLines(files=(file,), lines=rows, is_whole=is_whole),
    )


def open_history(folder: Path) -> History:
    return History(folder / "history.db")


def find_baselines(history: History, key: KernelKey) -> list[Run]:
    """The pinned runs of a kernel: one at most."""
    return [run for run in history.list_runs() if run.is_baseline and run.measurement.key == key]
