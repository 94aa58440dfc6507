"""Simulation of configurations: each is compiled, some of its blocks are executed, and an SM runs them.

A configuration under which a few emulated blocks go wrong is not simulated.
"""

import json
import re
import tempfile
from collections.abc import Iterable
from functools import lru_cache
from itertools import product
from math import prod
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from gpa_lsp.code.ptx.model import PtxModule
from gpa_lsp.code.ptx.parse import parse_ptx
from gpa_lsp.code.sources.directives import find_pragmas
from gpa_lsp.code.sources.trees import SourceTree, read_text, read_tree, walk
from gpa_lsp.diagnosis.analyses.analyse_kernel import judge_kernel
from gpa_lsp.diagnosis.analyses.model import Limiter, LimiterKind
from gpa_lsp.diagnosis.analyses.roofline.place import place_kernel
from gpa_lsp.diagnosis.analyses.subject import Subject as KernelSubject
from gpa_lsp.diagnosis.blame.blame import blame_kernel
from gpa_lsp.execution.compiler.job import read_source
from gpa_lsp.execution.compiler.model import DEFAULT_SETTINGS, CompileSettings
from gpa_lsp.execution.emulator.model import Budget, FaultKind
from gpa_lsp.execution.hybrid.operations import PAPER_ERROR
from gpa_lsp.execution.launches.launch import LaunchDescription
from gpa_lsp.execution.prediction.exploration.explore import Subject, digest_texts
from gpa_lsp.execution.prediction.exploration.model import Configuration, Definition, RankedConfiguration, Unroll
from gpa_lsp.execution.prediction.exploration.subjects import (
    ONE_LAUNCH,
    PROBE_BUDGET,
    ExplorationSubject,
    VariedLaunch,
    choose_launch,
    make_subject,
    probe_launch,
    refuse_new_faults,
    write_notes,
)
from gpa_lsp.execution.prediction.launch_sources import LaunchChoice
from gpa_lsp.execution.prediction.launched_code import CodeModule
from gpa_lsp.execution.prediction.simulation import SimulationSettings, simulate_launch
from gpa_lsp.execution.prediction.static_source import ExaminedSource, choose_product, examine_for_machine, require_ptx
from gpa_lsp.execution.simulator.profile_document import DocumentLaunch, make_document
from gpa_lsp.execution.simulator.regimes import ERROR_WORDS
from gpa_lsp.foundation.errors import InputError
from gpa_lsp.foundation.numbers import format_count
from gpa_lsp.foundation.prose import percent, say
from gpa_lsp.kernel.join import join_profile
from gpa_lsp.profile.read import read_profile

MODE, HYBRID_MODE = "simulation", "hybrid"
_PAPER_NOTE = say(
    "Each configuration was compiled, and its time was estimated as the hybrid framework of Wang et al. (2019) does, with what GPUs of today need "
    "beside it: on 30 launches of public reports that was {error} off on average.",
    error=percent(PAPER_ERROR),
)
_NOTE = say(
    "Each configuration was compiled, some of its blocks were executed, and one SM was simulated with them; {error}.",
    error=ERROR_WORDS,
)


_BUSY_RATIO = 0.6  # Of a round, from which on the locked resource limits it


class SourceVariants(Struct, frozen=True, kw_only=True):
    """A source that is compiled with other macros and unroll factors."""

    path: Path  # of it
    text: str  # as it is
    machine: str | None  # name of the GPU; None for one of the architecture
    compute_capability: tuple[int, int] | None  # to compile for; None leaves it to the GPU, or to the compile command
    settings: CompileSettings = DEFAULT_SETTINGS  # of the compiler


class SimulatingEvaluator(Struct, frozen=True, kw_only=True):
    """Evaluates by simulation."""

    source: SourceVariants  # that is compiled
    description: VariedLaunch  # of the launch
    own_block: tuple[int, int, int]  # of the launch as it is described
    is_fixed: bool  # the description fixes its grid
    settings: SimulationSettings  # GPU and limits, for each configuration
    budget: Budget = PROBE_BUDGET  # of the emulator, for each configuration
    # kinds of those of the launch as it is; they say nothing against a configuration
    known_faults: frozenset[FaultKind] = frozenset()

    def __call__(self, configuration: Configuration) -> RankedConfiguration:
        """See :data:`~gpa_lsp.execution.prediction.exploration.explore.Evaluate`."""
        launch = self._read(configuration)
        examined, module = _compile(self.source, write_variant(self.source.path, self.source.text, configuration))
        faults = probe_launch(module, launch, self.budget).faults
        refuse_new_faults([fault for fault in faults if fault.kind not in self.known_faults], frozenset())
        found = simulate_launch(examined.statics.unit, launch, path=self.source.path, settings=self.settings)
        if not found.launches and not found.estimates:
            raise InputError("; ".join(one.message for one in found.problems) or "nothing of it could be simulated")
        warps = -(-prod(configuration.block) // 32)
        for estimated in found.estimates:
            estimate = estimated.estimate
            return RankedConfiguration(
                configuration=configuration,
                seconds=estimate.duration_ns / 1e9,
                limiter=estimate.busiest.value if estimate.busiest_ratio > _BUSY_RATIO else "latency",
                warps_per_sm=estimate.blocks_per_sm * warps,
                cycles=estimate.cycles,
                executed_blocks=estimate.blocks_per_sm,
                grid_blocks=prod(launch.grid),
            )
        (one,) = found.launches
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
        return self.description.read(None)


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
    launches: LaunchChoice = ONE_LAUNCH,
    machine: str | None = None,
    compute_capability: tuple[int, int] | None = None,
    compile_settings: CompileSettings = DEFAULT_SETTINGS,
    settings: SimulationSettings,
) -> ExplorationSubject:
    """Compile, and find the launch.

    Args:
        path: of the source.
        kernel: its name or a part of it; None where the source has one described launch.
        launches: the one of that kernel.
        machine: name of the GPU; None for the first known of the compute capability.
        compute_capability: to compile for; None for that of the GPU, and where none is named for what the compile command says.
        compile_settings: of the compiler.
        settings: limits for each configuration.

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
    code = CodeModule(examined.statics.unit, module, lambda: examined.statics)
    chosen = choose_launch(code, path, kernel, launches)
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
    mode = MODE if settings.terms is None else HYBRID_MODE
    subject = Subject(
        kernel=chosen.mangled,
        device=settings.machine or "",
        mode=mode,
        threads=launch.covered,
        digest=digest_texts(mode, str(chosen.description.number), chosen.description.description.text, source.text),
    )
    note = _NOTE if settings.terms is None else _PAPER_NOTE
    return make_subject(chosen, subject, evaluate, (note, *write_notes(examined)))


def _name_machine(machine: str | None, examined: ExaminedSource) -> str | None:
    """The whole name of the GPU."""
    product = choose_product(machine, examined.statics.unit.compute_capability)
    return machine if product is None else product.name


def find_simulated_limiter(one: DocumentLaunch) -> Limiter | None:
    """The verdict; None where it cannot be told.

    Raises:
        GpaError: the profile cannot be read back, which is a defect of ours.
    """
    with tempfile.TemporaryDirectory(prefix="gpa-lsp-", ignore_cleanup_errors=True) as folder:
        path = Path(folder) / "launch.gpa-profile.json"
        path.write_text(json.dumps(make_document([one], ())), encoding="utf-8")
        kernels, _ = join_profile(read_profile(path))
    if not kernels or not kernels[0].total_samples:
        return None
    (kernel, *_) = kernels
    limiter, _ = judge_kernel(KernelSubject(kernel, blame_kernel(kernel), place_kernel(kernel, None)))
    return limiter


def name_limiter(limiter: Limiter | None) -> str:
    """A few words for a table; empty where nothing is known."""
    if limiter is None or limiter.kind is LimiterKind.UNKNOWN:
        return ""
    found = limiter.find(limiter.unit)
    if limiter.kind is LimiterKind.UNIT:
        return f"{limiter.unit} queue" if found is None else found.label
    return f"{limiter.kind.value}: {limiter.unit}" if limiter.unit else limiter.kind.value


MOST_VARIANTS = 4096

_NAME = re.compile(r"[A-Za-z_]\w{0,99}")
_VALUE = re.compile(r"[\w.()+*/%<>:\- ]{1,60}")
_UNROLL = re.compile(r"([1-9]\d{0,6})=([1-9]\d{0,3}(?:,[1-9]\d{0,3})*)")
_LOOPS = frozenset({"for_statement", "while_statement", "do_statement", "for_range_loop"})
_PRAGMAS = ("unroll", "nounroll")
_DEFINE_REMEDY = "write NAME=VALUE or NAME=VALUE,VALUE, such as TILE=8,16,32"
_UNROLL_REMEDY = "write the line of a loop and its factors, such as 12=1,2,4"


class Variant(Struct, frozen=True, kw_only=True):
    """One version of a source."""

    definitions: tuple[Definition, ...] = ()  # macros and their values, in the order they were asked for
    unrolls: tuple[Unroll, ...] = ()  # lines of loops and their factors, in the same form

    def write(self, block: str) -> str:
        """A block as people write it, names of macros replaced by their values.

        >>> Variant(definitions=(("TILE", "16"),)).write("TILExTILE")
        '16x16'
        """
        for name, value in sorted(self.definitions, key=lambda one: -len(one[0])):
            block = block.replace(name, value)
        return block


def list_variants(definitions: Iterable[str], unrolls: Iterable[str]) -> tuple[Variant, ...]:
    """Every combination; the source as it is where nothing is asked for.

    Args:
        definitions: ``NAME=VALUE,VALUE``.
        unrolls: ``LINE=FACTOR,FACTOR``.

    Raises:
        InputError: a text means nothing, or there are more than :data:`MOST_VARIANTS`.

    >>> [one.definitions for one in list_variants(["TILE=8,16"], [])]
    [(('TILE', '8'),), (('TILE', '16'),)]
    >>> list_variants([], ["12=1,4"])[1].unrolls
    ((12, 4),)
    """
    macros = [_parse_definition(text) for text in definitions]
    loops = [_parse_unroll(text) for text in unrolls]
    if prod(map(len, macros)) * prod(map(len, loops)) > MOST_VARIANTS:
        message = f"there are more than {format_count(MOST_VARIANTS)} versions of the source"
        raise InputError(message, remedy="name fewer values")
    return tuple(
        Variant(definitions=chosen, unrolls=factors) for chosen in product(*macros) for factors in product(*loops)
    )


def _parse_definition(text: str) -> list[Definition]:
    name, equals, values = text.partition("=")
    listed = [one.strip() for one in values.split(",")]
    if not equals or not _NAME.fullmatch(name) or not all(_VALUE.fullmatch(one) for one in listed):
        raise InputError(f"{text[:80]!r} defines nothing", place="--define", remedy=_DEFINE_REMEDY)
    return [(name, value) for value in dict.fromkeys(listed)]


def _parse_unroll(text: str) -> list[Unroll]:
    found = _UNROLL.fullmatch(text.replace(" ", ""))
    if found is None:
        raise InputError(f"{text[:80]!r} names no loop", place="--unroll", remedy=_UNROLL_REMEDY)
    return [(int(found[1]), int(factor)) for factor in dict.fromkeys(found[2].split(","))]


def write_variant(path: Path, text: str, configuration: Configuration) -> str:
    """The text of a source with a configuration's macros and unroll factors; its lines keep their numbers.

    A macro that the source defines gets its value there, another one is defined before its first line.

    Raises:
        InputError: the source cannot be read as CUDA C++, or there is no loop on such a line.
    """
    if not configuration.definitions and not configuration.unrolls:
        return text
    tree = read_tree(path.name, text)
    if tree is None:
        raise InputError("cannot be read as CUDA C++", path=path, remedy="leave out --define and --unroll")
    edits: list[tuple[int, int, bytes]] = []
    before: list[str] = []
    for name, value in configuration.definitions:
        known = list(_find_definitions(tree, name, value))
        edits += known
        if not known:
            before.append(f"#define {name} {value}\n")
    for line, factor in configuration.unrolls:
        edits.append(_find_unroll(tree, path, line, factor))
    content = tree.content
    for start, end, new in sorted(edits, reverse=True):
        content = content[:start] + new + content[end:]
    own = content.decode("utf-8")
    return "".join([*before, "#line 1\n", own]) if before else own


def _find_definitions(tree: SourceTree, name: str, value: str) -> Iterable[tuple[int, int, bytes]]:
    for node in walk(tree.root):
        if node.type != "preproc_def" or read_text(node.child_by_field_name("name")) != name:
            continue
        named, valued = node.child_by_field_name("name"), node.child_by_field_name("value")
        assert named is not None
        end = named.end_byte if valued is None else valued.end_byte
        yield named.end_byte, end, f" {value}".encode()


def _find_unroll(tree: SourceTree, path: Path, line: int, factor: int) -> tuple[int, int, bytes]:
    """Span of the pragma on the line above, or the place before the loop on its own line."""
    loops = [node.start_byte for node in walk(tree.root) if node.type in _LOOPS and node.start_point[0] == line - 1]
    if not loops:
        raise InputError(f"no loop begins on line {line}", path=path, place="--unroll", remedy=_UNROLL_REMEDY)
    start = min(loops)
    for pragma in find_pragmas(tree.content):
        is_above = pragma.end_byte <= start and not tree.content[pragma.end_byte : start].strip()
        if is_above and pragma.words.startswith(_PRAGMAS):
            return pragma.start_byte, pragma.end_byte, f"#pragma unroll {factor}".encode()
    return start, start, f'_Pragma("unroll {factor}") '.encode()
