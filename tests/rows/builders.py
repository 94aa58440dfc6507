"""Small functions, cubins, samples and launches for tests, without an ELF in sight."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gpa_lsp.code.binary.model import Cubin, Function, SubFunction
from gpa_lsp.profile.model import Device, Launch, LoadedFunction, Metric, Module, Profile, StallSamples

KERNEL = "_Z13short_def_usePKfPfii"  # of the fixture ``image``
BASE = 0x7F0000001000  # its address
DEVICE = Device(name="Test GPU", compute_capability=(8, 6), sm_count=4, sm_clock_hz=1e9)


def make_function(name: str, instruction_count: int, **overrides: Any) -> Function:
    """A function of ``instruction_count`` zeroed instructions."""
    values: dict[str, Any] = {
        "name": name,
        "is_entry": True,
        "symbol_index": None,
        "section_index": 1,
        "image": bytes(16 * instruction_count),
        "code_start": 0,
        "size_bytes": 16 * instruction_count,
        "registers": 32,
        "barriers": 0,
        "frame_bytes": 0,
        "stack_bytes": 0,
        "shared_static_bytes": 0,
        "sub_functions": (),
        "indirect_branch_targets": {},
        "call_symbols": {},
    }
    return Function(**{**values, **overrides})


def make_sub_function(name: str, first: int, instruction_count: int) -> SubFunction:
    """A local function by instruction numbers."""
    return SubFunction(name=name, start_offset=16 * first, size_bytes=16 * instruction_count)


def make_cubin(functions: Sequence[Function], calls: Sequence[tuple[str, str]] = ()) -> Cubin:
    """A cubin without an image behind it."""
    return Cubin(
        path=None,
        sm=86,
        sha256="0" * 64,
        image=b"",
        functions={function.name: function for function in functions},
        calls=tuple(calls),
        has_lines=False,
        has_ptx_lines=False,
    )


def make_samples(rows: Mapping[int, Mapping[str, tuple[int, int]]]) -> StallSamples:
    """Samples from {address: {reason: (all, latency)}}."""
    addresses = sorted(rows)
    reasons = tuple(sorted({reason for row in rows.values() for reason in row}))
    pairs = np.array(
        [[rows[address].get(reason, (0, 0)) for reason in reasons] for address in addresses], dtype=np.int64
    ).reshape(len(addresses), len(reasons), 2)
    return StallSamples(
        addresses=np.array(addresses, dtype=np.uint64),
        reasons=reasons,
        all_samples=pairs[:, :, 0].copy(),
        latency_samples=pairs[:, :, 1].copy(),
    )


def make_launch(mangled_name: str, **overrides: Any) -> Launch:
    """A launch without numbers, unless given."""
    values: dict[str, Any] = {
        "index": 0,
        "mangled_name": mangled_name,
        "plain_name": "",
        "demangled_name": "",
        "module_id": 1,
        "grid": (1, 1, 1),
        "block": (32, 1, 1),
        "device": DEVICE,
        "created_unix_s": None,
        "context_id": None,
        "stream_id": None,
        "metrics": {},
        "samples": None,
        "samples_truncated": False,
    }
    return Launch(**{**values, **overrides})


def make_executions(counts: Mapping[int, int]) -> dict[str, Metric]:
    """The ``inst_executed`` metric from {address: count}."""
    metric = Metric(
        name="inst_executed",
        value=None,
        instance_ids=tuple(counts),
        instance_values=tuple(counts.values()),
    )
    return {"inst_executed": metric}


def make_profile(image: bytes | None, *launches: Launch, base: int = BASE) -> Profile:
    """A profile of launches of one kernel."""
    functions = (LoadedFunction(name=KERNEL, address=base),)
    module = Module(module_id=1, image=image, compute_capability=(8, 0), functions=functions)
    return Profile(
        path=Path("p.ncu-rep"), format_name="test", tool_version=None, modules={1: module}, launches=launches
    )
