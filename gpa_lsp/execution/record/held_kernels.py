"""Kernels that Python libraries hold in this process, for recorded launches: :func:`list_held_kernels`.

A recorded program of Python runs this file by itself at its end, in its own interpreter of whatever release: so it needs the standard library
alone, and looks only at libraries that the program has imported. What they hold is their own business and may be otherwise in another release;
what cannot be read is left out.
"""

import gc
import json
import os
import sys
from pathlib import Path
from typing import Any

_TRITON_TYPE = {"fp16": "f16", "bf16": "bf16", "fp32": "f32", "fp64": "f64", "i1": "bool"}
_NUMBA_TYPE = {
    "boolean": "bool",
    "float16": "f16",
    "float32": "f32",
    "float64": "f64",
    "complex64": "float2",
    "complex128": "double2",
}
_MOST_TEXT = 32 << 20

Row = dict[str, Any]


def list_held_kernels(raw: Path, images: Path) -> list[Row]:
    """Rows about the recorded kernels that libraries hold.

    Returns:
        A kernel each: ``framework``, ``kernel`` (empty where a source may have several), and as far as they are known ``image`` (number of the code),
        ``ptx``, ``parameters`` (name, type and whether it is a pointer), ``constants``, ``file``, ``line``, ``source`` and ``options``.
    """
    wanted = _list_recorded(raw)
    kinds = {
        kind: reader
        for module, name, reader in _KINDS
        if isinstance(kind := getattr(sys.modules.get(module), name, None), type)
    }
    if not wanted or not kinds:
        return []
    rows: list[Row] = []
    for one in gc.get_objects():
        reader = kinds.get(type(one))
        try:
            found = [] if reader is None else reader(one, wanted, images)
        except Exception:  # whatever has changed in that library: the launch is recorded all the same
            found = []
        rows += [row for row in found if len(row.get("ptx", "")) + len(row.get("source", "")) <= _MOST_TEXT]
    return rows


def write_held_kernels(folder: Path) -> None:
    """Write the rows beside the records of this process; never raises."""
    try:
        rows = list_held_kernels(folder, folder)
        if rows:
            part = folder / f"kernels-{os.getpid()}.part"
            part.write_text(json.dumps(rows), encoding="utf-8")
            part.rename(folder / f"kernels-{os.getpid()}.json")
    except Exception:
        return


def _list_recorded(raw: Path) -> dict[str, set[str]]:
    """Kernel → numbers of its images."""
    found: dict[str, set[str]] = {}
    for path in raw.glob("launch-*.raw"):
        with path.open("rb") as stream:
            words = [stream.readline(1 << 16).decode(errors="replace").split() for _ in range(3)]
        if len(words[1]) == 2 and len(words[2]) == 2:
            found.setdefault(words[2][1], set()).add(words[1][1])
    return found


def _find_image(code: bytes, numbers: set[str], images: Path) -> str:
    """Number of the loaded code; a loaded image's end is only estimated."""
    for number in sorted(numbers):
        path = images / f"image-{number}.bin"
        if path.is_file() and code.startswith(path.read_bytes()):
            return number
    return ""


def _read_place(function: Any) -> Row:
    code = getattr(function, "__code__", None)
    return {} if code is None else {"file": code.co_filename, "line": code.co_firstlineno}


# ---- Triton ----


def _read_triton(one: Any, wanted: dict[str, set[str]], images: Path) -> list[Row]:
    name = one.metadata.name
    if name not in wanted:
        return []
    row: Row = {"framework": "Triton", "kernel": name, "ptx": str(one.asm.get("ptx", ""))}
    row["image"] = _find_image(bytes(one.asm.get("cubin", b"")), wanted[name], images)
    source = one.src
    row |= _read_place(getattr(getattr(source, "fn", None), "fn", None))
    signature = getattr(source, "signature", None)
    if isinstance(signature, dict):
        names = list(signature)
        row["constants"] = {
            names[path[0]]: repr(value)
            for path, value in getattr(source, "constants", {}).items()
            if len(path) == 1 and path[0] < len(names)
        }
        row["parameters"] = _read_signature(signature)
    return [row]


def _read_signature(signature: dict[str, Any]) -> list[tuple[str, str, bool]]:
    """Name, type and whether it is a pointer of each parameter; empty if one becomes several parameters."""
    found = []
    for name, kind in signature.items():
        if kind == "constexpr":
            continue
        if not isinstance(kind, str) or not kind.lstrip("*k").isalnum():
            return []
        element = kind.lstrip("*k")
        found.append((name, _TRITON_TYPE.get(element, element), kind.startswith("*")))
    return found


# ---- Numba ----


def _read_numba(one: Any, wanted: dict[str, set[str]], images: Path) -> list[Row]:
    name = one.entry_name
    if name not in wanted:
        return []
    row: Row = {"framework": "Numba", "kernel": name, "image": "", "ptx": str(one._codelibrary.get_asm_str())}
    function = one.py_func
    row |= _read_place(function)
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    row["parameters"] = _flatten(list(zip(names, one.argtypes)))  # noqa: B905 - a Python that is recorded may be older
    return [row]


def _flatten(arguments: list[tuple[str, Any]]) -> list[tuple[str, str, bool]]:
    """Parameters as Numba passes them: an array as owner, sizes, pointer, shape and strides. Empty for unknown types."""
    found: list[tuple[str, str, bool]] = []
    for name, kind in arguments:
        dimensions = getattr(kind, "ndim", None)
        if dimensions is not None and hasattr(kind, "dtype"):
            found += [(f"{name}_{part}", "i64", False) for part in ("owner", "parent", "items", "item_bytes")]
            found.append((name, _name_numba(kind.dtype), True))
            found += [
                (f"{name}_{part}_{axis}", "i64", False) for part in ("shape", "stride") for axis in range(dimensions)
            ]
        elif hasattr(kind, "bitwidth") or str(kind) in ("bool", "boolean"):
            found.append((name, _name_numba(kind), False))
        else:
            return []
    return found


def _name_numba(kind: Any) -> str:
    return _NUMBA_TYPE.get(str(kind), str(kind))


# ---- CuPy ----


def _read_cupy(one: Any, wanted: dict[str, set[str]], images: Path) -> list[Row]:
    path = one.file_path
    text = one.code if one.code is not None else "" if path is None else Path(path).read_text(errors="replace")
    options = [str(word) for word in one.options]
    return [{"framework": "CuPy", "kernel": "", "image": "", "source": text, "options": options}] if text else []


# ---- CuTe DSL ----


def _read_cute(one: Any, wanted: dict[str, set[str]], images: Path) -> list[Row]:
    ptx = getattr(getattr(one, "artifacts", None), "PTX", None)
    names = [name for name in (one.kernel_info or ()) if name in wanted]
    return [
        {"framework": "CuTe DSL", "kernel": name, "image": "", "ptx": ptx if isinstance(ptx, str) else ""}
        for name in names
    ]


# Module and name of a type, and what reads objects of it
_KINDS = (
    ("triton.compiler.compiler", "CompiledKernel", _read_triton),
    ("numba.cuda.dispatcher", "_Kernel", _read_numba),
    ("numba_cuda.numba.cuda.dispatcher", "_Kernel", _read_numba),
    ("cupy", "RawKernel", _read_cupy),
    ("cupy", "RawModule", _read_cupy),
    ("cutlass.base_dsl.jit_executor", "JitCompiledFunction", _read_cute),
    ("cutlass.cutlass_dsl.cuda_jit_executor", "CudaDialectJitCompiledFunction", _read_cute),
)
