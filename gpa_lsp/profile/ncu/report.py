"""Whole reports: framing first, then sources and results one by one, so that a broken entry costs only itself."""

import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any, BinaryIO

from google.protobuf.message import DecodeError
from msgspec.structs import replace

from gpa_lsp.foundation.errors import InputError, Problem, UnsupportedInputError
from gpa_lsp.foundation.files import open_regular_file
from gpa_lsp.profile.model import (
    Device,
    Dim3,
    HostFrame,
    Launch,
    LaunchOutline,
    LoadedFunction,
    Metric,
    Module,
    OpenedProfile,
    Profile,
)
from gpa_lsp.profile.ncu import CONVERT_REMEDY, REPORT_MAGIC, find_compression, schema
from gpa_lsp.profile.ncu.container import Container, EntryPlace, read_container, read_entry
from gpa_lsp.profile.ncu.metrics import (
    Allowance,
    LazyMetrics,
    encode_name_id,
    find_device,
    index_metrics,
    read_devices,
    read_rules,
    read_tool_version,
)
from gpa_lsp.profile.ncu.samples import is_truncated, read_samples
from gpa_lsp.profile.ncu.schema import Frame, NvtxState, SourceFile, Symbol, read_text

# Host context of a launch: CPU call stack and NVTX ranges.
#
# Source: reports of compute capability 8.0 and 8.6 with both collected (2022.3, 2024.1). Established there:
#
# * Call stack (result field 28): repeated frame of 1 module path, 2 absolute address, 3 source file, 4 function (demangled), 5 line. Innermost first
#   (``cudaLaunchKernel`` above ``main``). Empty text and line 0 mean unknown; the address is the return address in the frame.
# * NVTX state (result field 21): 1 repeated domain {1 id, 2 name} (id 0 is ``<default domain>``); 2 repeated thread {1 thread id, equal to the
#   result's own, 2 repeated {1 domain id, 3 repeated push/pop range, outermost first}}. A range is {1 name, 2 attributes (version, colour, payload,
#   message; present only when the program gave some), 3 number of API calls made before it was pushed}. 3 repeated {1 domain id}: state of the
#   process as a whole, empty in every report seen; where start/end ranges stand is therefore not established, and they are not read.

_DEFAULT_DOMAIN = 0


def read_call_stack(result: Any, allowance: Allowance) -> tuple[HostFrame, ...]:
    """CPU frames, innermost first; empty when not collected."""
    return tuple(_read_frame(frame) for frame in allowance.decode(Frame, result.call_stack.frames))


def read_nvtx_ranges(result: Any, allowance: Allowance) -> tuple[str, ...]:
    """Names of the push/pop ranges of the launching thread, outermost first within a domain, domain by domain.

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
    """Last part of a path of either kind of host.

    >>> _strip_folders("/lib/libc.so.6"), _strip_folders("C:\\\\bin\\\\app.exe")
    ('libc.so.6', 'app.exe')
    """
    return PureWindowsPath(path).name if "\\" in path else PurePosixPath(path).name


_DURATION_METRIC = "gpu__time_duration.sum"
_NO_LAUNCH: Dim3 = (0, 0, 0)
_MOST_BLOCKS = (1 << 31) - 1  # In any dimension of a grid


def read_launch(
    result: Any,
    *,
    size_bytes: int,
    index: int,
    module_id: int | None,
    strings: list[str],
    devices: Mapping[int, Device],
) -> tuple[Launch, list[str]]:
    """Decode a result; ``module_id`` is None if the report does not hold its module."""
    metrics, problems = index_metrics(list(result.metrics), strings)
    samples, sample_problems = read_samples(metrics)
    allowance = Allowance(size_bytes)
    launch = Launch(
        index=index,
        mangled_name=read_text(result.mangled_name),
        plain_name=read_text(result.plain_name),
        demangled_name=read_text(result.demangled_name),
        module_id=module_id,
        grid=_read_dim3(result.grid),
        block=_read_dim3(result.block),
        device=find_device(metrics, devices),
        created_unix_s=result.created_unix_s if result.HasField("created_unix_s") else None,
        context_id=result.context_id if result.HasField("context_id") else None,
        stream_id=result.stream_id if result.HasField("stream_id") else None,
        metrics=metrics,
        samples=samples,
        samples_truncated=False,
        function_addresses=_read_function_addresses(metrics),
        nvtx_ranges=read_nvtx_ranges(result, allowance),
        call_stack=read_call_stack(result, allowance),
        rules=read_rules(result, allowance),
    )
    problems += sample_problems + allowance.describe()
    return replace(launch, samples_truncated=is_truncated(launch), failure=_describe_failure(launch)), problems


def outline_launch(result: Any, *, index: int, strings: list[str]) -> LaunchOutline:
    """Outline of a launch, from its head and its duration."""
    wanted = encode_name_id(strings.index(_DURATION_METRIC)) if _DURATION_METRIC in strings else None
    encoded = [data for data in result.metrics if wanted is not None and data.startswith(wanted)]
    metrics, _ = index_metrics(encoded, strings)
    duration = metrics.get(_DURATION_METRIC)
    value = None if duration is None else duration.value
    is_time = isinstance(value, int | float) and math.isfinite(value)
    return LaunchOutline(
        index=index,
        mangled_name=read_text(result.mangled_name),
        duration_ns=float(value) if is_time and value is not None else None,
    )


def _read_dim3(dim3: Any) -> Dim3:
    """Sizes; zeros, as of a failed launch, for sizes beyond every GPU's limits."""
    sizes = dim3.x, dim3.y, dim3.z
    return sizes if max(sizes) <= _MOST_BLOCKS else _NO_LAUNCH


def _read_function_addresses(metrics: LazyMetrics) -> tuple[int, ...]:
    """Load addresses, from the instances: the aggregate is their sum (up to 2024.2) or number."""
    metric: Metric | None = metrics.get("launch__function_pcs")
    if metric is None:
        return ()
    return tuple(sorted({value for value in metric.instance_values if isinstance(value, int) and value > 0}))


_FAILED = "the profiler failed on this launch"


def _describe_failure(launch: Launch) -> str | None:
    """Failure of the profiler, and what to do about it; None for a launch that was measured."""
    duration = launch.metrics.get(_DURATION_METRIC)
    has_no_duration = duration is not None and isinstance(duration.value, float) and math.isnan(duration.value)
    if launch.grid == _NO_LAUNCH:
        return f"{_FAILED}: the report holds neither its grid nor its counters; measure it again, alone or with fewer counters"
    if has_no_duration:
        return f"{_FAILED}: its duration is not a number; measure it again"
    return None


# Process id (None when not stored) and source id: ids are handles of one process, and a report may hold several processes
ModuleKey = tuple[int | None, int]


class ModuleTable:
    """Source entries; several of one id describe one module and are merged.

    Later entries of an id usually bring only further functions (those of kernels first launched later) and no image.
    """

    def __init__(self) -> None:
        self._entries: dict[ModuleKey, list[Any]] = {}
        self._size_bytes: dict[ModuleKey, int] = {}

    def add(self, process_id: int | None, source: Any, size_bytes: int) -> None:
        """Take a decoded source entry; ``size_bytes`` is what it takes in the file."""
        key = process_id, source.source_id
        self._entries.setdefault(key, []).append(source)
        self._size_bytes[key] = self._size_bytes.get(key, 0) + size_bytes

    def build(self) -> tuple[dict[int, Module], dict[ModuleKey, int], list[str]]:
        """Merge the entries: modules, their ids by key, and problems."""
        modules: dict[int, Module] = {}
        ids: dict[ModuleKey, int] = {}
        problems: list[str] = []
        for key, entries in self._entries.items():
            module_id = key[1] if key[1] not in modules else max(modules) + 1
            ids[key] = module_id
            images = list(dict.fromkeys(entry.image for entry in entries if entry.image))
            if len(images) > 1:
                problems.append(f"module {module_id} comes with {len(images)} different images; the first is used")
            allowance = Allowance(self._size_bytes[key])
            modules[module_id] = Module(
                module_id=module_id,
                image=images[0] if images else None,
                compute_capability=_read_capability(entries),
                functions=_merge_functions(entries, allowance),
                sources=_merge_sources(entries, allowance),
            )
            problems += [f"module {module_id}: {message}" for message in allowance.describe()]
        return modules, ids, problems


def _read_capability(entries: list[Any]) -> tuple[int, int] | None:
    """(major, minor) from the packed field, ``major << 16 | minor``; the major-only field cannot tell the minor."""
    for entry in entries:
        packed = entry.compute_capability_packed
        if packed:
            return packed >> 16, packed & 0xFFFF
    return None


def _merge_functions(entries: list[Any], allowance: Allowance) -> tuple[LoadedFunction, ...]:
    """All functions of all entries, ascending by address, each place and name once."""
    found: dict[tuple[int, str], LoadedFunction] = {}
    for entry in entries:
        for symbol in allowance.decode(Symbol, entry.addresses.functions):
            if not symbol.HasField("address"):
                continue
            name = read_text(symbol.name)
            index = symbol.symbol_index if symbol.HasField("symbol_index") else None
            function = LoadedFunction(name=name, address=symbol.address, symbol_index=index)
            found.setdefault((symbol.address, name), function)
    return tuple(found[key] for key in sorted(found))


def _merge_sources(entries: list[Any], allowance: Allowance) -> dict[str, str]:
    sources: dict[str, str] = {}
    for entry in entries:
        for file in allowance.decode(SourceFile, entry.files.files, is_flat=True):
            sources.setdefault(read_text(file.path), read_text(file.content))
    return sources


FORMAT_NAME = "ncu-report"
_COMPRESSED_SUFFIX = ".ncu-repz"
_MAX_PROBLEMS = 100


def read_report(path: Path) -> Profile:
    """Read a report.

    Broken framing is an error; a source or result that cannot be decoded while the framing is sound becomes a problem, and the others are read.

    Raises:
        InputError: the file cannot be used; names the offset.
        UnsupportedInputError: it is compressed in a way that is not read.
    """
    with _naming(path), _open_report(path) as (stream, size_bytes):
        return _Assembly(path, stream, read_container(stream, size_bytes)).build()


@contextmanager
def open_report(path: Path, *, is_known_sound: bool = False) -> Iterator[OpenedProfile | None]:
    """Report whose launches can be read one by one; None if something in it is damaged, so that it has to be read as a whole.

    Raises:
        InputError: the file cannot be used; names the offset.
        UnsupportedInputError: it is compressed in a way that is not read.
    """
    with ExitStack() as stack:
        with _naming(path):
            stream, size_bytes = stack.enter_context(_open_report(path))
            assembly = _Assembly(path, stream, read_container(stream, size_bytes))
            is_sound = assembly.begin(is_known_sound=is_known_sound)
        yield assembly if is_sound else None


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Add the file's name to errors."""
    try:
        yield
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror or error})", path=path, remedy="check the disk") from None
    except InputError as error:
        raise error.at(path) from None


@contextmanager
def _open_report(path: Path) -> Iterator[tuple[BinaryIO, int]]:
    stream, size_bytes = open_regular_file(path)
    with stream:
        head = stream.read(16)
        stream.seek(0)
        compression = None if head.startswith(REPORT_MAGIC) else find_compression(head)
        if compression is None and path.suffix == _COMPRESSED_SUFFIX and not head.startswith(REPORT_MAGIC):
            message = f"is compressed in an unknown way (it starts with {head[:8].hex(' ')})"
            raise UnsupportedInputError(message, path=path, place="offset 0x0", remedy=CONVERT_REMEDY)
        if compression is None:
            yield stream, size_bytes
        else:
            from gpa_lsp.profile.ncu.container import decompress  # loads five decompressors

            with decompress(stream, size_bytes, compression) as report:
                yield report


class _Assembly:
    """Builds one profile and collects problems."""

    def __init__(self, path: Path, stream: BinaryIO, container: Container) -> None:
        self._path = path
        self._stream = stream
        self._container = container
        self._problems: list[Problem] = []
        self._unlisted_problems = 0
        self._modules: dict[int, Module] = {}
        self._module_ids: dict[ModuleKey, int] = {}
        self._sessions: list[Any] = []
        self._outlines: tuple[LaunchOutline, ...] | None = None

    def build(self) -> Profile:
        """Profile with all launches."""
        container = self._container
        self._read_modules()
        self._sessions = self._decode_sessions()
        launches = self._read_launches(range(len(container.results)))
        if container.unknown_entries:
            count, place = len(container.unknown_entries), container.unknown_entries[0]
            message = f"{count} entries of an unknown kind are skipped"
            self._note(Problem.warning(message, path=self._path, place=f"offset {place.offset:#x}"))
        return self._make_profile(launches)

    def begin(self, *, is_known_sound: bool) -> bool:
        """Read what launches share and, unless known sound, outline them; False if anything is damaged."""
        self._read_modules()
        self._sessions = self._decode_sessions()
        is_sound = is_known_sound or len(self.launches) == len(self._container.results)
        return is_sound and not self._problems and not self._container.unknown_entries

    @property
    def launches(self) -> tuple[LaunchOutline, ...]:
        """See :class:`OpenedProfile`."""
        if self._outlines is None:
            self._outlines = tuple(self._outline_launches())
        return self._outlines

    def read(self, numbers: Collection[int]) -> Profile:
        """See :class:`OpenedProfile`."""
        with _naming(self._path):
            return self._make_profile(self._read_launches(sorted(numbers)))

    def _make_profile(self, launches: tuple[Launch, ...]) -> Profile:
        return Profile(
            path=self._path,
            format_name=FORMAT_NAME,
            tool_version=read_tool_version(self._sessions),
            modules=self._modules,
            launches=launches,
            problems=self._list_problems(),
        )

    def _read_modules(self) -> None:
        table = ModuleTable()
        for number, place in enumerate(self._container.sources):
            source = self._decode(schema.Source, place, f"module {number}")
            if source is not None:
                table.add(place.process_id, source, place.size_bytes)
        self._modules, self._module_ids, problems = table.build()
        for message in problems:
            self._note(Problem.warning(message, path=self._path))

    def _outline_launches(self) -> Iterator[LaunchOutline]:
        strings = [schema.read_text(raw) for raw in self._container.strings]
        for number, place in enumerate(self._container.results):
            result = self._decode(schema.Result, place, f"launch {number}")
            if result is not None:
                yield outline_launch(result, index=number, strings=strings)

    def _decode_sessions(self) -> list[Any]:
        encoded = self._container.sessions
        allowance = Allowance(sum(map(len, encoded)))
        sessions = list(allowance.decode(schema.Session, encoded))
        for message in allowance.describe():
            self._note(Problem.warning(f"session details: {message}", path=self._path))
        return sessions

    def _read_launches(self, numbers: Iterable[int]) -> tuple[Launch, ...]:
        """Launches of some entries; undecodable ones get no index."""
        strings = [schema.read_text(raw) for raw in self._container.strings]
        devices = read_devices(self._sessions)
        launches: list[Launch] = []
        undecodable = 0
        for number in numbers:
            place = self._container.results[number]
            result = self._decode(schema.Result, place, f"launch {number}")
            if result is None:
                undecodable += 1
                continue
            launch, messages = read_launch(
                result,
                size_bytes=place.size_bytes,
                index=number - undecodable,
                module_id=self._find_module(result, place),
                strings=strings,
                devices=devices,
            )
            for message in messages:
                self._note(
                    Problem.warning(
                        message, path=self._path, place=f"offset {place.offset:#x}", kernel=launch.mangled_name
                    )
                )
            launches.append(launch)
        return tuple(launches)

    def _find_module(self, result: Any, place: EntryPlace) -> int | None:
        if not result.HasField("source"):
            return None
        source_id = result.source.source_id
        module_id = self._module_ids.get((place.process_id, source_id))
        if module_id is None:
            kernel = schema.read_text(result.mangled_name)
            message = f"the launch's module ({source_id}) is not in the report"
            self._note(Problem.warning(message, path=self._path, place=f"offset {place.offset:#x}", kernel=kernel))
        return module_id

    def _decode(self, message_class: Any, place: EntryPlace, what: str) -> Any:
        data = read_entry(self._stream, place)
        if data:
            try:
                return message_class.FromString(data)
            except DecodeError:
                pass
        message = f"{what} cannot be decoded and is left out"
        remedy = "the file is damaged there: copy it again or record it again"
        self._note(Problem.error(message, remedy, path=self._path, place=f"offset {place.offset:#x}"))
        return None

    def _note(self, problem: Problem) -> None:
        if len(self._problems) < _MAX_PROBLEMS:
            self._problems.append(problem)
        else:
            self._unlisted_problems += 1

    def _list_problems(self) -> tuple[Problem, ...]:
        if not self._unlisted_problems:
            return tuple(self._problems)
        message = f"{self._unlisted_problems} more problems are not listed"
        return (*self._problems, Problem.error(message, path=self._path))
