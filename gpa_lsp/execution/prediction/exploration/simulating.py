"""What simulates configurations: each is compiled, some of its blocks are executed, and an SM runs them.

A configuration under which a few emulated blocks go wrong is not simulated.
"""

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from math import prod
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from gpa_lsp import __version__
from gpa_lsp.code.ptx.model import PtxModule
from gpa_lsp.code.ptx.parse import parse_ptx
from gpa_lsp.execution.compiler.settings import DEFAULT_SETTINGS, CompileSettings
from gpa_lsp.execution.compiler.source_text import read_source
from gpa_lsp.execution.emulator.model import Budget, FaultKind
from gpa_lsp.execution.launches.launch import LaunchDescription
from gpa_lsp.execution.launches.read_launches import read_launches
from gpa_lsp.execution.prediction.exploration.evaluators import (
    PROBE_BUDGET,
    VariedLaunch,
    probe_launch,
    refuse_configuration,
    refuse_new_faults,
)
from gpa_lsp.execution.prediction.exploration.journal import Subject
from gpa_lsp.execution.prediction.exploration.model import Configuration, RankedConfiguration
from gpa_lsp.execution.prediction.exploration.subjects import (
    ChosenLaunch,
    ExplorationSubject,
    choose_launch,
    make_subject,
    read_launch_text,
    require_description,
    write_notes,
)
from gpa_lsp.execution.prediction.exploration.variants import write_variant
from gpa_lsp.execution.prediction.machines import choose_product
from gpa_lsp.execution.prediction.simulated_limiter import find_simulated_limiter, name_limiter
from gpa_lsp.execution.prediction.simulation import SimulationSettings, simulate_launch
from gpa_lsp.execution.prediction.static_source import require_ptx
from gpa_lsp.execution.prediction.targets import ExaminedSource, examine_for_machine
from gpa_lsp.execution.simulator.accuracy import ERROR_WORDS
from gpa_lsp.foundation.errors import InputError
from gpa_lsp.foundation.prose import say

MODE = "simulation"
_NOTE = say(
    "Each configuration was compiled, some of its blocks were executed, and one SM was simulated with them; {error}. Scattered "
    "stores, kernels that only store, and blocks that read again what does not fit into L2 were not among them.",
    error=ERROR_WORDS,
)


class SourceVariants(Struct, frozen=True, kw_only=True):
    """A source that is compiled with other macros and unroll factors."""

    path: Path  # of it
    text: str  # as it is
    machine: str | None  # name of the GPU; None for one of the architecture
    compute_capability: tuple[int, int] | None  # to compile for; None leaves it to the GPU, or to the compile command
    settings: CompileSettings = DEFAULT_SETTINGS  # of the compiler


class SimulatingEvaluator(Struct, frozen=True, kw_only=True):
    """By simulation."""

    source: SourceVariants  # what is compiled
    description: VariedLaunch  # of the launch
    own_block: tuple[int, int, int]  # of the launch as it is described
    is_fixed: bool  # the description fixes its grid
    settings: SimulationSettings  # how much simulating one configuration may cost, and the GPU
    budget: Budget = PROBE_BUDGET  # of the emulator, for each configuration
    # kinds of those of the launch as it is; they say nothing against a configuration
    known_faults: frozenset[FaultKind] = frozenset()

    def __call__(self, configurations: Sequence[Configuration]) -> list[RankedConfiguration]:
        """See :data:`~gpa_lsp.execution.prediction.exploration.workers.Evaluate`."""
        return [self._evaluate(one) for one in configurations]

    def _evaluate(self, configuration: Configuration) -> RankedConfiguration:
        try:
            return self._simulate(configuration)
        except Exception as error:
            return refuse_configuration(configuration, error)

    def _simulate(self, configuration: Configuration) -> RankedConfiguration:
        launch = self._read(configuration)
        examined, module = _compile(self.source, write_variant(self.source.path, self.source.text, configuration))
        faults = probe_launch(module, launch, self.budget).faults
        refuse_new_faults([fault for fault in faults if fault.kind not in self.known_faults], frozenset())
        found = simulate_launch(examined.statics.unit, launch, path=self.source.path, settings=self.settings)
        if not found.launches:
            raise InputError("; ".join(one.message for one in found.problems) or "nothing of it could be simulated")
        (one,) = found.launches
        warps = -(-prod(configuration.block) // 32)
        return RankedConfiguration(
            configuration=configuration,
            seconds=one.simulated.duration_ns / 1e9,
            limiter=name_limiter(find_simulated_limiter(one)),
            warps_per_sm=one.simulated.blocks_per_sm * warps,
            cycles=one.simulated.cycles,
            executed_blocks=len(one.walk.sampled_blocks),
            grid_blocks=prod(one.walk.grid),
        )

    def _read(self, configuration: Configuration) -> LaunchDescription:
        """The launch of a configuration.

        Raises:
            InputError: the description does not allow for it.
        """
        if configuration.fold != self.description.own_fold:
            raise InputError("another fold needs other code", remedy="let a macro of the source say it, with --define")
        if not self.is_fixed:
            return self.description.read(configuration)
        if configuration.block != self.own_block:
            raise InputError("the launch fixes its grid", remedy="give threads = … in place of grid")
        return read_launches(self.description.path, text=self.description.text)[self.description.number]


@lru_cache(maxsize=4)
def _compile(source: SourceVariants, text: str) -> tuple[ExaminedSource, PtxModule]:
    examined = examine_for_machine(
        source.path,
        text=text,
        machine=source.machine,
        compute_capability=source.compute_capability,
        settings=source.settings,
    )
    return examined, parse_ptx(require_ptx(examined.statics, source.path), name=str(source.path))


def prepare_simulation(
    path: Path,
    *,
    kernel: str | None = None,
    launches_path: Path | None = None,
    launch_number: int | None = None,
    machine: str | None = None,
    compute_capability: tuple[int, int] | None = None,
    compile_settings: CompileSettings = DEFAULT_SETTINGS,
    settings: SimulationSettings,
) -> ExplorationSubject:
    """Compile, and find the launch.

    Args:
        path: of the source.
        kernel: its name or a part of it; None where the source has one described launch.
        launches_path: the description; None for the file beside the source.
        launch_number: which of the launches of that kernel, from 1; None where there is one.
        machine: name of the GPU; None for the first known of the compute capability.
        compute_capability: to compile for; None for that of the GPU, and where none is named for what the compile command says.
        compile_settings: of the compiler.
        settings: how much simulating one configuration may cost.

    Raises:
        InputError: the source does not compile, no launch (or more than one) is meant, or the GPU is not known.
        MissingToolError: no compiler is installed.
        ToolError: the compiler did not end in time, or crashed.
    """
    path = path.absolute()
    source = SourceVariants(
        path=path,
        text=read_source(path, None).decode("utf-8", "surrogateescape"),
        machine=machine,
        compute_capability=compute_capability,
        settings=compile_settings,
    )
    examined, module = _compile(source, source.text)
    described = require_description(path, launches_path)
    launch_text = read_launch_text(described)
    chosen = choose_launch(module, path, described, launch_text, kernel=kernel, number=launch_number)
    launch = chosen.launch
    settings = replace(settings, machine=_name_machine(machine, examined))
    evaluate = SimulatingEvaluator(
        source=source,
        description=chosen.description,
        own_block=launch.block,
        is_fixed=launch.threads is None,
        settings=settings,
        budget=replace(PROBE_BUDGET, memory_bytes=settings.memory_bytes),
        known_faults=frozenset(fault.kind for fault in probe_launch(module, launch, PROBE_BUDGET).faults),
    )
    subject = Subject(
        kernel=chosen.mangled,
        device=settings.machine or "",
        mode=MODE,
        threads=launch.covered,
        digest=_digest(chosen, launch_text, source),
    )
    return make_subject(chosen, subject, evaluate, (_NOTE, *write_notes(examined)))


def _name_machine(machine: str | None, examined: ExaminedSource) -> str | None:
    """The whole name of the GPU."""
    product = choose_product(machine, examined.statics.unit.compute_capability)
    return machine if product is None else product.name


def _digest(chosen: ChosenLaunch, launch_text: str, source: SourceVariants) -> str:
    """Of all that decides what comes out."""
    parts = "\0".join((__version__, MODE, str(chosen.description.number), launch_text, source.text))
    return hashlib.sha256(parts.encode("utf-8", "surrogatepass")).hexdigest()
