"""One result entry → one :class:`Launch`."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from gpa_lsp.profile.model import Device, Dim3, Launch, LaunchOutline, Metric
from gpa_lsp.profile.ncu.allowance import Allowance
from gpa_lsp.profile.ncu.host_context import read_call_stack, read_nvtx_ranges
from gpa_lsp.profile.ncu.metrics import LazyMetrics, encode_name_id, index_metrics
from gpa_lsp.profile.ncu.rules import read_rules
from gpa_lsp.profile.ncu.samples import is_truncated, read_samples
from gpa_lsp.profile.ncu.schema import read_text
from gpa_lsp.profile.ncu.session import find_device

_DURATION_METRIC = "gpu__time_duration.sum"
_NO_LAUNCH: Dim3 = (0, 0, 0)
_MOST_BLOCKS = (1 << 31) - 1
"""In any dimension of a grid."""


def read_launch(
    result: Any,
    *,
    size_bytes: int,
    index: int,
    module_id: int | None,
    strings: list[str],
    devices: Mapping[int, Device],
) -> tuple[Launch, list[str]]:
    """Decode a result.

    Args:
        result: the decoded result message.
        size_bytes: of the encoded result.
        index: of the launch in the profile.
        module_id: of the module its code is in; None when the report does not hold it.
        strings: the report's string table.
        devices: the session's devices by index.

    Returns:
        The launch, and a sentence for everything of it that had to be left out.
    """
    metrics, problems = index_metrics(list(result.metrics), strings)
    samples, sample_problems = read_samples(metrics)
    allowance = Allowance(size_bytes)
    launch = Launch(
        index=index,
        mangled_name=read_text(result.mangled_name),
        plain_name=read_text(result.plain_name),
        demangled_name=read_text(result.demangled_name),
        module_id=module_id,
        grid=_read_dim3(result.grid),
        block=_read_dim3(result.block),
        device=find_device(metrics, devices),
        created_unix_s=result.created_unix_s if result.HasField("created_unix_s") else None,
        context_id=result.context_id if result.HasField("context_id") else None,
        stream_id=result.stream_id if result.HasField("stream_id") else None,
        metrics=metrics,
        samples=samples,
        samples_truncated=False,
        function_addresses=_read_function_addresses(metrics),
        nvtx_ranges=read_nvtx_ranges(result, allowance),
        call_stack=read_call_stack(result, allowance),
        rules=read_rules(result, allowance),
    )
    problems += sample_problems + allowance.describe()
    return replace(launch, samples_truncated=is_truncated(launch), failure=_describe_failure(launch)), problems


def outline_launch(result: Any, *, index: int, strings: list[str]) -> LaunchOutline:
    """What is known of a launch from its head and its duration alone.

    Args:
        result: the decoded result message.
        index: of the launch in the profile.
        strings: the report's string table.
    """
    wanted = encode_name_id(strings.index(_DURATION_METRIC)) if _DURATION_METRIC in strings else None
    encoded = [data for data in result.metrics if wanted is not None and data.startswith(wanted)]
    metrics, _ = index_metrics(encoded, strings)
    duration = metrics.get(_DURATION_METRIC)
    value = None if duration is None else duration.value
    is_time = isinstance(value, int | float) and math.isfinite(value)
    return LaunchOutline(
        index=index,
        mangled_name=read_text(result.mangled_name),
        duration_ns=float(value) if is_time and value is not None else None,
    )


def _read_dim3(dim3: Any) -> Dim3:
    """Zeros, as of a failed launch, for what no GPU could be asked for."""
    sizes = dim3.x, dim3.y, dim3.z
    return sizes if max(sizes) <= _MOST_BLOCKS else _NO_LAUNCH


def _read_function_addresses(metrics: LazyMetrics) -> tuple[int, ...]:
    """Addresses are the instances' values; the aggregate is their sum (up to 2024.2) or number, which says nothing."""
    metric: Metric | None = metrics.get("launch__function_pcs")
    if metric is None:
        return ()
    return tuple(sorted({value for value in metric.instance_values if isinstance(value, int) and value > 0}))


def _describe_failure(launch: Launch) -> str | None:
    duration = launch.metrics.get(_DURATION_METRIC)
    has_no_duration = duration is not None and isinstance(duration.value, float) and math.isnan(duration.value)
    if launch.grid == _NO_LAUNCH:
        return "the profiler failed on this launch: the report holds neither its grid nor its counters"
    if has_no_duration:
        return "the profiler failed on this launch: its duration is not a number"
    return None
