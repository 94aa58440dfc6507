"""Metrics of one launch: thousands of them, each decoded when somebody asks for it."""

import math
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar, overload

from google.protobuf.message import DecodeError

from gpa_lsp.profile.model import Metric, MetricScalar
from gpa_lsp.profile.ncu import schema

_OVER_TIME = 1  # Correlation kind of metrics whose instances are GPU time stamps in ns (2023.2 and later)

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
        """Half of the metrics that are asked for were not collected, and an exception for each takes its time."""
        data = self._encoded.get(name)
        return default if data is None else decode_metric(name, data)

    def __iter__(self) -> Iterator[str]:
        return iter(self._encoded)

    def __len__(self) -> int:
        return len(self._encoded)

    def __contains__(self, name: object) -> bool:
        return name in self._encoded

    def find_encoded(self, name: str) -> bytes:
        """The bytes of a metric's message, for readers that take whole columns from it.

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
    """The bytes with which a metric of that name begins."""
    return bytes(schema.Metric(name_id=name_id).SerializeToString())


def _find_name_id(data: bytes) -> int | None:
    """The name of a metric that can be decoded as a whole; None when it cannot."""
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
    """The content of a value message, whichever of the five encodings it uses; None when it is empty."""
    kind = value.WhichOneof("kind")
    if kind is None:
        return None
    content: MetricScalar | bytes = getattr(value, kind)
    return schema.read_text(content) if isinstance(content, bytes) else content


def decode_metric(name: str, data: bytes) -> Metric:
    """A metric from its message, which can be decoded."""
    message = schema.Metric.FromString(data)
    value = read_scalar(message.value) if message.HasField("value") else None
    is_over_time = message.correlation_kind == _OVER_TIME
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
