"""Devices and launches to find machines of, a line each."""

from collections.abc import Mapping

from gpa_lsp.profile.model import Device, Launch, Metric, MetricScalar
from tests.rows import builders


def make_device(
    name: str | None = "NVIDIA A40",
    capability: tuple[int, int] | None = (8, 6),
    sm_count: int | None = 84,
    **attributes: MetricScalar,
) -> Device:
    """A device with attributes named without ``device__attribute_``."""
    clock = attributes.get("clock_rate")
    return Device(
        name=name,
        compute_capability=capability,
        sm_count=sm_count,
        sm_clock_hz=float(clock) * 1e3 if isinstance(clock, int | float) else None,
        attributes={f"device__attribute_{key}": value for key, value in attributes.items()},
    )


def make_launch(device: Device, metrics: Mapping[str, MetricScalar], failure: str | None = None) -> Launch:
    read = {name: Metric(name=name, value=value) for name, value in metrics.items()}
    return builders.make_launch(
        "k", plain_name="k", demangled_name="k", module_id=None, device=device, metrics=read, failure=failure
    )
