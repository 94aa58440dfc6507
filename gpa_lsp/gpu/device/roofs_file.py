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
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NoReturn

from msgspec import Struct

from gpa_lsp.foundation.errors import GpaError, InputError, Problem, ProblemSeverity, UnsupportedInputError
from gpa_lsp.foundation.numbers import format_bytes, format_file_value
from gpa_lsp.foundation.regular_files import open_regular_file
from gpa_lsp.foundation.whole_files import atomic_write
from gpa_lsp.gpu.device.model import (
    ClockDomain,
    EmpiricalBandwidth,
    EmpiricalPeak,
    EmpiricalRoofs,
    MemoryLevel,
    OperationKind,
)

MAX_BYTES = 1 << 20  # A roofs file takes a few kilobytes
MAX_RATE = 1e18  # Operations or bytes per second; 100 times what the largest GPU does
MAX_CLOCK_HZ = 1e11

_REMEDY = (
    "compare it with roofs.schema.json in the package gpa_lsp.gpu.device, or measure again with `gpa-lsp calibrate`"
)
_MAX_TEXT = 200


class RoofsElement(Struct, frozen=True):
    """A JSON value and its place."""

    value: Any  # as ``json`` parsed it
    pointer: str = ""  # JSON pointer from the root; empty for the root itself

    def fail(self, message: str) -> NoReturn:
        """Raise the error about this value.

        Raises:
            InputError: always.
        """
        raise InputError(message, place=self.pointer or "the whole document", remedy=_REMEDY)

    def read_map(self) -> dict[str, "RoofsElement"]:
        """Members of an object."""
        if not isinstance(self.value, dict):
            self.fail("is not an object")
        return {name: RoofsElement(value, f"{self.pointer}/{_escape(name)}") for name, value in self.value.items()}

    def read_members(self, known: Iterable[str]) -> dict[str, "RoofsElement"]:
        """Members of an object with a fixed set of names; ``comment`` and nulls are left out."""
        members = self.read_map()
        members.pop("comment", None)
        for name, member in members.items():
            if name not in known:
                member.fail("is not a member this format has")
        return {name: member for name, member in members.items() if member.value is not None}

    def read_rate(self, maximum: float = MAX_RATE) -> float:
        """A finite number above zero."""
        if isinstance(self.value, bool) or not isinstance(self.value, int | float):
            self.fail("is not a number")
        if not 0 < self.value <= maximum:
            self.fail(f"is not above 0 and at most {format_file_value(maximum)}")
        return float(self.value)

    def read_share(self) -> float:
        """A number from 0 to 1."""
        if isinstance(self.value, bool) or not isinstance(self.value, int | float):
            self.fail("is not a number")
        if not 0 <= self.value <= 1:
            self.fail("is not between 0 and 1")
        return float(self.value)

    def read_count(self, maximum: int) -> int:
        """A whole number from 1 on."""
        number = self.read_rate(maximum)
        if not number.is_integer():
            self.fail("is not a whole number")
        return int(number)

    def read_text(self) -> str:
        """A short string of printable characters."""
        if not isinstance(self.value, str):
            self.fail("is not a string")
        if len(self.value) > _MAX_TEXT or not self.value.isprintable():
            self.fail(f"is longer than {_MAX_TEXT} characters, or not printable")
        return self.value

    def read_capability(self) -> tuple[int, int]:
        """A compute capability such as ``"9.0"``."""
        match = re.fullmatch(r"([0-9]{1,3})\.([0-9]{1,3})", self.read_text())
        if match is None:
            self.fail("is not a compute capability such as '9.0'")
        return int(match[1]), int(match[2])


def read_json(path: Path) -> RoofsElement:
    """Parse a file as one JSON object.

    Raises:
        InputError: not a file, too large, not UTF-8, not JSON, nested too deeply, with a member twice or a number that is none.
    """
    stream, size_bytes = open_regular_file(path)
    with stream:
        if size_bytes > MAX_BYTES:
            message = f"is larger than {format_bytes(MAX_BYTES)}, the limit for files of ceilings"
            raise InputError(message, path=path, remedy="name a file of ceilings")
        data = stream.read(MAX_BYTES)
    try:
        value = json.loads(data.decode("utf-8-sig"), object_pairs_hook=_build_object, parse_constant=_refuse_constant)
    except UnicodeDecodeError as error:
        raise InputError("is not UTF-8 text", place=f"offset {error.start:#x}", remedy="save it as UTF-8") from None
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise InputError(f"is not JSON ({error.msg})", place=place, remedy=_REMEDY) from None
    except RecursionError:
        raise InputError("is nested too deeply for this format", remedy=_REMEDY) from None
    except ValueError as error:
        raise InputError(f"is not JSON this format allows ({error})", remedy=_REMEDY) from None
    if not isinstance(value, dict):
        RoofsElement(value).fail("is not an object")
    return RoofsElement(value)


def _build_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a member occurs twice in one object")
    return members


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def _escape(name: str) -> str:
    return name[:_MAX_TEXT].replace("~", "~0").replace("/", "~1").encode("ascii", "backslashreplace").decode("ascii")


FORMAT_FAMILY = "gpa-lsp/roofs/"
FORMAT = f"{FORMAT_FAMILY}1"
STARLIGHT_FORMAT = "starlight"

FOLDER_VARIABLE = "GPA_LSP_DATA_DIR"
_FOLDER = "roofs"

_STARLIGHT_PEAKS = {
    "HALF_PEAK": OperationKind.FP16,
    "FP_SINGLE_PEAK": OperationKind.FP32,
    "FP_DOUBLE_PEAK": OperationKind.FP64,
    "INT_PEAK": OperationKind.INT32,
}
_STARLIGHT_BANDWIDTHS = {"L1_BW": MemoryLevel.L1, "L2_BW": MemoryLevel.L2, "GMEM_BW": MemoryLevel.DRAM}
_GIGA = 1e9
_MAX_SMS = 10_000
_MAX_WORKING_SET = 1 << 50


def read_roofs(path: Path) -> EmpiricalRoofs:
    """Read measured roofs: our own format, or Starlight's flat file.

    Raises:
        InputError: it cannot be read, or breaks the format; names the place.
        UnsupportedInputError: it is of another version.
    """
    try:
        return _read(read_json(path))
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
    """Where a user's measured roofs are kept; it may not exist."""
    chosen = os.environ.get(FOLDER_VARIABLE)
    if chosen:
        return Path(chosen).expanduser() / _FOLDER
    from platformdirs import user_data_path  # only where it is needed: it costs start-up time

    return user_data_path("gpa-lsp", appauthor=False) / _FOLDER


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


def _read(root: RoofsElement) -> EmpiricalRoofs:
    members = root.read_map()
    known = _STARLIGHT_PEAKS.keys() | _STARLIGHT_BANDWIDTHS.keys()
    if "format" not in members and members.keys() & known:
        return _read_starlight(members)
    if "format" not in members:
        root.fail(f"does not say {FORMAT!r}, and has none of Starlight's keys")
    name = members["format"].read_text()
    if name != FORMAT and name.startswith(FORMAT_FAMILY):
        message = f"is of format {name!r}; this version reads {FORMAT!r}"
        raise UnsupportedInputError(message, place="/format", remedy="update gpa-lsp, or measure again")
    if name != FORMAT:
        members["format"].fail(f"does not say {FORMAT!r}")
    names = ("format", "device", "measured_on", "tool_version", "clocks_hz", "peaks", "bandwidths")
    return _read_own(root.read_members(names))


def _read_own(members: Mapping[str, RoofsElement]) -> EmpiricalRoofs:
    empty = RoofsElement({})
    device = members.get("device", empty).read_members(("name", "compute_capability", "sm_count"))
    clocks = members.get("clocks_hz", empty).read_members([domain.value for domain in ClockDomain])
    rates = {name: element.read_rate(MAX_CLOCK_HZ) for name, element in clocks.items()}
    date, version = members.get("measured_on"), members.get("tool_version")
    name, capability, sm_count = (device.get(key) for key in ("name", "compute_capability", "sm_count"))
    return EmpiricalRoofs(
        device_name=None if name is None else name.read_text(),
        compute_capability=None if capability is None else capability.read_capability(),
        sm_count=None if sm_count is None else sm_count.read_count(_MAX_SMS),
        measured_on=None if date is None else date.read_text(),
        tool_version=None if version is None else version.read_text(),
        sm_hz=rates.get(ClockDomain.SM.value),
        l2_hz=rates.get(ClockDomain.L2.value),
        dram_hz=rates.get(ClockDomain.DRAM.value),
        peaks=tuple(_read_peak(key, value) for key, value in members.get("peaks", empty).read_map().items()),
        bandwidths=tuple(
            _read_bandwidth(key, value) for key, value in members.get("bandwidths", empty).read_map().items()
        ),
    )


def _read_peak(name: str, element: RoofsElement) -> EmpiricalPeak:
    if name not in set(OperationKind):
        element.fail("is not an operation type")
    members = element.read_members(("ops_per_s", "ops_per_cycle", "spread_ratio"))
    if "ops_per_s" not in members:
        element.fail("lacks the member 'ops_per_s'")
    return EmpiricalPeak(
        kind=OperationKind(name),
        ops_per_s=members["ops_per_s"].read_rate(),
        ops_per_cycle=members["ops_per_cycle"].read_rate() if "ops_per_cycle" in members else None,
        spread_ratio=members["spread_ratio"].read_share() if "spread_ratio" in members else None,
    )


def _read_bandwidth(name: str, element: RoofsElement) -> EmpiricalBandwidth:
    if name not in set(MemoryLevel):
        element.fail("is not a memory level")
    members = element.read_members(("bytes_per_s", "bytes_per_cycle", "clock", "working_set_bytes", "spread_ratio"))
    if "bytes_per_s" not in members:
        element.fail("lacks the member 'bytes_per_s'")
    if ("bytes_per_cycle" in members) != ("clock" in members):
        element.fail("has one of 'bytes_per_cycle' and 'clock' without the other")
    clock = members["clock"].read_text() if "clock" in members else None
    if clock is not None and clock not in set(ClockDomain):
        members["clock"].fail("is not one of 'sm', 'l2' and 'dram'")
    return EmpiricalBandwidth(
        level=MemoryLevel(name),
        bytes_per_s=members["bytes_per_s"].read_rate(),
        bytes_per_cycle=members["bytes_per_cycle"].read_rate() if "bytes_per_cycle" in members else None,
        clock=None if clock is None else ClockDomain(clock),
        working_set_bytes=members["working_set_bytes"].read_count(_MAX_WORKING_SET)
        if "working_set_bytes" in members
        else None,
        spread_ratio=members["spread_ratio"].read_share() if "spread_ratio" in members else None,
    )


def _read_starlight(members: Mapping[str, RoofsElement]) -> EmpiricalRoofs:
    """Members with other names are left out: its file is nobody's standard."""
    peaks = [(kind, members[key]) for key, kind in _STARLIGHT_PEAKS.items() if key in members]
    levels = [(level, members[key]) for key, level in _STARLIGHT_BANDWIDTHS.items() if key in members]
    return EmpiricalRoofs(
        device_name=None,
        compute_capability=None,
        sm_count=None,
        measured_on=None,
        tool_version=None,
        sm_hz=None,
        l2_hz=None,
        dram_hz=None,
        peaks=tuple(EmpiricalPeak(kind=kind, ops_per_s=value.read_rate(1e9) * _GIGA) for kind, value in peaks),
        bandwidths=tuple(
            EmpiricalBandwidth(level=level, bytes_per_s=value.read_rate(1e9) * _GIGA) for level, value in levels
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
        "peaks": {peak.kind.value: _describe_peak(peak) for peak in roofs.peaks},
        "bandwidths": {found.level.value: _describe_bandwidth(found) for found in roofs.bandwidths},
    }
    return _leave_out_unknown(document)


def _describe_peak(peak: EmpiricalPeak) -> dict[str, Any]:
    return _leave_out_unknown(
        {"ops_per_s": peak.ops_per_s, "ops_per_cycle": peak.ops_per_cycle, "spread_ratio": peak.spread_ratio}
    )


def _describe_bandwidth(found: EmpiricalBandwidth) -> dict[str, Any]:
    return _leave_out_unknown(
        {
            "bytes_per_s": found.bytes_per_s,
            "bytes_per_cycle": found.bytes_per_cycle,
            "clock": None if found.clock is None else found.clock.value,
            "working_set_bytes": found.working_set_bytes,
            "spread_ratio": found.spread_ratio,
        }
    )


def _leave_out_unknown(members: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}


class KeptRoofs:
    """Finds the roofs that were kept of a device, and reads each file once. What cannot be used becomes a problem: nobody named it.

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
            remedy = "measure them again with gpa-lsp calibrate, or remove the file; theoretical ceilings are shown"
            self._problems.append(
                Problem(severity=ProblemSeverity.WARNING, message=message, path=path, place=place, remedy=remedy)
            )
            return None
