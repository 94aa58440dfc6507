"""Predictions, kept traces and explorations as JSON values. All numbers are in SI units; what is unknown is null."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gpa_lsp.execution.emulator.model import Fault
from gpa_lsp.execution.prediction.model import CountComparison, KernelPrediction, SourcePrediction
from gpa_lsp.execution.programs.beside_sources import Described
from gpa_lsp.execution.programs.examine import ExaminedKernel
from gpa_lsp.execution.programs.model import ProgramRun
from gpa_lsp.execution.traces.line_facts import AccessLineFact
from gpa_lsp.execution.volumes.model import VolumePrediction
from gpa_lsp.foundation.json_records import make_record

if TYPE_CHECKING:
    from gpa_lsp.execution.prediction.exploration.explore import Exploration
    from gpa_lsp.execution.prediction.predict_expressions import ExpressionPrediction
    from gpa_lsp.execution.prediction.saved_trace import SavedTrace

PREDICTION_FORMAT = "gpa-lsp/prediction/1"
SAVED_TRACE_FORMAT = "gpa-lsp/saved-trace/1"
EXPRESSION_FORMAT = "gpa-lsp/expression-prediction/1"
EXPLORATION_FORMAT = "gpa-lsp/exploration-result/1"


def make_prediction(prediction: SourcePrediction) -> dict[str, Any]:
    """A whole prediction."""
    unit = prediction.statics.unit
    return {
        "format": PREDICTION_FORMAT,
        "source": str(prediction.path),
        "launches": None if prediction.launches_path is None else str(prediction.launches_path),
        "compiler": unit.compiler,
        "compute_capability": ".".join(str(part) for part in unit.compute_capability),
        "messages": make_record(unit.messages),
        "kernels": [make_kernel_prediction(kernel) for kernel in prediction.kernels],
        "comparisons": [
            {
                "kernel": one.name,
                "mangled_name": one.mangled_name,
                "launches": one.launches,
                "answer": make_record(one.answer),
            }
            for one in prediction.comparisons
        ],
        "undescribed": list(prediction.undescribed),
        "problems": make_record(prediction.problems),
    }


def make_saved_trace(saved: "SavedTrace") -> dict[str, Any]:
    """What a kept trace shows: ``gpa-lsp/saved-trace/1``."""
    return {
        "format": SAVED_TRACE_FORMAT,
        "folder": str(saved.folder),
        "kernel": saved.name,
        "mangled_name": saved.mangled_name,
        "grid": list(saved.grid),
        "block": list(saved.block),
        "traced_blocks": saved.traced_blocks,
        "origin": saved.origin,
        "is_complete": saved.is_complete,
        "machine": saved.machine,
        "accesses": [_make_access(fact) for fact in saved.accesses],
        "branches": make_record(saved.branches),
        "answers": make_record(saved.answers),
        "problems": make_record(saved.problems),
    }


def make_kernel_prediction(kernel: KernelPrediction) -> dict[str, Any]:
    """One launch."""
    launch, volumes = kernel.launch, kernel.volumes
    return {
        "kernel": kernel.name,
        "mangled_name": kernel.mangled_name,
        "machine": kernel.machine,
        "launch": {
            "title": launch.title,
            "grid": list(launch.grid),
            "block": list(launch.block),
            "shared_bytes": launch.shared_bytes,
        },
        "registers": kernel.registers,
        "shared_bytes": kernel.shared_bytes,
        "warps_per_sm": kernel.warps_per_sm,
        "execution": make_record(kernel.execution),
        "faults": [make_fault(fault) for fault in kernel.faults],
        "accesses": [_make_access(fact) for fact in kernel.accesses],
        "branches": make_record(kernel.branches),
        "volumes": None if volumes is None else _make_volumes(volumes),
        "contradictions": make_record(kernel.contradictions),
        "measured": None if kernel.measured is None else _make_measured(kernel.measured),
        "measured_volumes": make_record(kernel.measured_volumes),
        "answers": make_record(kernel.answers),
        "problems": make_record(kernel.problems),
    }


def make_expression_prediction(prediction: "ExpressionPrediction", source: str) -> dict[str, Any]:
    """What was predicted from address expressions: ``gpa-lsp/expression-prediction/1``."""
    written, volumes = prediction.written, prediction.volumes
    return {
        "format": EXPRESSION_FORMAT,
        "source": source,
        "kernel": volumes.kernel,
        "machine": volumes.device.name,
        "launch": {name: list(getattr(written.launch, name)) for name in ("grid", "block", "updates", "fold")},
        "registers": written.registers,
        "shared_bytes": written.shared_bytes,
        "blocks_per_sm": volumes.blocks_per_sm,
        "volumes": _make_volumes(volumes),
        "answers": make_record((prediction.answer,)),
        "problems": make_record(prediction.problems),
    }


def _make_volumes(volumes: VolumePrediction) -> dict[str, Any]:
    return {
        "mode": volumes.mode.value,
        "limiter": None if volumes.limiter is None else volumes.limiter.value,
        "updates": volumes.update_count,
        "duration_ns": volumes.duration_ns,
        "bytes_per_update": make_record(volumes.volumes),
        "limits": [
            {"limiter": bound.limiter.value, "updates_per_s": bound.updates_per_s, "asked_per_update": bound.load}
            for bound in volumes.bounds
        ],
    }


def _make_measured(compared: CountComparison) -> dict[str, Any]:
    """What was measured beside what was emulated."""
    return {
        "launch": compared.launch,
        "why_not": compared.why or None,
        "counted_blocks": compared.counted_blocks,
        "grid_blocks": compared.grid_blocks,
        "added_instructions": compared.added,
        "merged_accesses": compared.merged,
        "unmapped_instructions": compared.unmapped,
        "accesses": [
            {
                "ptx": one.ptx,
                "ptx_line": one.ptx_line,
                "file": one.file,
                "line": one.line,
                "kind": one.kind.value,
                "space": one.space.name.lower(),
                "instructions": [{"function": name, "pc_offset": offset} for name, offset in one.instructions],
                "agrees": one.agrees,
                **{
                    name: None if pair is None else {"measured": pair.measured, "emulated": pair.emulated}
                    for name, pair in one.pairs.items()
                },
            }
            for one in compared.accesses
        ],
    }


def _make_access(fact: AccessLineFact) -> dict[str, Any]:
    reuse = fact.reuse
    return {
        "file": fact.file,
        "line": fact.line,
        "columns": list(fact.columns),
        "is_nested": fact.is_nested,
        "kind": fact.kind.value,
        "space": fact.space.name.lower(),
        "origin": fact.origin,
        "arrays": list(fact.arrays),
        "requests": fact.requests,
        "lanes_per_request": fact.lanes_per_request,
        "lines_per_request": fact.lines_per_request,
        "sectors_per_request": fact.sectors_per_request,
        "ideal_sectors_per_request": fact.ideal_sectors_per_request,
        "sectors": fact.sectors,
        "share_ratio": fact.share_ratio,
        "pattern": fact.pattern_words,
        "strides_bytes": list(fact.strides_bytes),
        "wavefronts_per_request": fact.wavefronts_per_request,
        "ideal_wavefronts_per_request": fact.ideal_wavefronts_per_request,
        "reuse_bins": None if reuse is None else [int(count) for count in reuse.bins],
        "streaming": None if reuse is None else reuse.streaming,
        "l1_hit_ratio": fact.l1_hit_ratio,
        "l2_hit_ratio": fact.l2_hit_ratio,
        "repeated_ratio": fact.repeated_ratio,
        "callers": [{"path": path, "requests_ratio": ratio} for path, ratio in fact.callers],
    }


def make_fault(fault: Fault) -> dict[str, Any]:
    """What a kernel did wrong."""
    return {key: value for key, value in make_record(fault).items() if key not in ("instruction", "passed")}


def make_exploration(exploration: "Exploration") -> dict[str, Any]:
    """All configurations, fastest first; times in seconds, volumes in bytes of the launch."""
    return {
        "format": EXPLORATION_FORMAT,
        "kernel": exploration.kernel,
        "device": exploration.device,
        "mode": exploration.mode,
        "current": make_record(exploration.current),
        "notes": list(exploration.notes),
        "configurations": make_record(exploration.ranked),
    }


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
        "memory": make_record(run.memory),
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
        "paths": make_record(runs.paths),
        "faults": [make_fault(fault) for fault in runs.faults],
        "unfinished": list(runs.unfinished),
        "recorded": make_record(runs.recorded),
        "unrecorded": runs.unrecorded,
        "prediction": None if prediction is None else make_kernel_prediction(prediction),
        "problems": make_record(kernel.problems),
    }
