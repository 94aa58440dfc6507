"""Session details: the devices that were there, and which version of Nsight Compute recorded."""

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from gpa_lsp.profile.model import Device, MetricScalar
from gpa_lsp.profile.ncu.metrics import LazyMetrics, decode_metric, read_scalar
from gpa_lsp.profile.ncu.schema import read_text

_MOST = (1 << 31) - 1  # Attributes are C integers; a count or a clock is never negative

_PREFIX = "device__attribute_"
_TOOL_PROVIDER = b"Nsight Compute Target"


def read_tool_version(sessions: list[Any]) -> str | None:
    """The version as the tool writes it, e.g. ``2025.1.0.0 (build 35237751) (public-release)``; None in reports of 2019."""
    for session in sessions:
        for provider in session.providers:
            if provider.name == _TOOL_PROVIDER and provider.version:
                return read_text(provider.version)
    return None


def read_devices(sessions: list[Any]) -> dict[int, Device]:
    """The session's devices by device index; one described in several pieces is described by all of them."""
    names: dict[int, str] = {}
    attributes: dict[int, dict[str, MetricScalar]] = {}
    for session in sessions:
        for device in session.devices:
            found = attributes.setdefault(device.index, {})
            if device.name:
                names[device.index] = read_text(device.name)
            for attribute in device.attributes:
                value = read_scalar(attribute.value)
                if value is not None:
                    found[read_text(attribute.name)] = value
    return {index: build_device(found, names.get(index)) for index, found in attributes.items()}


def find_device(metrics: LazyMetrics, devices: Mapping[int, Device]) -> Device:
    """The device a launch ran on.

    A launch says the device's index and, as metrics, all its attributes; the session says them once per device and with its name.
    """
    for name in (f"{_PREFIX}device_index", "launch__device_id"):
        if name in metrics:
            index = metrics[name].value
            if isinstance(index, int | float) and math.isfinite(index) and int(index) in devices:
                return devices[int(index)]
    own = _build_own_device(tuple((name, metrics.find_encoded(name)) for name in metrics if name.startswith(_PREFIX)))
    if not own.attributes and len(devices) == 1:
        return next(iter(devices.values()))
    return own


@lru_cache(maxsize=16)
def _build_own_device(encoded: tuple[tuple[str, bytes], ...]) -> Device:
    """The device that a launch's own metrics describe; the launches of a report say the same hundreds of things about few devices."""
    own = {name: decode_metric(name, data).value for name, data in encoded}
    return build_device({name: value for name, value in own.items() if value is not None}, None)


def build_device(attributes: dict[str, MetricScalar], name: str | None) -> Device:
    """A device from its attributes by the profiler's names."""

    def read(attribute: str) -> int | None:
        value = attributes.get(_PREFIX + attribute)
        return int(value) if isinstance(value, int | float) and 0 <= value <= _MOST else None

    major, minor = read("compute_capability_major"), read("compute_capability_minor")
    shown_name = attributes.get(f"{_PREFIX}display_name")
    clock_khz = read("clock_rate") or read("max_gpu_frequency_khz")
    return Device(
        name=name or (shown_name if isinstance(shown_name, str) and shown_name else None),
        compute_capability=(major, minor) if major is not None and minor is not None else None,
        sm_count=read("multiprocessor_count") or None,
        sm_clock_hz=clock_khz * 1e3 if clock_khz else None,
        attributes=attributes,
    )
