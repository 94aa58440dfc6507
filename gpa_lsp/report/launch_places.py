"""Host call sites of a kernel: its launches by call stack, and short distinct names."""

from collections import Counter
from collections.abc import Sequence

from msgspec import Struct

from gpa_lsp.foundation.figures import sum_known
from gpa_lsp.report.model import KernelReport, LaunchReport

_LINE = " at "
CallStack = tuple[str, ...]  # Frames as :class:`LaunchReport` has them, innermost first


class LaunchPlace(Struct, frozen=True, kw_only=True):
    """Launches of a kernel from one call stack."""

    name: str  # short, and different for different places where their frames are
    function: str  # of the frame that the name is of; empty when unknown
    stack: CallStack  # innermost frame first; empty for launches of which nobody knows it
    launches: int | None  # how many; None when that of an aggregate is unknown
    duration_ns: float | None  # mean over those with a time; None when none has one


def list_launch_places(kernel: KernelReport) -> tuple[LaunchPlace, ...]:
    """Call sites of a kernel, those with most time first; empty where no call stack is known."""
    by_stack: dict[CallStack, list[LaunchReport]] = {}
    for launch in kernel.launches:
        by_stack.setdefault(launch.call_stack, []).append(launch)
    if not any(by_stack):
        return ()
    frames = choose_frames(list(by_stack))
    found = [_make_place(frame, stack, by_stack[stack]) for frame, stack in zip(frames, by_stack, strict=True)]
    return tuple(sorted(found, key=lambda place: -(place.duration_ns or 0.0) * (place.launches or 1)))


def _make_place(frame: str, stack: CallStack, launches: Sequence[LaunchReport]) -> LaunchPlace:
    timed = [(one.duration_ns, one.launch_count or 1) for one in launches if one.duration_ns is not None]
    count = sum(number for _, number in timed)
    return LaunchPlace(
        name=shorten_frame(frame) if frame else "elsewhere",
        function=frame.rpartition(_LINE)[0],
        stack=stack,
        launches=sum_known(launch.launch_count for launch in launches),
        duration_ns=sum(time * number for time, number in timed) / count if count else None,
    )


def choose_frames(stacks: Sequence[CallStack]) -> list[str]:
    """The frame that distinguishes each call stack: the innermost unique one, else the innermost; empty for an empty stack.

    >>> choose_frames([("run at k.py:7", "main at a.py:3"), ("run at k.py:7", "main at a.py:9"), ()])
    ['main at a.py:3', 'main at a.py:9', '']
    """
    counts = Counter(frame for stack in stacks for frame in set(stack))
    return [next((frame for frame in stack if counts[frame] == 1), stack[0] if stack else "") for stack in stacks]


def shorten_frame(frame: str) -> str:
    """File and line of a frame without folders, else its function.

    >>> shorten_frame("launch at /src/app.cu:12"), shorten_frame("start (libfoo.so)"), shorten_frame("C:\\\\x\\\\a.cu:3")
    ('app.cu:12', 'start', 'a.cu:3')
    """
    function, separator, place = frame.rpartition(_LINE)
    if separator or ":" in frame:
        return (place if separator else frame).replace("\\", "/").rpartition("/")[2]
    return (function or frame).partition(" (")[0]


def find_common_frames(kernel: KernelReport) -> CallStack:
    """Outermost frames common to all launches, outermost first; empty where a launch has no stack."""
    stacks = {launch.call_stack for launch in kernel.launches}
    common: list[str] = []
    for frames in zip(*(reversed(stack) for stack in stacks), strict=False):
        if len(set(frames)) > 1:
            break
        common.append(frames[0])
    return tuple(common)
