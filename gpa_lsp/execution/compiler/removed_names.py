"""Names that releases of CUDA have removed, and what stands in their place: words behind a compiler's complaint."""

import re

from msgspec.structs import replace

from gpa_lsp.execution.compiler.model import CompiledUnit, CompilerMessage

_UNDEFINED = re.compile(
    r'identifier "(\w+)" is undefined|has no member "(\w+)"|[\'‘"](\w+)[\'’"] was not declared|no template named [\'"](\w+)'
    r'|"?(texture|surface)"? is not a template'
)
_TEXTURES = "texture references were removed in CUDA 12; use texture objects (cudaCreateTextureObject)"
_SHUFFLES = "it was removed in CUDA 9; use {} with a mask of the lanes that take part"
_PROPERTY = "CUDA 13 removed it from cudaDeviceProp; ask cudaDeviceGetAttribute"
_WITHOUT_MASK = "without '.sync' is not supported"
_RENAMED = {
    "cudaThreadSynchronize": "cudaDeviceSynchronize",
    "cudaThreadExit": "cudaDeviceReset",
    "cudaThreadSetLimit": "cudaDeviceSetLimit",
    "cudaThreadGetLimit": "cudaDeviceGetLimit",
    "cudaThreadSetCacheConfig": "cudaDeviceSetCacheConfig",
    "cudaThreadGetCacheConfig": "cudaDeviceGetCacheConfig",
}
_TEXTURE_NAMES = (
    "texture", "surface", "cudaBindTexture", "cudaBindTexture2D", "cudaBindTextureToArray", "cudaUnbindTexture",
    "cudaGetTextureReference", "cudaGetTextureAlignmentOffset", "cudaBindSurfaceToArray", "textureReference",
)  # fmt: skip
_WARP_NAMES = ("__shfl", "__shfl_up", "__shfl_down", "__shfl_xor", "__any", "__all", "__ballot")
_DEVICE_NAMES = {
    "mul24": "__mul24", "umul24": "__umul24", "mulhi": "__mulhi", "umulhi": "__umulhi", "mul64hi": "__mul64hi", "umul64hi": "__umul64hi",
    "saturate": "__saturatef", "int_as_float": "__int_as_float", "float_as_int": "__float_as_int", "sad": "__sad", "usad": "__usad",
}  # fmt: skip
_PROPERTIES = (
    "clockRate", "memoryClockRate", "deviceOverlap", "computeMode", "kernelExecTimeoutEnabled", "maxTexture1DLinear",
    "singleToDoublePrecisionPerfRatio", "cooperativeMultiDeviceLaunch",
)  # fmt: skip
# Source: release notes of CUDA 9.0, 12.0 and 13.0, deprecated and dropped features; headers of CUDA 13.0. Functions of the device without underscores
# were in ``device_functions.h`` up to CUDA 8; headers of CUDA 13.0 do not have them.
_REMEDIES = {
    **{old: f"it was removed in CUDA 13; use {new}" for old, new in _RENAMED.items()},
    **dict.fromkeys(_TEXTURE_NAMES, _TEXTURES),
    **{name: _SHUFFLES.format(f"{name}_sync") for name in _WARP_NAMES},
    **dict.fromkeys(_PROPERTIES, _PROPERTY),
    **{old: f"CUDA has it no more; use {new}" for old, new in _DEVICE_NAMES.items()},
}


def find_remedy(text: str) -> str | None:
    """What to write in place of the removed name that a message is about; None for any other message.

    >>> find_remedy('identifier "cudaThreadSynchronize" is undefined')
    'it was removed in CUDA 13; use cudaDeviceSynchronize'
    >>> find_remedy('identifier "x" is undefined') is None
    True
    """
    found = _UNDEFINED.search(text)
    if found is None:
        return None
    return next((_REMEDIES[name] for name in found.groups() if name in _REMEDIES), None)


def is_about_references(text: str) -> bool:
    """Whether a message is about the declaration of a texture or surface reference.

    >>> is_about_references("texture is not a template"), is_about_references('identifier "cudaBindTexture" is undefined')
    (True, False)
    """
    found = _UNDEFINED.search(text)
    return found is not None and any(one in ("texture", "surface") for one in found.groups())


def list_replacements(text: str) -> tuple[str, ...]:
    """Macros, as after ``-D``, by which the removed functions of warps are compiled as those in their place, where a message is about one.

    >>> list_replacements('identifier "__any" is undefined')[-2:], list_replacements('identifier "x" is undefined')
    (('__all(...)=__all_sync(0xffffffffu, __VA_ARGS__)', '__ballot(...)=__ballot_sync(0xffffffffu, __VA_ARGS__)'), ())
    """
    found = _UNDEFINED.search(text)
    is_warps = found is not None and any(one in _WARP_NAMES for one in found.groups())
    if not is_warps and _WITHOUT_MASK not in text:
        return ()
    return tuple(f"{name}(...)={name}_sync(0xffffffffu, __VA_ARGS__)" for name in _WARP_NAMES)


def list_spellings(text: str) -> tuple[str, ...]:
    """Macros, as after ``-D``, by which old functions of the device are compiled as those that are left, where a message is about one.

    >>> list_spellings('identifier "mul24" is undefined')[:2], list_spellings('identifier "x" is undefined')
    (('mul24=__mul24', 'umul24=__umul24'), ())
    """
    found = _UNDEFINED.search(text)
    if found is None or not any(one in _DEVICE_NAMES for one in found.groups()):
        return ()
    return tuple(f"{old}={new}" for old, new in _DEVICE_NAMES.items())


def explain_removed_names(unit: CompiledUnit) -> CompiledUnit:
    """The unit with a remedy behind each message about a name that is gone."""
    return replace(unit, messages=tuple(_explain(one) for one in unit.messages))


def _explain(message: CompilerMessage) -> CompilerMessage:
    remedy = find_remedy(message.text)
    return message if remedy is None else replace(message, text=f"{message.text}; {remedy}")
