"""Writes Nsight Compute reports of a few hundred bytes, so that tests need no real one."""

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpa_lsp.profile.model import Launch, Profile
from gpa_lsp.profile.ncu.schema import MESSAGES
from gpa_lsp.profile.read import read_profile

BASE_ADDRESS = 0x7F0000001000
STALL_PREFIX = "smsp__pcsamp_warps_issue_stalled_"
DEVICE_ATTRIBUTES = {
    "device__attribute_compute_capability_major": 8,
    "device__attribute_compute_capability_minor": 6,
    "device__attribute_multiprocessor_count": 46,
    "device__attribute_clock_rate": 1725000,
    "device__attribute_display_name": "Test GPU",
}

Scalar = int | float | str
Counts = Mapping[int, tuple[int, int]]
"""pc offset → (all, latency)."""


def encode_value(content: Scalar | None, kind: str | None = None) -> Any:
    """A value message; int becomes uint64, float float64, unless ``kind`` names another encoding."""
    value = MESSAGES["Value"]()
    if content is None:
        return value
    if kind is None:
        kind = {int: "uint64", float: "float64", str: "text"}[type(content)]
    setattr(value, kind, content.encode() if isinstance(content, str) else content)
    return value


def encode(message_name: str, /, **fields: Any) -> bytes:
    """A message of our schema, encoded."""
    return bytes(MESSAGES[message_name](**fields).SerializeToString())


def encode_rule(identifier: str, *, items: Sequence[Any] = (), markers: Sequence[bytes] = ()) -> bytes:
    rule = MESSAGES["Rule"](identifier=identifier.encode(), name=b"Rule", section=b"S", markers=markers)
    rule.body.items.extend(item.SerializeToString() for item in items)
    return bytes(rule.SerializeToString())


def frame_entry(message: Any) -> bytes:
    data = message if isinstance(message, bytes) else message.SerializeToString()
    return struct.pack("<I", len(data)) + data


@dataclass
class ReportBuilder:
    """Collects sources and results; every entry gets its own block, as in real reports."""

    folder: Path | None = None
    strings: list[str] = field(default_factory=list)
    blocks: list[tuple[Any, bytes]] = field(default_factory=list)
    strings_last: bool = False
    process_id: int = 7

    def name_id(self, name: str) -> int:
        if name not in self.strings:
            self.strings.append(name)
        return self.strings.index(name)

    def encode_metric(
        self,
        name: str,
        value: Scalar | None = None,
        instances: Sequence[tuple[Scalar, Scalar]] = (),
        *,
        kind: str | None = None,
        correlation_kind: int | None = None,
    ) -> bytes:
        metric = MESSAGES["Metric"](name_id=self.name_id(name))
        if value is not None:
            metric.value.CopyFrom(encode_value(value, kind))
        for identifier, content in instances:
            metric.instances.add(correlation_id=encode_value(identifier), value=encode_value(content, kind))
        if correlation_kind is not None:
            metric.correlation_kind = correlation_kind
        return metric.SerializeToString()

    def encode_samples(self, counts: Mapping[str, Counts], *, base: int = BASE_ADDRESS) -> list[bytes]:
        """The stall metrics, every reason listing every sampled instruction, as real reports do."""
        offsets = sorted({offset for by_offset in counts.values() for offset in by_offset})
        total = sum(pair[0] for by_offset in counts.values() for pair in by_offset.values())
        metrics = [self.encode_metric("smsp__pcsamp_sample_count", total)]
        for reason, by_offset in counts.items():
            for part, suffix in ((0, ""), (1, "_not_issued")):
                instances = [(base + offset, by_offset.get(offset, (0, 0))[part]) for offset in offsets]
                metrics.append(self.encode_metric(f"{STALL_PREFIX}{reason}{suffix}", None, instances))
        return metrics

    def add_block(self, sources: Sequence[Any] = (), results: Sequence[Any] = (), session: Any = None) -> None:
        payload = b"".join(frame_entry(entry) for entry in (*sources, *results))
        header = MESSAGES["BlockHeader"](
            source_count=len(sources), result_count=len(results), payload_bytes=len(payload)
        )
        header.process.process_id = self.process_id
        header.string_table.SetInParent()
        if session is not None:
            header.sessions.append(session.SerializeToString())
        self.blocks.append((header, payload))

    def add_source(
        self,
        source_id: int = 1,
        *,
        image: bytes | None = b"\x7fELF image",
        functions: Mapping[str, int] | None = None,
        files: Mapping[str, str] | None = None,
    ) -> None:
        source = MESSAGES["Source"](source_id=source_id, compute_capability_packed=8 << 16 | 6)
        if image is not None:
            source.image = image
        for index, (name, address) in enumerate((functions or {}).items()):
            function = encode("Symbol", name=name.encode(), address=address, symbol_index=index)
            source.addresses.functions.append(function)
        for path, text in (files or {}).items():
            source.files.files.append(encode("SourceFile", path=path.encode(), content=text.encode()))
        self.add_block(sources=[source])

    def make_result(self, name: str = "_Z4axpyPf", *, metrics: Sequence[bytes] = (), source_id: int | None = 1) -> Any:
        result = MESSAGES["Result"](
            thread_id=11,
            mangled_name=name.encode(),
            plain_name=b"axpy",
            demangled_name=b"axpy(float *)",
            created_unix_s=1_700_000_000,
            context_id=1,
            stream_id=7,
        )
        result.grid.x, result.grid.y, result.grid.z = 128, 2, 1
        result.block.x, result.block.y, result.block.z = 256, 1, 1
        if source_id is not None:
            result.source.source_id = source_id
        result.metrics.extend(metrics)
        return result

    def add_result(self, result: Any) -> None:
        self.add_block(results=[result])

    def add_session(
        self, *, devices: Sequence[int] = (0,), tool: str | None = "2025.1.0.0 (build 1) (public-release)"
    ) -> None:
        session = MESSAGES["Session"]()
        for index in devices:
            device = session.devices.add(index=index, name=f"GPU {index}".encode())
            for name, value in DEVICE_ATTRIBUTES.items():
                device.attributes.add(name=name.encode(), value=encode_value(value))
        if tool is not None:
            session.providers.add(name=b"Nsight Compute Target", version=tool.encode())
        self.add_block(session=session)

    def write(self, name: str = "test.ncu-rep", **options: int) -> Path:
        path = self.folder / name
        path.write_bytes(self.build(**options))
        return path

    def read(self, **options: int) -> Profile:
        return read_profile(self.write(**options))

    def read_launch(self, *metrics: bytes) -> Launch:
        """Add a launch with some metrics, and read it."""
        self.add_result(self.make_result(metrics=metrics, source_id=None))
        return self.read().launches[-1]

    def build(self, *, container_version: int = 7) -> bytes:
        header = MESSAGES["FileHeader"](container_version=container_version).SerializeToString()
        out = [b"NVR\0", struct.pack("<I", len(header)), header]
        holder = len(self.blocks) - 1 if self.strings_last else 0
        for index, (block_header, payload) in enumerate(self.blocks):
            full = type(block_header)()
            full.CopyFrom(block_header)
            if index == holder:
                full.string_table.strings.extend(name.encode() for name in self.strings)
            data = full.SerializeToString()
            out += [struct.pack("<I", len(data)), data, payload]
        return b"".join(out)


def build_small_report() -> bytes:
    """One module, one launch with samples of two reasons at three instructions, a device, a rule, a call stack, a range."""
    builder = ReportBuilder()
    metrics = [
        builder.encode_metric("gpu__time_duration.sum", 12800.0),
        builder.encode_metric("launch__function_pcs", 1, [(0, BASE_ADDRESS)]),
        builder.encode_metric("device__attribute_device_index", 0),
        builder.encode_metric("inst_executed", 30, [(BASE_ADDRESS, 10), (BASE_ADDRESS + 16, 20)]),
        *builder.encode_samples(
            {"long_scoreboard": {16: (90, 85), 32: (300, 200)}, "selected": {0: (7, 0), 16: (3, 0)}}
        ),
    ]
    result = builder.make_result(metrics=metrics)
    frame = encode("Frame", module=b"/home/x/app", address=0x400000, function=b"main", file=b"a.cu", line=9)
    result.call_stack.frames.append(frame)
    nvtx = MESSAGES["NvtxState"]()
    nvtx.domains.add(domain_id=0, name=b"<default domain>")
    nvtx.threads.add(thread_id=11).stacks.add(domain_id=0).ranges.add(name=b"step")
    result.nvtx = nvtx.SerializeToString()
    item = MESSAGES["RuleItem"]()
    item.message.text, item.message.kind = b"see @section:A:B@", 4
    item.speedup.scope, item.speedup.percent = 2, 26.5
    marker = encode("RuleMarker", kind=0, address=BASE_ADDRESS + 16, text=b"hot", message_kind=4)
    result.rules.append(encode_rule("CPIStall", items=[item], markers=[marker]))
    builder.add_source(functions={"_Z4axpyPf": BASE_ADDRESS}, files={"/src/a.cu": "int x;\n"})
    builder.add_result(result)
    builder.add_session()
    return builder.build()
