"""What the code of sources says as JSON."""

from collections.abc import Sequence

from gpa_lsp.code.symbolic_accesses.model import SymbolicAccess
from gpa_lsp.diagnosis.advice.find_statics import KernelFindings
from gpa_lsp.diagnosis.advice.static_model import StaticFinding
from gpa_lsp.diagnosis.advice.warp_facts import WarpFacts
from gpa_lsp.diagnosis.analyses.static.model import KernelStatics
from gpa_lsp.document.sarif import Json
from gpa_lsp.execution.prediction.static_source import SourceStatics
from gpa_lsp.foundation.json_records import pick
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
        **pick(unit, "compiler compute_capability is_host_left_out"),
        "compile_s": round(unit.seconds, 4),
        "messages": [pick(one, "severity text path=file line column number") for one in unit.messages],
        "notes": list(unit.notes),
        "problems": [str(problem) for problem in source.problems],
        "kernels": [_make_kernel(kernel) for kernel in source.kernels],
    }


def _make_kernel(kernel: KernelFindings) -> Json:
    statics, place = kernel.statics, kernel.place
    return {
        "mangled_name": statics.mangled_name,
        "name": demangle(statics.mangled_name),
        "file": None if place is None else place.file,
        "line": None if place is None else place.line,
        **pick(statics, "registers register_cap shared_static_bytes local_bytes spill_bytes barriers most_threads"),
        "occupancy": _make_occupancy(statics),
        "by_block": [
            {"threads": threads, **pick(one, "blocks_per_sm warps_per_sm ratio=occupancy_ratio")}
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
        **pick(access, "bytes_each=bytes_per_thread pattern"),
        "stride": stride.text if isinstance(stride, Code) else stride and str(stride),
        **pick(access, "cost=cost_per_request most=most_per_request ideal=ideal_per_request"),
        "condition": facts.describe_condition(access).strip() or None,
        "is_certain": access.is_certain,
        "instruction": access.instruction.text,
    }


def _make_occupancy(statics: KernelStatics) -> Json | None:
    """None where the size of the blocks is not known."""
    if statics.occupancy is None or statics.block is None:
        return None
    return {
        **pick(statics.block, "threads=threads_per_block origin=block_known_from dynamic_shared_bytes"),
        **pick(statics.occupancy, "blocks_per_sm warps_per_sm ratio=occupancy_ratio limiters"),
        "next_step": statics.next_step or None,
    }


def _make_finding(finding: StaticFinding) -> Json:
    return {
        **pick(finding, "check file line"),
        "inlined_through": [pick(frame, "file line function") for frame in finding.chain or ()],
        "message": finding.message,
        "remedy": finding.remedy or None,
        **pick(finding, "certainty loop_depth weight"),
        "instructions": [pick(one, "function pc_offset text") for one in finding.instructions],
    }
