"""What the code of sources says as JSON."""

from collections.abc import Sequence

from gpa_lsp.code.symbolic_accesses.model import SymbolicAccess
from gpa_lsp.diagnosis.advice.find_statics import KernelFindings
from gpa_lsp.diagnosis.advice.static_model import StaticFinding
from gpa_lsp.diagnosis.advice.warp_facts import WarpFacts
from gpa_lsp.diagnosis.analyses.static.model import KernelStatics
from gpa_lsp.document.sarif import Json
from gpa_lsp.execution.compiler.model import CompilerMessage
from gpa_lsp.execution.prediction.static_source import SourceStatics
from gpa_lsp.foundation.prose import Code
from gpa_lsp.kernel.names import demangle

SCHEMA = "gpa-lsp static 1"


def make_static_json(sources: Sequence[SourceStatics]) -> Json:
    """Everything that is known of the sources, numbers as they are; nothing in it was measured."""
    return {"schema": SCHEMA, "sources": [_make_source(source) for source in sources]}


def _make_source(source: SourceStatics) -> Json:
    unit = source.unit
    return {
        "path": str(source.path),
        "compiler": unit.compiler,
        "compute_capability": list(unit.compute_capability),
        "is_host_left_out": unit.is_host_left_out,
        "compile_s": round(unit.seconds, 4),
        "messages": [_make_message(message) for message in unit.messages],
        "notes": list(unit.notes),
        "problems": [str(problem) for problem in source.problems],
        "kernels": [_make_kernel(kernel) for kernel in source.kernels],
    }


def _make_message(message: CompilerMessage) -> Json:
    return {
        "severity": message.severity.value,
        "text": message.text,
        "file": None if message.path is None else str(message.path),
        "line": message.line,
        "column": message.column,
        "number": message.number,
    }


def _make_kernel(kernel: KernelFindings) -> Json:
    statics, place = kernel.statics, kernel.place
    return {
        "mangled_name": statics.mangled_name,
        "name": demangle(statics.mangled_name),
        "file": None if place is None else place.file,
        "line": None if place is None else place.line,
        "registers": statics.registers,
        "register_cap": statics.register_cap,
        "shared_static_bytes": statics.shared_static_bytes,
        "local_bytes": statics.local_bytes,
        "spill_bytes": statics.spill_bytes,
        "barriers": statics.barriers,
        "most_threads": statics.most_threads,
        "occupancy": _make_occupancy(statics),
        "by_block": [
            {
                "threads": threads,
                "blocks_per_sm": one.blocks_per_sm,
                "warps_per_sm": one.warps_per_sm,
                "occupancy_ratio": one.ratio,
            }
            for threads, one in statics.by_block
        ],
        "findings": [_make_finding(finding) for finding in kernel.findings],
        "requests": []
        if kernel.warps is None
        else [_make_request(one, kernel.warps) for one in kernel.warps.found.accesses],
    }


def _make_request(access: SymbolicAccess, facts: WarpFacts) -> Json:
    """What the PTX says of an access; costs are sectors of global memory, wavefronts of shared memory, and null where unknown."""
    frame = next(iter(access.instruction.chain or ()), None)
    stride = facts.describe_stride(access)
    return {
        "file": None if frame is None else frame.file,
        "line": None if frame is None else frame.line,
        "space": access.space.name.lower(),
        "kind": access.kind.name.lower(),
        "array": facts.find_array(access),
        "bytes_per_thread": access.bytes_each,
        "pattern": access.pattern.value,
        "stride": stride.text if isinstance(stride, Code) else stride and str(stride),
        "cost_per_request": access.cost,
        "most_per_request": access.most,
        "ideal_per_request": access.ideal,
        "condition": facts.describe_condition(access).strip() or None,
        "is_certain": access.is_certain,
        "instruction": access.instruction.text,
    }


def _make_occupancy(statics: KernelStatics) -> Json | None:
    """None where the size of the blocks is not known."""
    if statics.occupancy is None or statics.block is None:
        return None
    return {
        "threads_per_block": statics.block.threads,
        "block_known_from": statics.block.origin.value,
        "dynamic_shared_bytes": statics.block.dynamic_shared_bytes,
        "blocks_per_sm": statics.occupancy.blocks_per_sm,
        "warps_per_sm": statics.occupancy.warps_per_sm,
        "occupancy_ratio": statics.occupancy.ratio,
        "limiters": [limit.value for limit in statics.occupancy.limiters],
        "next_step": statics.next_step or None,
    }


def _make_finding(finding: StaticFinding) -> Json:
    return {
        "check": finding.check,
        "file": finding.file,
        "line": finding.line,
        "inlined_through": [
            {"file": frame.file, "line": frame.line, "function": frame.function} for frame in finding.chain or ()
        ],
        "message": finding.message,
        "remedy": finding.remedy or None,
        "certainty": finding.certainty.value,
        "loop_depth": finding.loop_depth,
        "weight": finding.weight,
        "instructions": [
            {"function": one.function, "pc_offset": one.pc_offset, "text": one.text} for one in finding.instructions
        ],
    }
