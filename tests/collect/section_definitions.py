"""The definitions of sections that a report carries: what Nsight Compute was to collect and show, in the version that wrote it."""

import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from gpa_lsp.profile.model import Launch
from gpa_lsp.profile.ncu.container import read_container
from gpa_lsp.profile.read import read_profile

_DEFINITION = 17
_IDENTIFIER = 1
_SET = 8
_BREAKDOWN = "breakdown:"


@dataclass(frozen=True)
class SectionedReport:
    """A report's first launch with the sections it was collected with."""

    path: Path
    version: tuple[int, int]
    launch: Launch
    definitions: dict[str, bytes]

    @property
    def capability(self) -> tuple[int, int]:
        """Compute capability of the GPU."""
        found = self.launch.device.compute_capability
        assert found is not None
        return found

    @cached_property
    def parts(self) -> dict[str, frozenset[str]]:
        """Throughput whose parts the launch lists → the parts' names."""
        return {
            name: frozenset(part.strip() for part in metric.value.split(","))
            for name, metric in self.launch.metrics.items()
            if name.startswith(_BREAKDOWN) and isinstance(metric.value, str)
        }

    def find_sections(self, name: str) -> set[str]:
        """The sections whose definitions name a metric, or a throughput that it is part of."""
        names = {name, *(whole for whole, parts in self.parts.items() if name in parts)}
        return {section for section, named in self._named.items() if names & named}

    @cached_property
    def _named(self) -> dict[str, set[str]]:
        return {section: _list_names(definition) for section, definition in self.definitions.items()}

    def find_sets(self, section: str) -> set[str]:
        """The sets (``--set``) that a section belongs to."""
        fields = list_fields(self.definitions[section])
        return {name.decode() for number, content in fields if number == _SET for _, name in list_fields(content)}

    def has(self, name: str) -> bool:
        """Whether the launch has a metric."""
        return name in self.launch.metrics


def read_sectioned_reports(folder: Path) -> list[SectionedReport]:
    """The reports of a folder."""
    return [_read_report(path) for path in sorted(folder.glob("*.ncu-rep"))]


def _read_report(path: Path) -> SectionedReport:
    data = path.read_bytes()
    profile = read_profile(path)
    year, number = profile.tool_version.split(".")[:2]
    place = read_container(io.BytesIO(data), len(data)).results[0]
    fields = list_fields(data[place.offset : place.offset + place.size_bytes])
    definitions = (content for number, content in fields if number == _DEFINITION)
    return SectionedReport(
        path=path,
        version=(int(year), int(number)),
        launch=profile.launches[0],
        definitions={
            next(content for number, content in list_fields(found) if number == _IDENTIFIER).decode(): found
            for found in definitions
        },
    )


_NAME = re.compile(rb"(?:[a-z]+:)?[a-z0-9]+_[\w.]*\w")


def _list_names(definition: bytes) -> set[str]:
    """All words in an encoded definition that look like a metric's name."""
    return {name.decode() for name in _NAME.findall(definition)}


def list_fields(message: bytes) -> Iterator[tuple[int, bytes]]:
    """The length-delimited fields of a protobuf message."""
    position = 0
    while position < len(message):
        key, position = _read_varint(message, position)
        if key & 7 == 2:
            length, position = _read_varint(message, position)
            yield key >> 3, message[position : position + length]
            position += length
        elif key & 7 == 0:
            _, position = _read_varint(message, position)
        else:
            position += {1: 8, 5: 4}[key & 7]


def _read_varint(message: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        octet = message[position]
        value |= (octet & 127) << shift
        position += 1
        shift += 7
        if octet < 128:
            return value, position
