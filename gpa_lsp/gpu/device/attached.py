"""The GPU of this computer, through the CUDA driver: :func:`read_attached_device`, :func:`find_attached_machine`.

``cuda-python`` is optional (``gpa-lsp[cuda]``) and is loaded only when asked for. Nothing is run on the GPU and no context is made.
"""

from typing import Any

from gpa_lsp.foundation.errors import ToolError, UnknownArchitectureError
from gpa_lsp.gpu.arch.lookup import find_architecture
from gpa_lsp.gpu.device.cuda_driver import call_driver, decode_name, open_device, read_attribute
from gpa_lsp.gpu.device.find import find_machine
from gpa_lsp.gpu.device.model import Machine
from gpa_lsp.profile.model import Device, MetricScalar

_NEEDED_FOR = "looking up the GPU of this computer"
_INSTALL = "install gpa-lsp[cuda] and NVIDIA's driver, or name the GPU instead"
_NAME_BYTES = 256

# As reports name them, without ``device__attribute_``; the driver's names are the same in capitals
_ATTRIBUTES = (
    "clock_rate",
    "memory_clock_rate",
    "global_memory_bus_width",
    "l2_cache_size",
    "multiprocessor_count",
    "compute_capability_major",
    "compute_capability_minor",
    "single_to_double_precision_perf_ratio",
)


def find_attached_machine(index: int = 0, driver: Any = None) -> Machine:
    """The theoretical roofs of a GPU of this computer at the highest clocks it states.

    Args:
        index: which, as the driver counts them.
        driver: the bindings ``cuda.bindings.driver``; None imports them. Tests give a scripted one.

    Raises:
        MissingToolError: no bindings, no driver or no such GPU; says which.
        ToolError: the driver refuses, or reports nothing that roofs could be made from.
    """
    device = read_attached_device(index, driver)
    architecture = None
    if device.compute_capability is not None:
        try:
            architecture = find_architecture(device.compute_capability)
        except UnknownArchitectureError:
            architecture = None  # DRAM's roof is known all the same
    machine = find_machine(device, architecture, None)
    if machine is None:
        raise ToolError("the CUDA driver", f"reports neither clocks nor widths of {device.name or 'this GPU'}")
    return machine


def read_attached_device(index: int = 0, driver: Any = None) -> Device:
    """What the driver reports of a GPU of this computer; arguments and errors as of :func:`find_attached_machine`."""
    bindings, handle = open_device(needed_for=_NEEDED_FOR, install=_INSTALL, index=index, driver=driver)
    name = call_driver(bindings, "cuDeviceGetName", _NAME_BYTES, handle)
    found = {attribute: read_attribute(bindings, handle, attribute) for attribute in _ATTRIBUTES}
    attributes = {f"device__attribute_{key}": value for key, value in found.items() if value is not None}
    major, minor = found["compute_capability_major"], found["compute_capability_minor"]
    clock_khz = found["clock_rate"]
    return Device(
        name=decode_name(name) or None,
        compute_capability=None if major is None or minor is None else (major, minor),
        sm_count=found["multiprocessor_count"],
        sm_clock_hz=None if not clock_khz else clock_khz * 1e3,
        attributes=dict[str, MetricScalar](attributes),
    )
