"""Write any :class:`Profile` as a native one; reading it gives an equal profile."""

import base64
import math
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec.structs

from gpa_lsp.foundation.errors import Problem
from gpa_lsp.profile.model import (
    Device,
    HostFrame,
    Launch,
    LoadedFunction,
    Metric,
    Module,
    Profile,
    RuleResult,
    Sampling,
)
from gpa_lsp.profile.native import FORMAT
from gpa_lsp.profile.native.parse import MAX_OFFSET
from tests.profile.native_text import render_document

_MAX_FUNCTION_BYTES = 1 << 24
"""An address further than this behind the nearest function is written as an absolute one."""


def write_native(profile: Profile, path: Path) -> None:
    """Write a profile to a file, which appears whole or not at all.

    What the format has no place for is the profile's own path and format name.

    Raises:
        OSError: the file cannot be written.
    """
    text = render_native(profile)
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="\n") as stream:
            stream.write(text)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def render_native(profile: Profile) -> str:
    """The text of a native profile: one line per sample row, metric and function."""
    document = {
        "format": FORMAT,
        **_drop_none(tool_version=profile.tool_version, sampling=_write_sampling(profile.sampling)),
        "samples_truncated": profile.samples_truncated,
        "modules": [_write_module(module) for module in profile.modules.values()],
        "launches": [_write_launch(launch, profile.modules) for launch in profile.launches],
        "problems": [_write_problem(problem) for problem in profile.problems],
    }
    return render_document(document)


def _write_module(module: Module) -> dict[str, Any]:
    image = None if module.image is None else {"base64": base64.b64encode(module.image).decode("ascii")}
    return {
        "id": module.module_id,
        **_drop_none(compute_capability=_write_capability(module.compute_capability), cubin=image),
        "functions": [_write_function(function) for function in module.functions],
        "sources": dict(module.sources),
    }


def _write_function(function: LoadedFunction) -> dict[str, Any]:
    return {
        "name": function.name,
        "address": hex(function.address),
        **_drop_none(symbol_index=function.symbol_index),
    }


def _write_launch(launch: Launch, modules: Mapping[int, Module]) -> dict[str, Any]:
    document = {
        "kernel": launch.mangled_name,
        "plain_name": launch.plain_name,
        "demangled_name": launch.demangled_name,
        "module": launch.module_id,
        **_drop_none(
            grid=None if launch.grid is None else list(launch.grid),
            block=None if launch.block is None else list(launch.block),
            aggregate=None if launch.aggregate is None else _drop_none(launches=launch.aggregate.launches),
        ),
        "device": _write_device(launch.device),
        **_drop_none(
            created_unix_s=launch.created_unix_s,
            context_id=launch.context_id,
            stream_id=launch.stream_id,
            failure=launch.failure,
        ),
        "samples_truncated": launch.samples_truncated,
        **_drop_none(sampling=_write_sampling(launch.sampling)),
        "function_addresses": [hex(address) for address in launch.function_addresses],
        "nvtx_ranges": list(launch.nvtx_ranges),
        "call_stack": [_write_frame(frame) for frame in launch.call_stack],
        "rules": [_write_rule(rule) for rule in launch.rules],
        "metrics": {name: _write_metric(metric) for name, metric in launch.metrics.items()},
    }
    if launch.samples is not None:
        module = None if launch.module_id is None else modules.get(launch.module_id)
        document["stall_reasons"] = list(launch.samples.reasons)
        document["samples"] = _write_samples(launch, () if module is None else module.functions)
    return document


def _write_samples(launch: Launch, functions: tuple[LoadedFunction, ...]) -> list[dict[str, Any]]:
    samples = launch.samples
    assert samples is not None
    # A name must find the function again: of several with one name only the first counts.
    first_of_name = {function.name: function.address for function in reversed(functions)}
    rows = []
    for index, address in enumerate(samples.addresses.tolist()):
        every = samples.all_samples[index].tolist()
        latency = [None] * len(every) if samples.latency_samples is None else samples.latency_samples[index].tolist()
        counts = zip(samples.reasons, every, latency, strict=True)
        by_reason = {
            reason: {"all": all_count, **_drop_none(latency=latency_count)}
            for reason, all_count, latency_count in counts
            if all_count or latency_count
        }
        rows.append({**_write_place(address, functions, first_of_name), "by_reason": by_reason})
    return rows


def _write_sampling(sampling: Sampling) -> dict[str, Any] | None:
    return _drop_none(**msgspec.structs.asdict(sampling)) or None


def _write_place(address: int, functions: tuple[LoadedFunction, ...], first_of_name: dict[str, int]) -> dict[str, Any]:
    below = [function for function in functions if function.address <= address]
    if below:
        nearest = below[-1]
        offset = address - nearest.address
        if offset < min(_MAX_FUNCTION_BYTES, MAX_OFFSET) and first_of_name[nearest.name] == nearest.address:
            return {"function": nearest.name, "pc_offset": offset}
    return {"address": hex(address)}


def _write_device(device: Device) -> dict[str, Any]:
    return {
        **_drop_none(
            name=device.name,
            compute_capability=_write_capability(device.compute_capability),
            sm_count=device.sm_count,
            sm_clock_hz=None if device.sm_clock_hz is None else _write_scalar(device.sm_clock_hz),
        ),
        "attributes": {name: _write_scalar(value) for name, value in device.attributes.items()},
    }


def _write_metric(metric: Metric) -> Any:
    if metric.value is not None and not metric.instance_ids and not metric.over_time:
        return _write_scalar(metric.value)
    instances = [
        [identifier, _write_scalar(value)]
        for identifier, value in zip(metric.instance_ids, metric.instance_values, strict=True)
    ]
    value = None if metric.value is None else _write_scalar(metric.value)
    return {**_drop_none(value=value, instances=instances or None), "over_time": metric.over_time}


def _write_frame(frame: HostFrame) -> dict[str, Any]:
    return _drop_none(
        function=frame.function,
        module=frame.module,
        file=frame.file,
        line=frame.line,
        address=None if frame.address is None else hex(frame.address),
    )


def _write_rule(rule: RuleResult) -> dict[str, Any]:
    return {
        "identifier": rule.identifier,
        "name": rule.name,
        "section": rule.section,
        "messages": [{"kind": item.kind, "title": item.title, "text": item.text} for item in rule.messages],
        "speedups": [{"percent": _write_scalar(item.percent), "is_global": item.is_global} for item in rule.speedups],
        "focus_metrics": [
            {"name": item.name, "value": _write_scalar(item.value), "severity": item.severity, "advice": item.advice}
            for item in rule.focus_metrics
        ],
        "markers": [
            {
                **_drop_none(
                    address=None if item.address is None else hex(item.address), file=item.file, line=item.line
                ),
                "text": item.text,
                "kind": item.kind,
            }
            for item in rule.markers
        ],
        "source_metrics": list(rule.source_metrics),
        "tables": [
            {
                "title": table.title,
                "description": table.description,
                "columns": [
                    {"name": column.name, "values": [_write_scalar(value) for value in column.values]}
                    for column in table.columns
                ],
            }
            for table in rule.tables
        ],
    }


def _write_problem(problem: Problem) -> dict[str, Any]:
    return {
        "severity": problem.severity.value,
        "message": problem.message,
        **_drop_none(place=problem.place, remedy=problem.remedy, kernel=problem.kernel),
    }


def _write_capability(capability: tuple[int, int] | None) -> str | None:
    return None if capability is None else f"{capability[0]}.{capability[1]}"


def _write_scalar(value: float | str) -> Any:
    if isinstance(value, str) or math.isfinite(value):
        return value
    return {"number": "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"}


def _drop_none(**members: Any) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}
