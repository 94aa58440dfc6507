"""The smaller parts of a native launch: device, metrics, call stack, and how it was sampled."""

from gpa_lsp.profile.model import Device, Dim3, HostFrame, Metric
from gpa_lsp.profile.native import DURATION_METRIC
from gpa_lsp.profile.native.elements import Element, check_text
from gpa_lsp.profile.sampling import Sampling

_UNKNOWN_DEVICE = Device(name=None, compute_capability=None, sm_count=None, sm_clock_hz=None)
_MAX_DIMENSION = (1 << 31) - 1
_MAX_PERIOD_CYCLES = (1 << 53) - 1
_MAX_SAMPLES = (1 << 53) - 1


def read_dim3(element: Element) -> Dim3:
    """Blocks or threads in x, y, z."""
    x, y, z = (item.read_integer(_MAX_DIMENSION) for item in element.read_items(3))
    return x, y, z


def read_device(element: Element | None) -> Device:
    """The ``device`` member; everything unknown when there is none."""
    if element is None:
        return _UNKNOWN_DEVICE
    members = element.read_members(("name", "compute_capability", "sm_count", "sm_clock_hz", "attributes"))
    attributes = members["attributes"].read_map() if "attributes" in members else {}
    return Device(
        name=members["name"].read_text() if "name" in members else None,
        compute_capability=members["compute_capability"].read_capability() if "compute_capability" in members else None,
        sm_count=members["sm_count"].read_integer() if "sm_count" in members else None,
        sm_clock_hz=members["sm_clock_hz"].read_float() if "sm_clock_hz" in members else None,
        attributes={check_text(name, value): value.read_scalar() for name, value in attributes.items()},
    )


def read_metrics(element: Element | None, duration_ns: Element | None) -> dict[str, Metric]:
    """The ``metrics`` member, with ``duration_ns`` as the metric it stands for.

    Raises:
        InputError: the duration is given both ways.
    """
    members = element.read_map() if element is not None else {}
    metrics = {check_text(name, value): _read_metric(name, value) for name, value in members.items()}
    if duration_ns is not None:
        if DURATION_METRIC in metrics:
            raise duration_ns.fail(f"is given a second time, by the metric {DURATION_METRIC}")
        metrics[DURATION_METRIC] = Metric(name=DURATION_METRIC, value=duration_ns.read_float())
    return metrics


def read_call_stack(element: Element | None) -> tuple[HostFrame, ...]:
    """The ``call_stack`` member, innermost frame first."""
    return tuple(_read_frame(item) for item in element.read_items()) if element is not None else ()


def read_sampling(element: Element | None) -> Sampling:
    """A ``sampling`` member, of a launch or of the run; everything unknown when there is none."""
    if element is None:
        return Sampling()
    names = ("dropped_samples", "foreign_samples", "total_samples")
    members = element.read_members(("period_cycles", "is_simulated", "unchecked", *names))
    period = members["period_cycles"].read_integer(_MAX_PERIOD_CYCLES) if "period_cycles" in members else None
    if period == 0:
        raise members["period_cycles"].fail("is 0, but samples are at least one cycle apart")
    counts = {name: members[name].read_integer(_MAX_SAMPLES) for name in names if name in members}
    is_simulated = "is_simulated" in members and members["is_simulated"].read_flag()
    unchecked = members["unchecked"].read_text() if "unchecked" in members else ""
    return Sampling(period_cycles=period, is_simulated=is_simulated, unchecked=unchecked, **counts)


def _read_metric(name: str, element: Element) -> Metric:
    if not isinstance(element.value, dict) or "number" in element.value:
        return Metric(name=name, value=element.read_scalar())
    members = element.read_members(("value", "instances", "over_time"))
    pairs = [item.read_items(2) for item in members["instances"].read_items()] if "instances" in members else []
    return Metric(
        name=name,
        value=members["value"].read_scalar() if "value" in members else None,
        instance_ids=tuple(_read_instance_id(identifier) for identifier, _ in pairs),
        instance_values=tuple(value.read_scalar() for _, value in pairs),
        over_time=members["over_time"].read_flag() if "over_time" in members else False,
    )


def _read_instance_id(element: Element) -> int | str:
    return element.read_text() if isinstance(element.value, str) else element.read_integer((1 << 64) - 1)


def _read_frame(element: Element) -> HostFrame:
    members = element.read_members(("function", "module", "file", "line", "address"))
    return HostFrame(
        function=members["function"].read_text() if "function" in members else None,
        module=members["module"].read_text() if "module" in members else None,
        file=members["file"].read_text() if "file" in members else None,
        line=members["line"].read_integer() if "line" in members else None,
        address=members["address"].read_address() if "address" in members else None,
    )
