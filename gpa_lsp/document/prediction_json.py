"""Predictions, kept traces and explorations as JSON values, in SI units; unknown values are null."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gpa_lsp.execution.emulator.model import Fault
from gpa_lsp.execution.prediction.model import CountComparison, KernelPrediction, SourcePrediction
from gpa_lsp.execution.programs.examine import Described, ExaminedKernel
from gpa_lsp.execution.programs.model import ProgramRun
from gpa_lsp.execution.traces.line_facts import AccessLineFact
from gpa_lsp.execution.volumes.model import VolumePrediction
from gpa_lsp.foundation.json_records import make_record, pick
from gpa_lsp.kernel.names import demangle

if TYPE_CHECKING:
    from gpa_lsp.execution.prediction.exploration.explore import Exploration
    from gpa_lsp.execution.prediction.predict import ExpressionPrediction
    from gpa_lsp.execution.prediction.trace_files import SavedTrace

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
        "comparisons": [pick(one, "name=kernel mangled_name launches answer") for one in prediction.comparisons],
        "undescribed": [demangle(name) for name in prediction.undescribed],
        "problems": make_record(prediction.problems),
    }


def make_saved_trace(saved: "SavedTrace") -> dict[str, Any]:
    """A kept trace: ``gpa-lsp/saved-trace/1``."""
    return {
        "format": SAVED_TRACE_FORMAT,
        **pick(saved, "folder name=kernel mangled_name grid block traced_blocks origin is_complete machine"),
        "accesses": [_make_access(fact) for fact in saved.accesses],
        **pick(saved, "branches answers problems"),
    }


def make_kernel_prediction(kernel: KernelPrediction) -> dict[str, Any]:
    """One launch."""
    volumes = kernel.volumes
    return {
        **pick(kernel, "name=kernel mangled_name machine"),
        "launch": pick(kernel.launch, "title grid block shared_bytes"),
        **pick(kernel, "registers shared_bytes warps_per_sm execution"),
        "faults": [make_fault(fault) for fault in kernel.faults],
        "accesses": [_make_access(fact) for fact in kernel.accesses],
        "branches": make_record(kernel.branches),
        "volumes": None if volumes is None else _make_volumes(volumes),
        **pick(kernel, "contradictions"),
        "measured": None if kernel.measured is None else _make_measured(kernel.measured),
        **pick(kernel, "measured_volumes answers problems waits"),
    }


def make_expression_prediction(prediction: "ExpressionPrediction", source: str) -> dict[str, Any]:
    """A prediction from address expressions: ``gpa-lsp/expression-prediction/1``."""
    written, volumes = prediction.written, prediction.volumes
    return {
        "format": EXPRESSION_FORMAT,
        "source": source,
        "kernel": volumes.kernel,
        "machine": volumes.device.name,
        "launch": pick(written.launch, "grid block updates fold"),
        **pick(written, "registers shared_bytes"),
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
    """Measured counts next to emulated ones."""
    return {
        "launch": compared.launch,
        "why_not": compared.why or None,
        **pick(
            compared,
            "counted_blocks grid_blocks added=added_instructions merged=merged_accesses unmapped=unmapped_instructions",
        ),
        "accesses": [
            {
                **pick(one, "ptx ptx_line file line kind"),
                "space": one.space.name.lower(),
                "instructions": [{"function": name, "pc_offset": offset} for name, offset in one.instructions],
                "agrees": one.agrees,
                **{name: None if pair is None else pick(pair, "measured emulated") for name, pair in one.pairs.items()},
            }
            for one in compared.accesses
        ],
    }


def _make_access(fact: AccessLineFact) -> dict[str, Any]:
    reuse = fact.reuse
    return {
        **pick(fact, "file line columns is_nested kind"),
        "space": fact.space.name.lower(),
        **pick(fact, "origin arrays requests lanes_per_request lines_per_request sectors_per_request"),
        **pick(fact, "ideal_sectors_per_request sectors share_ratio pattern_words=pattern strides_bytes"),
        **pick(fact, "wavefronts_per_request ideal_wavefronts_per_request"),
        "reuse_bins": None if reuse is None else [int(count) for count in reuse.bins],
        "streaming": None if reuse is None else reuse.streaming,
        **pick(fact, "l1_hit_ratio l2_hit_ratio repeated_ratio"),
        "callers": [{"path": path, "requests_ratio": ratio} for path, ratio in fact.callers],
    }


def make_fault(fault: Fault) -> dict[str, Any]:
    """A fault of a kernel."""
    return {key: value for key, value in make_record(fault).items() if key not in ("instruction", "passed")}


def make_exploration(exploration: "Exploration") -> dict[str, Any]:
    """All configurations, fastest first; times in seconds, volumes in bytes of the launch."""
    return {
        "format": EXPLORATION_FORMAT,
        **pick(exploration, "kernel device mode current notes"),
        "configurations": make_record(exploration.ranked),
    }


PROGRAM_FORMAT = "gpa-lsp/program/1"


def make_program(
    run: ProgramRun, kernels: Sequence[ExaminedKernel], described: Described | None = None
) -> dict[str, Any]:
    """A run, its kernels in the order of their first launches, and the launch descriptions written beside sources, if asked for."""
    return {
        "format": PROGRAM_FORMAT,
        **pick(run, "machine end seconds peak_bytes notes refused crash memory"),
        "kernels": [_make_kernel(one) for one in kernels],
        "described": make_record(described),
    }


def _make_kernel(kernel: ExaminedKernel) -> dict[str, Any]:
    runs, prediction = kernel.runs, kernel.prediction
    return {
        **pick(runs, "name=kernel mangled_name launches emulated skipped warp_instructions seconds shapes paths"),
        "faults": [make_fault(fault) for fault in runs.faults],
        **pick(runs, "unfinished recorded unrecorded"),
        "prediction": None if prediction is None else make_kernel_prediction(prediction),
        "comparison": None if kernel.comparison is None else pick(kernel.comparison, "launches spreads"),
        "problems": make_record(kernel.problems),
    }
