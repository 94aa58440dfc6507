"""Calling contexts for people: frames of the library and the driver left out, addresses as functions and lines of the host program.

Native frames lead from the launch to the interpreter, if there is one; then its Python frames follow, and what called the interpreter is left out.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePath

from gpa_lsp.collector.host_lines import HostPlace, find_places
from gpa_lsp.collector.library import NAME
from gpa_lsp.collector.records import CollectedPath
from gpa_lsp.profile.model import HostFrame

MOST_FRAMES = 32
_BETWEEN = re.compile(rf"{re.escape(NAME)}|libcupti\.so|libcuda\.so|libcudart|ld-linux|libnvrtc|libpthread")
"""Names of images between a launch and whoever asked for it."""
_INTERPRETER = re.compile(r"(?:lib)?python\d|pypy", re.IGNORECASE)
_SHIM = "<shim>"
_BEGINNING = frozenset({"_start", "__libc_start_main", "__libc_start_call_main", "__libc_start_main_impl"})


def build_call_stacks(paths: Mapping[int, CollectedPath]) -> dict[int, tuple[HostFrame, ...]]:
    """The frames of each path, innermost first; the debugging information of each image is read once."""
    chosen = {number: _choose_native(path) for number, path in paths.items()}
    wanted: dict[str, set[int]] = {}
    for frames in chosen.values():
        for image, offset in frames:
            wanted.setdefault(image, set()).add(offset - 1)  # of the call, not of what follows it
    places = {image: find_places(Path(image), offsets) for image, offsets in wanted.items() if image}
    return {
        number: (*_describe_native(chosen[number], places), *_describe_python(path))[:MOST_FRAMES]
        for number, path in paths.items()
    }


def _choose_native(path: CollectedPath) -> list[tuple[str, int]]:
    frames = list(path.native)
    while frames and _BETWEEN.match(PurePath(frames[0][0]).name):
        frames.pop(0)
    if path.python:
        inside = [number for number, (image, _) in enumerate(frames) if _INTERPRETER.match(PurePath(image).name)]
        frames = frames[: inside[0]] if inside else frames
    return frames[:MOST_FRAMES]


def _describe_native(
    frames: list[tuple[str, int]], places: Mapping[str, Mapping[int, tuple[HostPlace, ...]]]
) -> Iterator[HostFrame]:
    for image, offset in frames:
        found = places.get(image, {}).get(offset - 1, ())
        if any(place.function in _BEGINNING for place in found):
            return  # what follows begins every program
        module = PurePath(image).name or None
        for place in found:
            yield HostFrame(function=place.function, module=module, file=place.file, line=place.line, address=offset)
        if not found:
            yield HostFrame(function=None, module=module, file=None, line=None, address=offset)


def _describe_python(path: CollectedPath) -> Iterator[HostFrame]:
    for file, function, line in path.python:
        if file != _SHIM:
            yield HostFrame(function=function or None, module=None, file=file or None, line=line or None, address=None)


def find_common(stacks: list[tuple[HostFrame, ...]]) -> tuple[HostFrame, ...]:
    """The outermost frames that all stacks have in common, innermost first."""
    if not stacks:
        return ()
    common: list[HostFrame] = []
    for frames in zip(*(reversed(stack) for stack in stacks), strict=False):
        if len(set(frames)) > 1:
            break
        common.append(frames[0])
    return tuple(reversed(common))
