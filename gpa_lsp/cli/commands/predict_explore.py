"""``gpa-lsp predict explore``: launch configurations of a kernel, ranked by their predicted performance."""

import argparse
import json
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from gpa_lsp.cli.commands import Command, Purpose
from gpa_lsp.cli.inputs import EXIT_BAD_INPUT
from gpa_lsp.cli.options import add_limit_argument, add_output_argument, add_source_arguments, declare, parse_number
from gpa_lsp.cli.outputs import is_printed, write_file
from gpa_lsp.cli.predictions import assume_launches, check_is_source, choose_launches
from gpa_lsp.cli.terminal import ProgressBar, Terminal
from gpa_lsp.foundation.errors import InputError

if TYPE_CHECKING:
    from gpa_lsp.execution.prediction.exploration.explore import Exploration, Journal, Workers
    from gpa_lsp.execution.prediction.exploration.model import Configuration
    from gpa_lsp.execution.prediction.exploration.subjects import ExplorationSubject
    from gpa_lsp.execution.prediction.launch_sources import LaunchChoice

_SUFFIXES = (".html", ".svg", ".png", ".json")
_DEFAULT_TOP = 15
_THREADS = "64..1024"
_VOLUMES, _SIMULATION, _HYBRID = "volumes", "simulation", "hybrid"


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add_source_arguments(parser, "a CUDA C++ source")
    declare(
        parser,
        """
        --launch N                     the Nth described launch of that kernel
        --sizes SIZES
        --block BLOCKS...              block sizes: 32x8, 16,32x1..8 (lists and powers of two), or all (the default); repeatable; the block of the
                                       launch is always included
        --fold FOLDS...                elements per thread: 1,2y,2z (default: 1); repeatable
        --threads LOW..HIGH            range of threads per block kept from lists and all (default: %(default)s)
        --by {volumes,simulation,hybrid}  rank by data volumes (the default), by simulating each configuration, which takes about a second for
                                       each, or by the estimate of the hybrid framework (predict stalls --mode paper)
        --define NAME=VALUES...        values of a macro of the source, such as TILE=8,16,32, not with --by volumes; blocks may name it (--block
                                       TILExTILE); repeatable
        --unroll LINE=FACTORS...       unroll factors of the loop on a line, such as 12=1,2,4, with --by simulation or hybrid; repeatable
        --seconds S                    seconds for executing blocks of one configuration, with --by simulation or hybrid (default: %(default)s)
        --machine GPU                  predict for this GPU, by name (if several boards match, the first is used and reported) or by a .toml file
                                       that describes one
        --arch SM
        --mode {corrected,paper}       with --by volumes: the model, or as published for Warpspeed (Ernst et al., 2022) (default: corrected)
        --memory SIZE                  memory for emulating each configuration, such as 512MiB (default: %(default)s); filled arrays need theirs
                                       twice
        --jobs N                       processes (default: one per core)
        --scheduler ADDRESS            evaluate on the Dask cluster of this scheduler
        --resume FILE                  keep results in FILE, and resume from it
        """,
        launch=parse_number,
        sizes="",
        threads=(_parse_range, _THREADS),
        by=_VOLUMES,
        seconds="10",
        mode="corrected",
        memory="2GiB",
    )
    add_output_argument(parser, "write the result (.html, .svg, .png or .json)", suffixes=_SUFFIXES)
    add_limit_argument(parser, "at most N rows shown", _DEFAULT_TOP)


def _run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    check_is_source(arguments.source)
    is_simulated = arguments.by != _VOLUMES
    if not is_simulated and (arguments.define or arguments.unroll):
        message = "volumes are predicted of the source as it is"
        raise InputError(message, remedy="add --by simulation or --by hybrid to explore macros and unroll factors")
    _check_options(arguments)
    launches = choose_launches(arguments, assume_launches(arguments, terminal, is_single=True), is_single=True)
    subject = _prepare(arguments, launches)
    space = _build_variants(arguments, subject) if is_simulated else _build_space(arguments, arguments.block, subject)
    space = tuple(sorted({*space, subject.current}))  # what the launch has now is always compared
    exploration = _explore(subject, space, arguments, terminal)
    if is_printed(arguments.output):
        _print(exploration, arguments.limit, terminal)
    else:
        write_file(_draw(exploration, arguments.output.suffix.lower()), arguments.output)
    return 0 if any(one.seconds is not None for one in exploration.ranked) else EXIT_BAD_INPUT


def _check_options(arguments: argparse.Namespace) -> None:
    """Check options before anything is compiled.

    Raises:
        InputError: an option means nothing, or the space is empty or too large.
    """
    from gpa_lsp.execution.prediction.exploration.model import build_space
    from gpa_lsp.execution.prediction.exploration.simulating import list_variants
    from gpa_lsp.gpu.device.products import find_product

    if arguments.machine is not None:
        find_product(arguments.machine)
    for variant in list_variants(arguments.define, arguments.unroll):
        blocks = [variant.write(block) for block in arguments.block]
        build_space(blocks, arguments.fold, threads=arguments.threads, dimensions=1)


def _prepare(arguments: argparse.Namespace, launches: "LaunchChoice") -> "ExplorationSubject":
    from gpa_lsp.execution.hybrid.operations import EVERY_TERM
    from gpa_lsp.execution.prediction.exploration.simulating import prepare_simulation
    from gpa_lsp.execution.prediction.exploration.subjects import prepare_exploration
    from gpa_lsp.execution.prediction.simulation import SimulationSettings
    from gpa_lsp.execution.volumes.model import VolumeMode  # these bring numpy, which --help does without

    common: dict[str, Any] = {
        "kernel": arguments.kernel,
        "launches": launches,
        "machine": arguments.machine,
        "compute_capability": arguments.arch,
    }
    source, memory_bytes = arguments.source, arguments.memory
    if arguments.by == _VOLUMES:
        return prepare_exploration(source, mode=VolumeMode(arguments.mode), memory_bytes=memory_bytes, **common)
    terms = EVERY_TERM if arguments.by == _HYBRID else None
    settings = SimulationSettings(seconds=arguments.seconds, memory_bytes=memory_bytes, terms=terms)
    return prepare_simulation(source, settings=settings, **common)


def _build_space(
    arguments: argparse.Namespace, blocks: list[str], subject: "ExplorationSubject"
) -> "tuple[Configuration, ...]":
    from gpa_lsp.execution.prediction.exploration.model import build_space

    return build_space(blocks, arguments.fold, threads=arguments.threads, dimensions=subject.dimensions)


def _build_variants(arguments: argparse.Namespace, subject: "ExplorationSubject") -> "tuple[Configuration, ...]":
    """Each version of the source with each block; the launch's own block where none is named but versions are, or where its grid is fixed."""
    from gpa_lsp.execution.prediction.exploration.model import write_block
    from gpa_lsp.execution.prediction.exploration.simulating import list_variants

    own = [write_block(subject.current.block)] if subject.is_fixed or arguments.define or arguments.unroll else []
    found: list[Configuration] = []
    for variant in list_variants(arguments.define, arguments.unroll):
        blocks = [variant.write(block) for block in arguments.block] or own
        found += [
            replace(one, definitions=variant.definitions, unrolls=variant.unrolls)
            for one in _build_space(arguments, blocks, subject)
        ]
    folds = {subject.current.fold} if not arguments.fold else {one.fold for one in found}
    own_fold = subject.current.fold
    return tuple(one if one.fold in folds else replace(one, fold=own_fold) for one in found)


def _explore(
    subject: "ExplorationSubject",
    space: "tuple[Configuration, ...]",
    arguments: argparse.Namespace,
    terminal: Terminal,
) -> "Exploration":
    from gpa_lsp.execution.prediction.exploration.explore import Exploration, Journal, evaluate_space

    def evaluate(journal: "Journal | None") -> "Exploration":
        workers = _choose_workers(arguments)
        with ProgressBar(terminal) as progress:
            ranked, resumed = evaluate_space(
                space,
                subject.evaluate,
                workers,
                journal=journal,
                progress=lambda done, total: progress(
                    "simulating" if arguments.by != _VOLUMES else "predicting", done, total
                ),
            )
        return Exploration(
            kernel=subject.name,
            device=subject.subject.device,
            mode=subject.subject.mode,
            ranked=ranked,
            current=subject.current,
            resumed=resumed,
            notes=subject.notes,
            is_simulated=arguments.by != _VOLUMES,
        )

    if arguments.resume is None:
        return evaluate(None)
    with Journal(arguments.resume, subject.subject) as journal:
        return evaluate(journal)


def _choose_workers(arguments: argparse.Namespace) -> "Workers":
    from gpa_lsp.execution.prediction.exploration.explore import DaskWorkers, LocalWorkers

    return LocalWorkers(arguments.jobs) if arguments.scheduler is None else DaskWorkers(arguments.scheduler)


def _print(exploration: "Exploration", most: int, terminal: Terminal) -> None:
    from gpa_lsp.document.answer_view import build_answer
    from gpa_lsp.document.blocks import Paragraph, Part
    from gpa_lsp.document.layout import Style
    from gpa_lsp.execution.prediction.exploration.answer import answer_exploration
    from gpa_lsp.foundation.numbers import format_count_of

    resumed = f"{format_count_of(exploration.resumed, 'configuration')} resumed" if exploration.resumed else ""
    answer = build_answer(answer_exploration(exploration, most_rows=most))
    blocks = [Paragraph(text=resumed, style=Style.DIM)] if resumed else []
    terminal.write_blocks(
        [Part(title=exploration.kernel, style=Style.TITLE, blocks=[*blocks, answer])], max_rows=most + 1
    )


def _draw(exploration: "Exploration", suffix: str) -> bytes:
    """Exploration in the format of a suffix; renderers are imported when needed."""
    from gpa_lsp.execution.prediction.exploration.answer import answer_exploration

    if suffix == ".json":
        from gpa_lsp.document.prediction_json import make_exploration

        return (json.dumps(make_exploration(exploration), indent=2) + "\n").encode()
    answer = answer_exploration(exploration)
    if suffix == ".html":
        from gpa_lsp.document.answer_view import build_answer
        from gpa_lsp.document.document_page import render_document_page

        title = f"Launch configurations of {exploration.kernel}"
        page = render_document_page(title, f"{exploration.how.capitalize()}, not measured", [build_answer(answer)])
        return page.encode("utf-8", errors="backslashreplace")
    from gpa_lsp.document.charts.answer_chart import build_answer_chart
    from gpa_lsp.document.charts.pictures import draw_png, draw_svg

    if not answer.charts:
        raise InputError("too few predictions to draw", remedy="explore more configurations, or write .json")
    spec = build_answer_chart(answer.charts[0])
    return draw_svg(spec).encode() if suffix == ".svg" else draw_png(spec)


def _parse_range(text: str) -> range:
    low, dots, high = text.partition("..")
    if not dots:
        high = low
    if not low.isdecimal() or not high.isdecimal() or not 1 <= int(low) <= int(high) <= 1024:
        raise argparse.ArgumentTypeError(f"{text!r} is not a range such as {_THREADS}")
    return range(int(low), int(high) + 1)


COMMAND = Command(
    summary="rank launch configurations of a kernel by their predicted performance",
    description=(
        "Compile a source, recover the addresses of a kernel from a few emulated blocks, and predict data volumes, limiter and time of every "
        "given block size and fold, on all cores or on a Dask cluster; or, with --by simulation or hybrid, compile each configuration, values of "
        "macros and unroll factors too, and simulate its launch. Needs no GPU and measures nothing."
    ),
    purpose=Purpose.PREDICT,
    examples=(
        ("predict explore matmul.cu --block 8x8 --block 32x8", "rank two block sizes, and the one it has"),
        (
            "predict explore matmul.cu --by simulation --define TILE=8,16,32",
            "the best of three values of a macro",
        ),
    ),
    add_arguments=_add_arguments,
    run=_run,
)
