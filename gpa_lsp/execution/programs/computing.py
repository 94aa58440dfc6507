"""What a function of cuBLAS or cuFFT gives, computed by numpy in the process that emulates kernels: :func:`compute`."""

from collections.abc import Callable

from gpa_lsp.execution.emulator.resident import ResidentMemory
from gpa_lsp.execution.programs.allocations import AllocationLedger
from gpa_lsp.execution.programs.host_blas import ROUTINES
from gpa_lsp.execution.programs.host_fft import TRANSFORMS, transform
from gpa_lsp.execution.programs.library_calls import LibraryCall, Refusal, RefusedCall, TimeIsOver
from gpa_lsp.execution.programs.messages import (
    ComputeRequest,
    CudaError,
    EventKind,
    MalformedMessage,
    MemoryEvent,
)

# ``cublasStatus_t`` and ``cufftResult``
_STATUSES = {
    "cublas": {Refusal.INVALID_VALUE: 7, Refusal.UNREACHABLE: 13, Refusal.NOT_SUPPORTED: 15, Refusal.NO_MEMORY: 3},
    "cufft": {Refusal.UNREACHABLE: 6, Refusal.NO_MEMORY: 2},
}


def compute(
    request: ComputeRequest, memory: ResidentMemory, ledger: AllocationLedger, is_over: Callable[[], bool]
) -> tuple[CudaError, bytes, Refusal | None]:
    """Compute it.

    Returns:
        The error, the status of the library with the result behind it, and why it was refused.

    Raises:
        MalformedMessage: it is nothing that the libraries ask for.
    """
    call = LibraryCall(
        request,
        memory,
        on_access=lambda address: ledger.take(
            [
                MemoryEvent(
                    kind=EventKind.LOCATE, path=request.path, target=address, source=0, size_bytes=0, is_gapped=False
                )
            ]
        ),
        is_over=is_over,
    )
    refusal = None
    try:
        call.check_time()
        _run(call, request)
    except TimeIsOver:
        return CudaError.LAUNCH_TIMEOUT, b"", None
    except RefusedCall as refused:
        refusal = refused.why
    except MemoryError:
        refusal = Refusal.NO_MEMORY
    library = "cufft" if request.function in TRANSFORMS else "cublas"
    status = 0 if refusal is None else _STATUSES[library][refusal]
    return CudaError.SUCCESS, status.to_bytes(4, "little") + (b"" if refusal else call.answer), refusal


def _run(call: LibraryCall, request: ComputeRequest) -> None:
    routine = ROUTINES.get(request.function)
    if request.function in TRANSFORMS:
        transform(call, request.arguments)
    elif routine is None or len(routine.parameters) != len(request.arguments):
        raise MalformedMessage(f"there is no function {request.function!r} with so many arguments")
    else:
        routine.run(call, request.arguments)
