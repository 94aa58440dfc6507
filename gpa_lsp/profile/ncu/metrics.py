"""Metrics of one launch, decoded on access; devices; and results of NVIDIA's rules."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeVar, get_args, overload

from google.protobuf.message import DecodeError

from gpa_lsp.profile.model import (
    Device,
    MessageKind,
    Metric,
    MetricScalar,
    RuleMessage,
    RuleResult,
    RuleSpeedup,
    SourceMarker,
)
from gpa_lsp.profile.ncu import schema
from gpa_lsp.profile.ncu.schema import Rule, RuleItem, RuleMarker, read_text

OVER_TIME = 1  # Correlation kind of metrics whose instances are GPU time stamps in ns (2023.2 and later)

_LARGE_BYTES = 1 << 16
_MIN_INSTANCE_BYTES = 6  # Real instances take at least 10; a metric of empty ones was made to fill memory

_Other = TypeVar("_Other")


class LazyMetrics(Mapping[str, Metric]):
    """Metric name → :class:`Metric`, decoded on each access and not kept.

    Only the encoded bytes are held, so that a launch costs what it costs in the file, can be pickled to another process, and is never changed by
    being read.
    """

    __slots__ = ("_encoded",)

    def __init__(self, encoded: dict[str, bytes]) -> None:
        self._encoded = encoded

    def __getitem__(self, name: str) -> Metric:
        return decode_metric(name, self._encoded[name])

    @overload
    def get(self, name: str, default: None = None, /) -> Metric | None: ...

    @overload
    def get(self, name: str, default: Metric | _Other, /) -> Metric | _Other: ...

    def get(self, name: str, default: Metric | _Other | None = None, /) -> Metric | _Other | None:
        """Avoids exceptions: half of the metrics that are asked for were not collected."""
        data = self._encoded.get(name)
        return default if data is None else decode_metric(name, data)

    def __iter__(self) -> Iterator[str]:
        return iter(self._encoded)

    def __len__(self) -> int:
        return len(self._encoded)

    def __contains__(self, name: object) -> bool:
        return name in self._encoded

    def find_encoded(self, name: str) -> bytes:
        """Bytes of a metric's message, for readers that decode whole columns.

        Raises:
            KeyError: the launch has no such metric.
        """
        return self._encoded[name]

    def __repr__(self) -> str:
        return f"LazyMetrics({len(self)} metrics)"


def index_metrics(encoded_metrics: list[bytes], strings: list[str]) -> tuple[LazyMetrics, list[str]]:
    """Name the metrics of a launch.

    Every message is decoded once to see that it can be, so that a later access never fails. Where a name occurs twice, the last one counts:
    the two are usually equal, and where they were not, only the last agreed with the elapsed cycles (compute capability 9.0, 2025.1).
    """
    encoded: dict[str, bytes] = {}
    undecodable = nameless = 0
    for data in encoded_metrics:
        name_id = _find_name_id(data)
        if name_id is None:
            undecodable += 1
            continue
        if name_id >= len(strings):
            nameless += 1
            continue
        encoded[strings[name_id]] = data
    problems = []
    if undecodable:
        problems.append(f"{undecodable} metrics cannot be decoded and are left out")
    if nameless:
        problems.append(f"{nameless} metrics name no entry of the string table and are left out")
    return LazyMetrics(encoded), problems


def encode_name_id(name_id: int) -> bytes:
    """First bytes of a metric with that name."""
    return bytes(schema.Metric(name_id=name_id).SerializeToString())


def _find_name_id(data: bytes) -> int | None:
    """Name of a metric that can be decoded as a whole; None if it cannot."""
    try:
        if len(data) > _LARGE_BYTES:
            # First without its instances, whose number is not yet known to be honest.
            instances = schema.ColumnMetric.FromString(data).instances
            if len(instances) * _MIN_INSTANCE_BYTES > len(data):
                return None
        return int(schema.Metric.FromString(data).name_id)
    except DecodeError:
        return None


def read_scalar(value: Any) -> MetricScalar | None:
    """Content of a value message in any of the five encodings; None if empty."""
    kind = value.WhichOneof("kind")
    if kind is None:
        return None
    content: MetricScalar | bytes = getattr(value, kind)
    return schema.read_text(content) if isinstance(content, bytes) else content


def decode_metric(name: str, data: bytes) -> Metric:
    """Decode a metric's message, which is known to be sound."""
    message = schema.Metric.FromString(data)
    value = read_scalar(message.value) if message.HasField("value") else None
    is_over_time = message.correlation_kind == OVER_TIME
    if not message.instances:  # nearly all that are asked for
        return Metric(name=name, value=value, instance_ids=(), instance_values=(), over_time=is_over_time)
    values = (read_scalar(instance.value) for instance in message.instances)
    return Metric(
        name=name,
        value=value,
        instance_ids=tuple(_read_id(read_scalar(instance.correlation_id)) for instance in message.instances),
        instance_values=tuple(0 if value is None else value for value in values),
        over_time=is_over_time,
    )


def _read_id(content: MetricScalar | None) -> int | str:
    # Never seen to be absent or a fraction; 0 is what protobuf means by absence.
    if isinstance(content, float):
        return int(content) if math.isfinite(content) else 0
    return 0 if content is None else content


_MOST = (1 << 31) - 1  # Attributes are C integers; a count or a clock is never negative

_PREFIX = "device__attribute_"
_TOOL_PROVIDER = b"Nsight Compute Target"


def read_tool_version(sessions: list[Any]) -> str | None:
    """Version as the tool writes it, e.g. ``2025.1.0.0 (build 35237751) (public-release)``; None in reports of 2019."""
    for session in sessions:
        for provider in session.providers:
            if provider.name == _TOOL_PROVIDER and provider.version:
                return read_text(provider.version)
    return None


def read_devices(sessions: list[Any]) -> dict[int, Device]:
    """Devices of the session by index; pieces of one device are merged."""
    names: dict[int, str] = {}
    attributes: dict[int, dict[str, MetricScalar]] = {}
    for session in sessions:
        for device in session.devices:
            found = attributes.setdefault(device.index, {})
            if device.name:
                names[device.index] = read_text(device.name)
            for attribute in device.attributes:
                value = read_scalar(attribute.value)
                if value is not None:
                    found[read_text(attribute.name)] = value
    return {index: build_device(found, names.get(index)) for index, found in attributes.items()}


def find_device(metrics: LazyMetrics, devices: Mapping[int, Device]) -> Device:
    """Device a launch ran on.

    A launch says the device's index and, as metrics, all its attributes; the session says them once per device and with its name.
    """
    for name in (f"{_PREFIX}device_index", "launch__device_id"):
        if name in metrics:
            index = metrics[name].value
            if isinstance(index, int | float) and math.isfinite(index) and int(index) in devices:
                return devices[int(index)]
    own = _build_own_device(tuple((name, metrics.find_encoded(name)) for name in metrics if name.startswith(_PREFIX)))
    if not own.attributes and len(devices) == 1:
        return next(iter(devices.values()))
    return own


@lru_cache(maxsize=16)
def _build_own_device(encoded: tuple[tuple[str, bytes], ...]) -> Device:
    """Device by a launch's own metrics; cached, as launches repeat the same hundreds of attributes."""
    own = {name: decode_metric(name, data).value for name, data in encoded}
    return build_device({name: value for name, value in own.items() if value is not None}, None)


def build_device(attributes: dict[str, MetricScalar], name: str | None) -> Device:
    """Device from its attributes by the profiler's names."""

    def read(attribute: str) -> int | None:
        value = attributes.get(_PREFIX + attribute)
        return int(value) if isinstance(value, int | float) and 0 <= value <= _MOST else None

    major, minor = read("compute_capability_major"), read("compute_capability_minor")
    shown_name = attributes.get(f"{_PREFIX}display_name")
    clock_khz = read("clock_rate") or read("max_gpu_frequency_khz")
    return Device(
        name=name or (shown_name if isinstance(shown_name, str) and shown_name else None),
        compute_capability=(major, minor) if major is not None and minor is not None else None,
        sm_count=read("multiprocessor_count") or None,
        sm_clock_hz=clock_khz * 1e3 if clock_khz else None,
        attributes=attributes,
    )


# Decode the small parts of an entry (rules, call-stack frames, functions of a table) one by one, as many as its size can honestly hold.
#
# Two bytes of a report can be an empty message that costs hundreds of bytes once it is decoded. Repeated parts are therefore declared as bytes in the
# schema and decoded here: real ones take tens of bytes each, and an entry that holds far more of them than its size suggests was made to fill
# memory; the rest of it is left out. A part that cannot be decoded costs only itself.

_FREE_PARTS = 1000
_BYTES_PER_PART = 16
_MAX_PART_BYTES = 1 << 20


class Allowance:
    """Number of parts one entry may still have, and counts of those left out."""

    def __init__(self, size_bytes: int) -> None:
        self._left = _FREE_PARTS + size_bytes // _BYTES_PER_PART
        self._left_out = 0
        self._broken = 0

    def take(self, parts: Sequence[Any]) -> Sequence[Any]:
        """The first of the parts, as many as are still allowed.

        >>> allowance = Allowance(size_bytes=0)
        >>> len(allowance.take(range(999))), len(allowance.take(range(5)))
        (999, 1)
        >>> allowance.describe()
        ['4 parts are more, or larger, than an entry of this size holds; they are left out']
        """
        count = min(len(parts), self._left)
        self._left -= count
        self._left_out += len(parts) - count
        return parts if count == len(parts) else parts[:count]

    def decode(self, message_class: Any, parts: Sequence[bytes], *, is_flat: bool = False) -> Iterator[Any]:
        """Decode encoded parts, as far as they are allowed and sound.

        Args:
            parts: their bytes.
        """
        for data in self.take(parts):
            if len(data) > _MAX_PART_BYTES and not is_flat:
                self._left_out += 1
                continue
            try:
                message = message_class.FromString(data)
            except DecodeError:
                self._broken += 1
                continue
            yield message

    def describe(self) -> list[str]:
        """A sentence for each reason why parts were left out."""
        problems = []
        if self._left_out:
            problems.append(
                f"{self._left_out} parts are more, or larger, than an entry of this size holds; they are left out"
            )
        if self._broken:
            problems.append(f"{self._broken} parts cannot be decoded and are left out")
        return problems


_KINDS: tuple[MessageKind, ...] = get_args(MessageKind)
_GLOBAL_SCOPE = 2
_SASS_MARKER = 0
_MARKUP = re.compile(r"@(url|section|source):([^@\n]*)@")


def read_rules(result: Any, allowance: Allowance) -> tuple[RuleResult, ...]:
    """Decode the rule results of a launch.

    Until 2023.1 optimization advice has kind ``warning``; ``optimization``, speedups and markers exist from 2023.2 on.
    """
    return tuple(_read_rule(rule, allowance) for rule in allowance.decode(Rule, result.rules))


def _read_rule(rule: Any, allowance: Allowance) -> RuleResult:
    items = list(allowance.decode(RuleItem, rule.body.items))
    return RuleResult(
        identifier=read_text(rule.identifier),
        name=read_text(rule.name),
        section=read_text(rule.section),
        messages=tuple(_read_message(item.message) for item in items if item.HasField("message")),
        speedups=tuple(
            RuleSpeedup(percent=item.speedup.percent, is_global=item.speedup.scope == _GLOBAL_SCOPE)
            for item in items
            if item.HasField("speedup")
        ),
        markers=tuple(_read_marker(marker) for marker in allowance.decode(RuleMarker, rule.markers)),
    )


def strip_markup(text: str) -> str:
    """Replace the profiler's links by the words they show.

    >>> strip_markup("see the @section:Occupancy:Occupancy@ section or the @url:guide:https://example.org/a#b@")
    'see the Occupancy section or the guide'
    >>> strip_markup("@source:a.cu:15:a.cu, line 16@ of a@b.c")
    'a.cu, line 16 of a@b.c'
    """
    return _MARKUP.sub(lambda match: _show_link(match[1], match[2]), text)


def _show_link(kind: str, content: str) -> str:
    # A url link is text:address, a section link identifier:text, a source link position:text (the position may itself have colons).
    if kind == "url":
        return content.partition(":")[0]
    if kind == "section":
        return content.partition(":")[2] or content
    return content.rpartition(":")[2]


def _read_kind(number: int) -> MessageKind:
    return _KINDS[number] if number < len(_KINDS) else "info"


def _read_message(message: Any) -> RuleMessage:
    return RuleMessage(
        kind=_read_kind(message.kind),
        title=strip_markup(read_text(message.title)),
        text=strip_markup(read_text(message.text)).strip(),
    )


def _read_marker(marker: Any) -> SourceMarker:
    is_instruction = marker.kind == _SASS_MARKER
    return SourceMarker(
        address=marker.address if is_instruction else None,
        file=None if is_instruction else read_text(marker.file),
        line=None if is_instruction else marker.line,
        text=strip_markup(read_text(marker.text)),
        kind=_read_kind(marker.message_kind),
    )
