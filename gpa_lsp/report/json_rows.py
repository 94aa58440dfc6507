"""A report's parts as JSON values, laid out as ``report_schema.json`` says."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

from gpa_lsp.figures import Share, Spread
from gpa_lsp.locations import Frame
from gpa_lsp.report.model import (
    DeviceReport,
    FunctionRow,
    InstructionColumns,
    KernelReport,
    LaunchConfiguration,
    LaunchReport,
    LineRow,
    LoopRow,
    ReasonCounts,
    RuleNote,
)

NO_BARRIER = 7

Json = dict[str, Any]


def make_kernel_head(kernel: KernelReport) -> Json:
    """The properties of a ``kernel`` object that stand before its long arrays."""
    return {
        "name": kernel.name,
        "mangled_name": kernel.mangled_name,
        "profile_path": None if kernel.profile_path is None else str(kernel.profile_path),
        "measured_unix_s": kernel.measured_unix_s,
        "launch": make_configuration(kernel.configuration),
        "device": make_device(kernel.device),
        "duration_ns": finite(kernel.duration_ns),
        "duration_spread_ns": make_spread(kernel.duration_spread_ns),
        "samples": _make_samples(kernel),
        "samples_spread": make_spread(kernel.samples_spread),
        "reasons": list(kernel.instructions.reasons),
    }


def make_configuration(configuration: LaunchConfiguration) -> Json:
    """A ``launch_configuration`` object."""
    return {
        "grid": list(configuration.grid),
        "block": list(configuration.block),
        "registers_per_thread": configuration.registers_per_thread,
        "shared_static_bytes": configuration.shared_static_bytes,
        "shared_dynamic_bytes": configuration.shared_dynamic_bytes,
    }


def make_device(device: DeviceReport) -> Json:
    """A ``device`` object; the compute capability becomes text (``"8.6"``), since 12.1 and 12.10 are the same number."""
    capability = device.compute_capability
    return {
        "name": device.name,
        "compute_capability": None if capability is None else f"{capability[0]}.{capability[1]}",
        "sm_count": device.sm_count,
        "sm_clock_hz": finite(device.sm_clock_hz),
    }


def make_spread(spread: Spread | None) -> Json | None:
    """A ``spread`` object."""
    if spread is None:
        return None
    return {
        "count": spread.count,
        "mean": finite(spread.mean),
        "minimum": finite(spread.minimum),
        "maximum": finite(spread.maximum),
        "standard_deviation": finite(spread.standard_deviation),
    }


def make_launch(launch: LaunchReport) -> Json:
    """A ``launch`` object."""
    return {
        "index": launch.index,
        "launch": make_configuration(launch.configuration),
        "duration_ns": finite(launch.duration_ns),
        "elapsed_cycles": finite(launch.elapsed_cycles),
        "samples": _make_samples(launch),
        "failure": launch.failure,
        "nvtx_ranges": list(launch.nvtx_ranges),
        "call_stack": list(launch.call_stack),
        "rules": [_make_rule(note) for note in launch.rules],
    }


def make_function(row: FunctionRow) -> Json:
    """A ``function`` object."""
    return {
        "mangled_name": row.mangled_name,
        "name": row.name,
        "role": row.role.value,
        "instruction_count": row.instruction_count,
        "has_lines": row.has_lines,
        "samples": row.samples,
        "latency_samples": row.latency_samples,
        "by_reason": make_reasons(row.by_reason),
        "registers": row.registers,
        "section": row.section,
        "start_offset": row.start_offset,
    }


def make_line(row: LineRow, kernel: KernelReport) -> Json:
    """A ``line`` object."""
    return {
        "file": row.file,
        "line": row.line,
        "function": row.function,
        "samples": row.samples,
        "latency_samples": row.latency_samples,
        "inclusive_samples": row.inclusive_samples,
        "inclusive_latency_samples": row.inclusive_latency_samples,
        "called_samples": finite(row.called_samples) or 0.0,
        "share": make_share(kernel.share_of(row.samples)),
        "inclusive_share": make_share(kernel.share_of(row.inclusive_samples)),
        "by_reason": make_reasons(row.by_reason),
        "inclusive_by_reason": make_reasons(row.inclusive_by_reason),
    }


def make_loop(row: LoopRow) -> Json:
    """A ``loop`` object."""
    return {name: getattr(row, name) for name in LoopRow.__slots__}


def make_share(share: Share) -> Json:
    """A ``share`` object."""
    return {"ratio": share.ratio, "low_ratio": share.low_ratio, "high_ratio": share.high_ratio}


def make_counted_share(share: Share) -> Json:
    """A ``share`` object that also says what it was counted from."""
    return {**make_share(share), "part_samples": share.part_samples, "whole_samples": share.whole_samples}


def make_reasons(counts: ReasonCounts) -> Json:
    """A ``by_reason`` object, in the order of the counts."""
    return {reason: {"all": count.all_samples, "latency": count.latency_samples} for reason, count in counts.items()}


def make_instructions(columns: InstructionColumns) -> Iterator[Json]:
    """``instruction`` objects, one at a time."""
    chains = [[_make_frame(frame) for frame in chain] for chain in columns.chains]
    every, latency = columns.all_samples.tolist(), columns.latency_samples.tolist()
    executions, controls = columns.executions.tolist(), _make_controls(columns)
    depths = columns.loop_depths.tolist()
    rows = zip(columns.function_index.tolist(), columns.pc_offsets.tolist(), columns.chain_index.tolist(), strict=True)
    for position, (function, pc_offset, chain) in enumerate(rows):
        inline = chains[chain] if chain >= 0 else []
        text = columns.texts[position]
        yield {
            "function": columns.functions[function],
            "pc_offset": pc_offset,
            "opcode": read_opcode(text),
            "text": text,
            "file": inline[0]["file"] if inline else None,
            "line": inline[0]["line"] if inline else None,
            "inline": inline,
            "samples": sum(every[position]),
            "latency_samples": sum(latency[position]),
            "by_reason": {
                reason: {"all": count, "latency": quiet}
                for reason, count, quiet in sorted(
                    zip(columns.reasons, every[position], latency[position], strict=True),
                    key=lambda row: (-row[1], row[0]),
                )
                if count
            },
            "executions": executions[position] if executions[position] >= 0 else None,
            "loop_depth": depths[position],
            "control": controls[position],
        }


def read_opcode(text: str) -> str | None:
    """The opcode with its modifiers, of a disassembled instruction; None when there is no text.

    >>> read_opcode("@!P0 LDG.E.64 R2, [R4.64]")
    'LDG.E.64'
    """
    words = text.split(maxsplit=2)
    if words and words[0].startswith("@"):
        words = words[1:]
    return words[0] if words else None


def _make_controls(columns: InstructionColumns) -> list[Json | None]:
    names = ("has_control", "stall_cycles", "yield_flag", "write_barrier", "read_barrier", "wait_mask")
    return [
        {
            "stall_cycles": stall,
            "yield": bool(yields),
            "write_barrier": None if write == NO_BARRIER else write,
            "read_barrier": None if read == NO_BARRIER else read,
            "wait_mask": mask,
        }
        if known
        else None
        for known, stall, yields, write, read, mask in zip(
            *(getattr(columns, name).tolist() for name in names), strict=True
        )
    ]


def _make_frame(frame: Frame) -> Json:
    return {"file": frame.file, "line": frame.line, "function": frame.function}


def _make_samples(counted: KernelReport | LaunchReport) -> Json:
    return {
        "total": counted.total_samples,
        "latency": counted.latency_samples,
        "truncated": counted.samples_truncated,
        "by_reason": make_reasons(counted.by_reason),
    }


def _make_rule(note: RuleNote) -> Json:
    return {
        "rule": note.rule,
        "kind": note.kind,
        "text": note.text,
        "speedup_percent": finite(note.speedup_percent),
        "speedup_is_global": note.speedup_is_global,
    }


def make_sources(sources: Mapping[str, str]) -> Json:
    """The ``embedded_sources`` object."""
    return dict(sources)


def finite(value: float | None) -> float | None:
    """JSON has no NaN and no infinity: what is not a number is not known.

    >>> finite(2), finite(math.nan), finite(None)
    (2.0, None, None)
    """
    return float(value) if value is not None and math.isfinite(value) else None
