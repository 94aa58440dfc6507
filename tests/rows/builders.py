"""Small joined kernels, cubins and launches for tests, without an ELF in sight."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gpa_lsp.code.binary.model import ControlCodes, Cubin, Flow, Function, Instructions, ResourceLists, SubFunction
from gpa_lsp.code.control_flow.build import build_flow_graph
from gpa_lsp.kernel.model import FunctionSamples, Kernel
from gpa_lsp.kernel.scatter import index_routines
from gpa_lsp.profile.model import Device, Launch, Metric, StallSamples

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
        is_relocatable=False,
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


def make_instructions(instruction_count: int, calls: Mapping[int, int | None]) -> Instructions:
    """Instructions that do nothing but call: {instruction number: target instruction number, or None for a call through a relocation}."""
    zeros = np.zeros(instruction_count, dtype=np.uint8)
    flow = np.full(instruction_count, Flow.NONE, dtype=np.uint8)
    target = np.full(instruction_count, -1, dtype=np.int64)
    for number, callee in calls.items():
        flow[number] = Flow.CALL
        target[number] = -1 if callee is None else 16 * callee
    empty = ResourceLists(starts=np.zeros(instruction_count + 1, np.int32), numbers=np.zeros(0, np.int16))
    return Instructions(
        pc_offsets=16 * np.arange(instruction_count, dtype=np.int64),
        mnemonics=("NOP",),
        mnemonic_index=np.zeros(instruction_count, dtype=np.int32),
        texts=("NOP",) * instruction_count,
        guard=np.full(instruction_count, -1, dtype=np.int16),
        guard_negated=np.zeros(instruction_count, dtype=np.bool_),
        control=ControlCodes(
            stall_cycles=zeros,
            yield_flag=zeros,
            write_barrier=zeros + 7,
            read_barrier=zeros + 7,
            wait_mask=zeros,
            reuse=zeros,
        ),
        reads=empty,
        writes=empty,
        flow=flow,
        target=target,
    )


def make_section(function: Function, samples: Sequence[int], *, calls: Mapping[int, int | None] | None = None,
                 executions: Mapping[int, int] | None = None) -> FunctionSamples:  # fmt: skip
    """A section with samples of one reason, ``wait``, per instruction."""
    count = function.size_bytes // 16
    instructions = make_instructions(count, calls or {})
    executed = np.full(count, -1, dtype=np.int64)
    for number, times in (executions or {}).items():
        executed[number] = times
    every = np.array([*samples, *[0] * (count - len(samples))], dtype=np.int64).reshape(-1, 1)
    return FunctionSamples(
        name=function.name,
        function=function,
        instructions=instructions,
        graph=build_flow_graph(function, instructions),
        control=instructions.control,
        lines=None,
        chain_index=np.full(count, -1, dtype=np.int32),
        routine_index=index_routines(function, instructions.pc_offsets),
        pc_offsets=instructions.pc_offsets,
        all_samples=every,
        latency_samples=every // 2,
        executions=executed,
    )


def make_kernel(*sections: FunctionSamples, launches: Sequence[Launch] = ()) -> Kernel:
    """A kernel of some sections; the first is the kernel itself."""
    return Kernel(
        mangled_name=sections[0].name,
        name=sections[0].name,
        profile_path=None,
        module=None,
        cubin=None,
        device=DEVICE,
        architecture=None,
        launches=tuple(launches) or (make_launch(sections[0].name),),
        reasons=("wait",),
        functions=sections,
    )
