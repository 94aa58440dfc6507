"""Write any :class:`Profile` as a native one; reading it gives an equal profile."""

import base64
import json
import math
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from gpa_lsp.profile.model import Launch, LoadedFunction, Metric, Module, Profile
from gpa_lsp.profile.native import FORMAT
from gpa_lsp.profile.native.parse import MAX_OFFSET

# An address further than this behind the nearest function is written as an absolute one.
_MAX_FUNCTION_BYTES = 1 << 24
# Fields that the format has no place for, or that are written apart.
_WRITTEN_APART = frozenset(
    ["path", "format_name", "other_files", "is_passing", "index", "module_id", "image", "metrics", "samples"]
)


def write_native(profile: Profile, path: Path) -> None:
    """Write all of a profile but its path and the name of its format."""
    path.write_text(render_native(profile), encoding="utf-8")


def render_native(profile: Profile) -> str:
    modules = [_write_module(module) for module in profile.modules.values()]
    launches = [_write_launch(launch, profile.modules) for launch in profile.launches]
    run = _write(replace(profile, modules={}, launches=()))
    document = {"format": FORMAT, **run, "modules": modules, "launches": launches}
    return json.dumps(document, ensure_ascii=False, allow_nan=False)


def _write(value: Any, name: str = "") -> Any:
    """A value as JSON; absent members are unknown."""
    if isinstance(value, Struct):
        members = {key: getattr(value, key) for key in value.__struct_fields__ if key not in _WRITTEN_APART}
        return {key: _write(part, key) for key, part in members.items() if part is not None}
    if isinstance(value, Mapping):
        return {key: _write(part) for key, part in value.items()}
    if name == "compute_capability":
        return "{}.{}".format(*value)
    if isinstance(value, tuple):
        return [_write(part, name) for part in value]
    if name in ("address", "function_addresses"):
        return hex(value)
    if isinstance(value, float) and not math.isfinite(value):
        return {"number": "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"}
    return value.value if isinstance(value, Enum) else value


def _write_module(module: Module) -> dict[str, Any]:
    image = {} if module.image is None else {"cubin": {"base64": base64.b64encode(module.image).decode("ascii")}}
    return {"id": module.module_id, **image, **_write(module)}


def _write_launch(launch: Launch, modules: Mapping[int, Module]) -> dict[str, Any]:
    members = _write(launch)
    document = {"kernel": members.pop("mangled_name"), "module": launch.module_id, **members}
    document["metrics"] = {name: _write_metric(metric) for name, metric in launch.metrics.items()}
    if launch.samples is not None:
        module = None if launch.module_id is None else modules.get(launch.module_id)
        document["stall_reasons"] = list(launch.samples.reasons)
        document["samples"] = list(_write_samples(launch, () if module is None else module.functions))
    return document


def _write_samples(launch: Launch, functions: tuple[LoadedFunction, ...]) -> Any:
    samples = launch.samples
    # A name must find the function again: of several with one name only the first counts.
    first_of_name = {function.name: function.address for function in reversed(functions)}
    for index, address in enumerate(samples.addresses.tolist()):
        by_reason = {}
        for column, reason in enumerate(samples.reasons):
            counts = {"all": int(samples.all_samples[index, column])}
            if samples.latency_samples is not None:
                counts["latency"] = int(samples.latency_samples[index, column])
            if any(counts.values()):
                by_reason[reason] = counts
        yield {**_write_place(address, functions, first_of_name), "by_reason": by_reason}


def _write_place(address: int, functions: tuple[LoadedFunction, ...], first_of_name: dict[str, int]) -> dict[str, Any]:
    below = [function for function in functions if function.address <= address]
    if below:
        nearest = below[-1]
        offset = address - nearest.address
        if offset < min(_MAX_FUNCTION_BYTES, MAX_OFFSET) and first_of_name[nearest.name] == nearest.address:
            return {"function": nearest.name, "pc_offset": offset}
    return {"address": hex(address)}


def _write_metric(metric: Metric) -> Any:
    if metric.value is not None and not metric.instance_ids and not metric.over_time:
        return _write(metric.value)
    pairs = zip(metric.instance_ids, metric.instance_values, strict=True)
    instances = [[identifier, _write(value)] for identifier, value in pairs]
    known = {"value": metric.value, "instances": instances or None}
    return {**{name: _write(one) for name, one in known.items() if one is not None}, "over_time": metric.over_time}
