"""Where on the host a launch came from: CPU call stack and NVTX ranges.

Source: reports of compute capability 8.0 and 8.6 with both collected (2022.3, 2024.1). Established there:

* Call stack (result field 28): repeated frame of 1 module path, 2 absolute address, 3 source file, 4 function (demangled), 5 line. Innermost frame
  first (``cudaLaunchKernel`` above ``main``). Empty text and line 0 mean unknown; the address is the return address in the frame.
* NVTX state (result field 21): 1 repeated domain {1 id, 2 name} (id 0 is ``<default domain>``); 2 repeated thread {1 thread id, equal to the
  result's own, 2 repeated {1 domain id, 3 repeated push/pop range, outermost first}}. A range is {1 name, 2 attributes (version, colour, payload,
  message; present only when the program gave some), 3 number of API calls made before it was pushed}. 3 repeated {1 domain id}: state of the
  process as a whole, empty in every report seen; where start/end ranges stand is therefore not established, and they are not read.
"""

from pathlib import PurePosixPath, PureWindowsPath
from typing import Any

from gpa_lsp.profile.model import HostFrame
from gpa_lsp.profile.ncu.allowance import Allowance
from gpa_lsp.profile.ncu.schema import Frame, NvtxState, read_text

_DEFAULT_DOMAIN = 0


def read_call_stack(result: Any, allowance: Allowance) -> tuple[HostFrame, ...]:
    """CPU frames, innermost first; empty when not collected."""
    return tuple(_read_frame(frame) for frame in allowance.decode(Frame, result.call_stack.frames))


def read_nvtx_ranges(result: Any, allowance: Allowance) -> tuple[str, ...]:
    """Names of the push/pop ranges the launching thread was in, outermost first within a domain, domain by domain.

    A range of another domain than the default one is written as Nsight Compute's filters write it: ``domain@range``.
    """
    if not result.nvtx:
        return ()
    names: list[str] = []
    for state in allowance.decode(NvtxState, [result.nvtx]):
        domains = {domain.domain_id: read_text(domain.name) for domain in allowance.take(state.domains)}
        own = [thread for thread in allowance.take(state.threads) if thread.thread_id == result.thread_id]
        for stack in (stack for thread in own for stack in allowance.take(thread.stacks)):
            ranges = allowance.take(stack.ranges)
            names += [_name_range(read_text(entry.name), stack.domain_id, domains) for entry in ranges]
    return tuple(names)


def _name_range(name: str, domain_id: int, domains: dict[int, str]) -> str:
    if domain_id == _DEFAULT_DOMAIN:
        return name
    return f"{domains.get(domain_id, domain_id)}@{name}"


def _read_frame(frame: Any) -> HostFrame:
    module = read_text(frame.module)
    return HostFrame(
        function=read_text(frame.function) or None,
        module=_strip_folders(module) or None,
        file=read_text(frame.file) or None,
        line=frame.line or None,
        address=frame.address if frame.HasField("address") else None,
    )


def _strip_folders(path: str) -> str:
    """The last part of a path of either kind of host.

    >>> _strip_folders("/lib/libc.so.6"), _strip_folders("C:\\\\bin\\\\app.exe")
    ('libc.so.6', 'app.exe')
    """
    return PureWindowsPath(path).name if "\\" in path else PurePosixPath(path).name
