"""Speaking to the CUDA driver through ``cuda.bindings.driver``: every call answers with a result and values.

The bindings are optional (``gpa-lsp[cuda]``). Who finds them missing says what is needed for what.
"""

from typing import Any

from gpa_lsp.basis.errors import ToolError


def load_bindings() -> Any:
    """The bindings; the driver's own library is looked for at their first call.

    Raises:
        ImportError: they are not installed.
    """
    from cuda.bindings import driver  # an optional dependency

    return driver


def call_driver(bindings: Any, name: str, *arguments: Any) -> Any:
    """The values a call answers with: None, one, or a tuple.

    Raises:
        ToolError: the driver refuses; carries its word.
    """
    failed, *values = getattr(bindings, name)(*arguments)
    if int(failed) != 0:
        raise ToolError("the CUDA driver", f"refused {name}: {name_error(bindings, failed)}")
    return None if not values else values[0] if len(values) == 1 else tuple(values)


def name_error(bindings: Any, failed: Any) -> str:
    """The driver's name of a result; its number where it has none."""
    return decode_name(bindings.cuGetErrorName(failed)[1]) or f"error {int(failed)}"


def read_attribute(bindings: Any, device: Any, name: str) -> int | None:
    """An attribute of a device by its name in reports (``clock_rate``); None when these bindings or this driver do not know it."""
    which = getattr(bindings.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name.upper()}", None)
    if which is None:
        return None
    failed, value = bindings.cuDeviceGetAttribute(which, device)
    return int(value) if int(failed) == 0 else None


def decode_name(text: bytes | str | None) -> str:
    """A name as C leaves it, ended by a zero or padded with zeros.

    >>> decode_name(b"A GPU\\0\\0"), decode_name(None)
    ('A GPU', '')
    """
    if isinstance(text, bytes):
        text = text.split(b"\0")[0].decode(errors="replace")
    return (text or "").strip("\0 ")
