"""Files of measured roofs: :func:`read_roofs`, :func:`write_roofs`, and where a user's are kept.

``gpa-lsp/roofs/1`` is one JSON object; ``roofs.schema.json`` beside this module describes it::

    {
      "format": "gpa-lsp/roofs/1",
      "device": {"name": "NVIDIA H200", "compute_capability": "9.0", "sm_count": 132},
      "measured_on": "2026-11-21",
      "tool_version": "0.1.0",
      "clocks_hz": {"sm": 1.98e9, "dram": 3.2e9},
      "peaks": {"FP32": {"ops_per_s": 6.5e13, "ops_per_cycle": 32828, "spread_ratio": 0.01}},
      "bandwidths": {"DRAM": {"bytes_per_s": 4.3e12, "working_set_bytes": 4294967296}}
    }

Every number is in the unit its name ends with, and of the whole GPU. Types and levels are named as :class:`OperationKind` and
:class:`MemoryLevel` have them. A bandwidth's ``bytes_per_cycle`` needs ``clock``: ``sm``, ``l2`` or ``dram``.

Starlight's flat file is recognised by its keys, and read too: bandwidths in GB/s, peaks in GFLOP/s and GIOP/s, no device and no clocks.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta
from msgspec.structs import fields

from gpa_lsp.foundation.errors import GpaError, InputError, Problem, UnsupportedInputError
from gpa_lsp.foundation.files import atomic_write, find_data_folder
from gpa_lsp.foundation.json_elements import Element, read_json
from gpa_lsp.gpu.device.model import (
    ClockDomain,
    EmpiricalBandwidth,
    EmpiricalPeak,
    EmpiricalRoofs,
    MemoryLevel,
    OperationKind,
)

_MAX_BYTES = 1 << 20  # A roofs file takes a few kilobytes

_REMEDY = "compare it with roofs.schema.json in the package gpa_lsp.gpu.device, or measure again with `gpa-lsp roofline calibrate`"
_MAX_TEXT = 200


FORMAT_FAMILY = "gpa-lsp/roofs/"
FORMAT = f"{FORMAT_FAMILY}1"
STARLIGHT_FORMAT = "starlight"

_FOLDER = "roofs"

_STARLIGHT_PEAKS = {
    "HALF_PEAK": OperationKind.FP16,
    "FP_SINGLE_PEAK": OperationKind.FP32,
    "FP_DOUBLE_PEAK": OperationKind.FP64,
    "INT_PEAK": OperationKind.INT32,
}
_STARLIGHT_BANDWIDTHS = {"L1_BW": MemoryLevel.L1, "L2_BW": MemoryLevel.L2, "GMEM_BW": MemoryLevel.DRAM}
_GIGA = 1e9
_StarlightRate = Annotated[float, Meta(gt=0, le=1e9)]


def read_roofs(path: Path) -> EmpiricalRoofs:
    """Read measured roofs: our own format, or Starlight's flat file.

    Raises:
        InputError: it cannot be read, or breaks the format; names the place.
        UnsupportedInputError: it is of another version.
    """
    try:
        return _read(read_json(path, most_bytes=_MAX_BYTES, what="files of ceilings", remedy=_REMEDY, keeps_null=False))
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror or error})", path=path, remedy="check the disk") from None
    except InputError as error:
        raise error.at(path) from None


def write_roofs(roofs: EmpiricalRoofs, path: Path) -> None:
    """Write measured roofs as ``gpa-lsp/roofs/1``; the file is put in its place at the end, so that no reader meets half of it.

    Raises:
        InputError: it cannot be written.
        ValueError: a number is not finite.
    """
    text = json.dumps(_describe(roofs), indent=2, allow_nan=False) + "\n"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(path, encoding="ascii") as stream:
            stream.write(text)
    except OSError as error:
        message = f"cannot be written: {error.strerror or error}"
        raise InputError(message, path=path, remedy="name a place that can be written") from None


def find_roofs_folder() -> Path:
    """The folder of a user's measured roofs; it may not exist."""
    return find_data_folder() / _FOLDER


def name_roofs_file(device_name: str) -> str:
    """The name of the file that holds the roofs of a device.

    >>> name_roofs_file("NVIDIA GeForce RTX 3090")
    'nvidia-geforce-rtx-3090.json'
    """
    words = re.sub(r"[^a-z0-9]+", "-", device_name.lower()).strip("-")
    return f"{words[:100] or 'gpu'}.json"


def find_kept_roofs(device_name: str, folder: Path | None = None) -> Path | None:
    """The kept roofs of a device; None when there are none.

    Args:
        folder: where to look; None for :func:`find_roofs_folder`.
    """
    path = (folder or find_roofs_folder()) / name_roofs_file(device_name)
    return path if path.is_file() else None


def _read(root: Element) -> EmpiricalRoofs:
    members = root.read_map()
    known = _STARLIGHT_PEAKS.keys() | _STARLIGHT_BANDWIDTHS.keys()
    if "format" not in members and members.keys() & known:
        return _read_starlight(members)
    if "format" not in members:
        raise root.fail(f"does not say {FORMAT!r}, and has none of Starlight's keys")
    name = members["format"].read_text()
    if name != FORMAT and name.startswith(FORMAT_FAMILY):
        message = f"is of format {name!r}; this version reads {FORMAT!r}"
        raise UnsupportedInputError(message, place="/format", remedy="update gpa-lsp, or measure again")
    if name != FORMAT:
        raise members["format"].fail(f"does not say {FORMAT!r}")
    names = ("format", "device", "measured_on", "tool_version", "clocks_hz", "peaks", "bandwidths")
    return _read_own(root, root.read_members(names))


def _read_own(root: Element, members: Mapping[str, Element]) -> EmpiricalRoofs:
    empty = root.at("", {})
    device = members.get("device", empty).read_members(("name", "compute_capability", "sm_count"))
    clocks = members.get("clocks_hz", empty).read_members([domain.value for domain in ClockDomain])
    kinds = {found.name: found.type for found in fields(EmpiricalRoofs)}
    found: dict[str, Any] = {
        name: _read_text(members[name]) for name in ("measured_on", "tool_version") if name in members
    }
    if "name" in device:
        found["device_name"] = _read_text(device.pop("name"))
    for name, element in {**device, **{f"{domain}_hz": clock for domain, clock in clocks.items()}}.items():
        found[name] = element.read(kinds[name])
    return EmpiricalRoofs(
        **found,
        peaks=tuple(_read_peak(key, value) for key, value in members.get("peaks", empty).read_map().items()),
        bandwidths=tuple(
            _read_bandwidth(key, value) for key, value in members.get("bandwidths", empty).read_map().items()
        ),
    )


def _read_text(element: Element) -> str:
    text = element.read_text()
    if len(text) > _MAX_TEXT or not text.isprintable():
        raise element.fail(f"is longer than {_MAX_TEXT} characters, or not printable")
    return text


def _read_peak(name: str, element: Element) -> EmpiricalPeak:
    if name not in set(OperationKind):
        raise element.fail("is not an operation type")
    return EmpiricalPeak(kind=OperationKind(name), **element.read_fields(EmpiricalPeak, without=("kind",)))


def _read_bandwidth(name: str, element: Element) -> EmpiricalBandwidth:
    if name not in set(MemoryLevel):
        raise element.fail("is not a memory level")
    found = element.read_fields(EmpiricalBandwidth, without=("level",))
    if ("bytes_per_cycle" in found) != ("clock" in found):
        raise element.fail("has one of 'bytes_per_cycle' and 'clock' without the other")
    return EmpiricalBandwidth(level=MemoryLevel(name), **found)


def _read_starlight(members: Mapping[str, Element]) -> EmpiricalRoofs:
    """Members with other names are left out: its file follows no standard."""
    peaks = [(kind, members[key]) for key, kind in _STARLIGHT_PEAKS.items() if key in members]
    levels = [(level, members[key]) for key, level in _STARLIGHT_BANDWIDTHS.items() if key in members]
    return EmpiricalRoofs(
        peaks=tuple(EmpiricalPeak(kind=kind, ops_per_s=value.read(_StarlightRate) * _GIGA) for kind, value in peaks),
        bandwidths=tuple(
            EmpiricalBandwidth(level=level, bytes_per_s=value.read(_StarlightRate) * _GIGA) for level, value in levels
        ),
        format_name=STARLIGHT_FORMAT,
    )


def _describe(roofs: EmpiricalRoofs) -> dict[str, Any]:
    capability = roofs.compute_capability
    device = {
        "name": roofs.device_name,
        "compute_capability": None if capability is None else f"{capability[0]}.{capability[1]}",
        "sm_count": roofs.sm_count,
    }
    clocks = {"sm": roofs.sm_hz, "l2": roofs.l2_hz, "dram": roofs.dram_hz}
    document = {
        "format": FORMAT,
        "device": _leave_out_unknown(device),
        "measured_on": roofs.measured_on,
        "tool_version": roofs.tool_version,
        "clocks_hz": _leave_out_unknown(clocks),
        "peaks": {peak.kind.value: _describe_part(peak, "kind") for peak in roofs.peaks},
        "bandwidths": {found.level.value: _describe_part(found, "level") for found in roofs.bandwidths},
    }
    return _leave_out_unknown(document)


def _describe_part(part: EmpiricalPeak | EmpiricalBandwidth, key: str) -> dict[str, Any]:
    members: dict[str, Any] = msgspec.to_builtins(part)
    del members[key]
    return _leave_out_unknown(members)


def _leave_out_unknown(members: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}


class KeptRoofs:
    """Finds the roofs that were kept of a device, and reads each file once. What cannot be used becomes a problem, since the user did not name it.

    Args:
        folder: where they are looked for; None for the user's data folder.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._known: dict[str, EmpiricalRoofs | None] = {}
        self._problems: list[Problem] = []

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Kept files that could not be used."""
        return tuple(self._problems)

    def find(self, device_name: str | None) -> EmpiricalRoofs | None:
        """The roofs for a device; None when there are none."""
        if device_name is None:
            return None
        if device_name not in self._known:
            self._known[device_name] = self._read_kept(device_name)
        return self._known[device_name]

    def _read_kept(self, device_name: str) -> EmpiricalRoofs | None:
        path = find_kept_roofs(device_name, self._folder)
        if path is None:
            return None
        try:
            return read_roofs(path)
        except GpaError as error:
            place = error.place if isinstance(error, InputError) else None
            message = f"the measured ceilings of {device_name} cannot be used: {getattr(error, 'message', error)}"
            remedy = (
                "measure them again with gpa-lsp roofline calibrate, or remove the file; theoretical ceilings are shown"
            )
            self._problems.append(Problem.warning(message, remedy, path=path, place=place))
            return None
