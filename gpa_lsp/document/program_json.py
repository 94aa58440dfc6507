"""A program that ran without a GPU, as JSON. All numbers are in SI units; what is unknown is null."""

from collections.abc import Sequence
from typing import Any

from gpa_lsp.document.prediction_json import make_fault, make_kernel_prediction
from gpa_lsp.execution.programs.beside_sources import Described
from gpa_lsp.execution.programs.examine import ExaminedKernel
from gpa_lsp.execution.programs.model import ProgramRun
from gpa_lsp.foundation.json_records import make_record

PROGRAM_FORMAT = "gpa-lsp/program/1"


def make_program(
    run: ProgramRun, kernels: Sequence[ExaminedKernel], described: Described | None = None
) -> dict[str, Any]:
    """A run, its kernels in the order of their first launches, and what was written beside sources, where it was asked for."""
    return {
        "format": PROGRAM_FORMAT,
        "machine": run.machine,
        "end": make_record(run.end),
        "seconds": run.seconds,
        "peak_bytes": run.peak_bytes,
        "notes": list(run.notes),
        "refused": list(run.refused),
        "crash": run.crash,
        "kernels": [_make_kernel(one) for one in kernels],
        "described": make_record(described),
    }


def _make_kernel(kernel: ExaminedKernel) -> dict[str, Any]:
    runs, prediction = kernel.runs, kernel.prediction
    return {
        "kernel": runs.name,
        "mangled_name": runs.mangled_name,
        "launches": runs.launches,
        "emulated": runs.emulated,
        "skipped": runs.skipped,
        "warp_instructions": runs.warp_instructions,
        "seconds": runs.seconds,
        "shapes": make_record(runs.shapes),
        "faults": [make_fault(fault) for fault in runs.faults],
        "unfinished": list(runs.unfinished),
        "recorded": make_record(runs.recorded),
        "unrecorded": runs.unrecorded,
        "prediction": None if prediction is None else make_kernel_prediction(prediction),
        "problems": make_record(kernel.problems),
    }
