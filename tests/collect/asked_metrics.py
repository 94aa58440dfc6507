"""Metrics the package reads: those it asks a launch for while it works, and those whose names stand in it.

Names are often put together when they are needed (a unit, a counter, a suffix), so that no search finds them. Therefore the whole flow runs on
kernels whose launch writes down what it is asked for. What it is asked for depends on what it answers, so it answers in several ways: nothing,
everything, what the recipe brings, and parts that differ from one attempt to the next.
"""

import ast
import tomllib
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from msgspec.structs import replace

import gpa_lsp
from gpa_lsp.diagnosis.advice.advise import advise_kernel
from gpa_lsp.diagnosis.analyses.analyse_kernel import analyse_kernel
from gpa_lsp.diagnosis.analyses.model import KernelAnalyses
from gpa_lsp.diagnosis.analyses.questions.speed_of_light import RECOMPUTED
from gpa_lsp.diagnosis.analyses.roofline.place import place_kernel
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.diagnosis.blame.blame import blame_kernel
from gpa_lsp.gpu.arch.lookup import list_architectures
from gpa_lsp.kernel.model import Kernel
from gpa_lsp.kernel.place import COUNTERS, read_counters
from gpa_lsp.profile.collect.recipe import read_metrics, read_roofline_sections, read_sections
from gpa_lsp.profile.model import Launch, Metric, MetricScalar
from tests.rows.written import write_kernel

_ROOT = Path(gpa_lsp.__file__).parent

TEXT = """
    B-:R-:W0:-:S02  S2R R0, SR_TID.X                            # k.cu:1 | selected=9 | x=100
    B-:R-:W5:-:S02  LDC R1, c[0x0][0x28]                        # k.cu:1 | selected=9 imc_miss=5 | x=100
    B0:R-:W1:-:S04  LDG.E R2, [R4.64]                           # k.cu:2 | short_scoreboard=9 lg_throttle=20 | x=100
    B1:R0:W-:-:S04  STS [R2], R3                                # k.cu:3 | long_scoreboard=80 mio_throttle=20 | x=100
    B-:R-:W2:-:S04  LDS R6, [R2]                                # k.cu:4 | barrier=20 | x=100
    B-:R-:W3:-:S04  LDL R7, [R1]                                # k.cu:5 | selected=9 | x=100
    B-:R-:W4:-:S04  TEX R8, R9, R10, 0x0, 0x5a, 2D              # k.cu:6 | tex_throttle=9 | x=100
    B2:R-:W-:-:S04  FFMA R6, R6, R6, R6                         # k.cu:7 | short_scoreboard=30 | x=100
    B-:R-:W-:-:S04  HFMA2 R11, R11, R11, R11                    # k.cu:7 | math_pipe_throttle=9 | x=100
    B-:R-:W4:-:S04  DFMA R12, R12, R12, R12                     # k.cu:8 | math_pipe_throttle=30 | x=100
    B-:R-:W4:-:S04  MUFU.RCP R13, R13                           # k.cu:8 | mio_throttle=9 | x=100
    B-:R-:W-:-:S04  IMAD R14, R14, R14, R14                     # k.cu:9 | wait=20 not_selected=10 | x=100
    B-:R-:W-:-:S04  HMMA.16816.F32 R20, R24, R28, R20           # k.cu:10 | math_pipe_throttle=9 | x=100
    B3:R1:W-:-:S04  ATOMG.E.ADD.STRONG.GPU R2, [R4.64], R7      # k.cu:11 | long_scoreboard=20 | x=100
    B-:R1:W-:-:S04  STG.E [R4.64], R6                           # k.cu:11 | drain=5 membar=5 | x=100
    B-:R-:W-:-:S05  BAR.SYNC 0x0                                # k.cu:12 | barrier=40 | x=100
    B-:R-:W-:-:S05  EXIT                                        # k.cu:13 | drain=9 branch_resolving=9 sleeping=3 misc=1 | x=100
"""
"""A kernel with an instruction for every unit and samples for nearly every reason."""

Answer = Callable[[str], MetricScalar | None]


class AskedMetrics(Mapping[str, Metric]):
    """Metrics of a launch that write down which of them are asked for.

    Args:
        given: those it has.
        answer: the value of one it has not; None where it has none at all.
        listed: names that are found by looking through all of them, beside the given.
    """

    def __init__(self, given: Mapping[str, Metric], answer: Answer, listed: Iterable[str] = ()) -> None:
        self._given = given
        self._answer = answer
        self._listed = tuple(listed)
        self.asked: set[str] = set()

    def __getitem__(self, name: str) -> Metric:
        self.asked.add(name)
        if name in self._given:
            return self._given[name]
        value = self._answer(name)
        if value is None:
            raise KeyError(name)
        return Metric(name=name, value=value)

    def __iter__(self) -> Iterator[str]:
        return iter((*self._given, *self._listed))

    def __len__(self) -> int:
        return len(self._given) + len(self._listed)


_TIME = ("gpu__time_duration.sum", "smsp__cycles_elapsed.avg.per_second")
"""Without a time and cycles little is asked."""
_BREAKDOWN = "breakdown:"
_SUFFIX = ".avg.pct_of_peak_sustained_elapsed"


def _answer_nothing(name: str) -> None:
    return None


def _answer_time(name: str) -> float | None:
    return 1e6 if name in _TIME else None


def _answer_part(attempt: int, percent: int, *, by_counter: bool = False) -> Answer:
    """The same part of all names in every run, another one in each attempt; and always the time.

    Args:
        attempt: any number.
        percent: of the names that are answered.
        by_counter: all forms of a counter, or none.
    """

    def answer(name: str) -> MetricScalar | None:
        known_by = name.split(".", maxsplit=1)[0] if by_counter else name
        if name not in _TIME and zlib.crc32(f"{attempt} {known_by}".encode()) % 100 >= percent:
            return None
        return ",".join(f"{part}{_SUFFIX}" for part in RECOMPUTED) if name.startswith(_BREAKDOWN) else 40.0

    return answer


def list_collected(capability: tuple[int, int], left_out: str = "", *, has_rooflines: bool = True) -> frozenset[str]:
    """Metrics the recipe brings, as far as it says so.

    Args:
        capability: of the GPU.
        left_out: a section that was not collected; ``--metrics`` for the names beside them.
        has_rooflines: with the sections of ``--roofline``.
    """
    brought = set() if left_out == _METRICS else set(read_metrics())
    for section in (*read_sections(), *(read_roofline_sections() if has_rooflines else ())):
        if section.name != left_out:
            brought |= {*section.reads}
            brought |= {name for one in section.sometimes if one.holds(_VERSION, capability) for name in one.metrics}
    return frozenset(brought)


def _answer_collected(brought: frozenset[str]) -> Answer:
    everything = _answer_part(0, 100)
    return lambda name: everything(name) if name in brought or name in _TIME else None


_METRICS = "--metrics"
_VERSION = (2026, 2)
_LEFT_OUT = ("", _METRICS, *(section.name for section in (*read_sections(), *read_roofline_sections())))
_CLOSELY_WATCHED = ((7, 0), (9, 0), (12, 0))


def list_answers(capability: tuple[int, int]) -> Iterator[Answer]:
    """The ways in which launches on a compute capability answer."""
    yield from (_answer_nothing, _answer_time, _answer_part(0, 100), _answer_collected(list_collected(capability)))
    if capability in _CLOSELY_WATCHED:
        yield from (_answer_collected(list_collected(capability, left_out)) for left_out in _LEFT_OUT)
        yield from (_answer_part(attempt, percent) for percent in (10, 50, 90) for attempt in range(4))
        yield from (_answer_part(attempt, 75, by_counter=True) for attempt in range(8))


@dataclass(frozen=True)
class Watched:
    """A kernel that was judged.

    Attributes:
        capability: of its GPU.
        asked: metrics that were asked for, without those that a launch itself lists as parts of a throughput.
        analyses: what was said.
    """

    capability: tuple[int, int] | None
    asked: frozenset[str]
    analyses: KernelAnalyses


def watch_kernel(kernel: Kernel, answer: Answer | None = None, listed: Iterable[str] = ()) -> Watched:
    """Judge a kernel as the package does.

    Args:
        kernel: joined.
        answer: gives the launches' metrics in place of their own; None leaves them as they are.
        listed: names that are found by looking through the launches' metrics.
    """
    watched = [
        AskedMetrics(launch.metrics, _answer_nothing) if answer is None else AskedMetrics({}, answer, listed)
        for launch in kernel.launches
    ]
    launches = tuple(replace(launch, metrics=metrics) for launch, metrics in zip(kernel.launches, watched, strict=True))
    kernel = replace(kernel, launches=launches)
    for metrics in watched:
        read_counters(metrics)
    blame = blame_kernel(kernel) if kernel.total_samples else None
    roofline = place_kernel(kernel)
    analyses = analyse_kernel(Subject(kernel, blame, roofline))
    assert analyses.problems == ()
    if blame is not None:
        advise_kernel(Subject(kernel, blame, roofline=roofline))
    parts = {name for launch in kernel.launches for name in _list_parts(launch)}
    asked = frozenset().union(*(metrics.asked for metrics in watched)) - parts
    return Watched(capability=kernel.device.compute_capability, asked=asked, analyses=analyses)


def _list_parts(launch: Launch) -> Iterator[str]:
    """Parts of throughputs that the launch lists; which there are is its own affair."""
    for name in ("sm__throughput", "gpu__compute_memory_throughput"):
        listed = launch.metrics.get(f"{_BREAKDOWN}{name}{_SUFFIX}")
        if listed is not None and isinstance(listed.value, str):
            yield from (part.strip() for part in listed.value.split(","))


@cache
def list_watched() -> tuple[Watched, ...]:
    """A kernel on every architecture whose launch answers in every way."""
    return tuple(
        watch_kernel(write_kernel(TEXT, compute_capability=capability), answer)
        for capability in list_architectures()
        for answer in list_answers(capability)
    )


def watch_collected(capability: tuple[int, int], *, has_rooflines: bool) -> Watched:
    """A kernel whose launch has what the recipe brings, counters by instruction included."""
    brought = list_collected(capability, has_rooflines=has_rooflines)
    counters = " ".join(f"{name}=3200" for name, metrics in COUNTERS.items() if metrics[0] in brought)
    text = TEXT.replace("x=100", f"x=100 {counters}")
    return watch_kernel(write_kernel(text, compute_capability=capability), _answer_collected(brought), brought)


def find_texts() -> Iterator[str]:
    """Every text in the package's code and tables, but for those of what is collected."""
    for path in sorted(_ROOT.rglob("*")):
        if path.is_relative_to(_ROOT / "profile" / "collect"):
            continue
        if path.suffix == ".py":
            nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            yield from (node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str))
        elif path.suffix == ".toml":
            yield from _list_texts(tomllib.loads(path.read_text(encoding="utf-8")))


def _list_texts(root: Any) -> Iterator[str]:
    waiting = [root]
    while waiting:
        found = waiting.pop()
        if isinstance(found, str):
            yield found
        elif isinstance(found, dict):
            waiting += [*found, *found.values()]
        elif isinstance(found, list):
            waiting += found


@cache
def read_unasked() -> Mapping[str, str]:
    """Metrics that are read where a report has them and not asked for, each with the reason; without a dot, a counter in every form."""
    tables = tomllib.loads((_ROOT / "profile" / "collect" / "recipe.toml").read_text(encoding="utf-8"))["unasked"]
    return {name: table["why"] for table in tables for name in table["names"]}
