"""Speaking to the CUDA driver through ``cuda.bindings.driver``: every call answers with a result and values.

The bindings are optional (``gpa-lsp[cuda]``), and are loaded only when asked for.
"""

import os
from pathlib import Path
from typing import Any

from gpa_lsp.foundation.errors import MissingToolError, ToolError

_LIBRARY = "nvcuda.dll" if os.name == "nt" else "libcuda.so.1"
_KNOWN_LIBRARIES = Path("/etc/ld.so.cache")
_FOLDERS = ("/usr/lib64", "/usr/lib", "/lib", "/usr/lib/wsl/lib")


def is_driver_installed() -> bool:
    """Whether the driver's library is where the system looks for libraries. Nothing is loaded or started."""
    if os.name == "nt":
        return (Path(os.environ.get("SYSTEMROOT", r"C:\Windows")) / "System32" / _LIBRARY).exists()
    named = os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep)
    if any((Path(folder) / _LIBRARY).exists() for folder in (*filter(None, named), *_FOLDERS)):
        return True
    try:
        return _LIBRARY.encode() in _KNOWN_LIBRARIES.read_bytes()
    except OSError:
        return False


def open_device(*, needed_for: str, install: str, index: int = 0, driver: Any = None) -> tuple[Any, Any]:
    """The bindings, with the driver started, and a device of it.

    Args:
        needed_for: what the GPU is wanted for, for messages: "tracing on a GPU".
        install: what helps who has none.
        index: which, as the driver counts them.
        driver: the driver's bindings; None imports them. Tests give a scripted one.

    Raises:
        MissingToolError: no bindings, no driver, or no such GPU; says which.
        ToolError: the driver refuses.
    """
    bindings = _load_bindings(needed_for, install) if driver is None else driver
    try:
        failed = bindings.cuInit(0)[0]
    except (RuntimeError, OSError) as error:  # the bindings look for the driver's library at the first call
        raise MissingToolError("an NVIDIA driver", needed_for=needed_for, install=install) from error
    if int(failed) != 0:
        what = f"a GPU that the CUDA driver can use ({name_error(bindings, failed)})"
        raise MissingToolError(what, needed_for=needed_for, install=install)
    count = int(call_driver(bindings, "cuDeviceGetCount"))
    if not 0 <= index < count:
        shown = f"the driver lists {count}; {install}"
        raise MissingToolError(f"GPU number {index}", needed_for=needed_for, install=shown)
    return bindings, call_driver(bindings, "cuDeviceGet", index)


def _load_bindings(needed_for: str, install: str) -> Any:
    try:
        from cuda.bindings import driver  # an optional dependency
    except ImportError as error:
        raise MissingToolError("cuda-python", needed_for=needed_for, install=install) from error
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
