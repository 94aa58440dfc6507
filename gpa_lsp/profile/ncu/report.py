"""A whole report: framing first, then sources and results entry by entry, so that one broken entry costs only itself."""

from collections.abc import Collection, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from google.protobuf.message import DecodeError

from gpa_lsp.basis.errors import InputError, Problem, ProblemSeverity, UnsupportedInputError
from gpa_lsp.basis.regular_files import open_regular_file
from gpa_lsp.profile.model import Launch, LaunchOutline, Module, OpenedProfile, Profile
from gpa_lsp.profile.ncu import schema
from gpa_lsp.profile.ncu.allowance import Allowance
from gpa_lsp.profile.ncu.container import Container, EntryPlace, read_container, read_entry
from gpa_lsp.profile.ncu.launches import outline_launch, read_launch
from gpa_lsp.profile.ncu.magic import CONVERT_REMEDY, REPORT_MAGIC, find_compression
from gpa_lsp.profile.ncu.modules import ModuleKey, ModuleTable
from gpa_lsp.profile.ncu.session import read_devices, read_tool_version

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
    """A report whose launches can be read one by one; None where something of it is not as it should be, and has to be told beside the rest.

    Args:
        path: the file.
        is_known_sound: somebody opened it before and got a report, so that no launch is looked at before it is read.

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
    """Errors of what is done here name the file."""
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
            from gpa_lsp.profile.ncu.compression import decompress  # loads five decompressors

            with decompress(stream, size_bytes, compression) as report:
                yield report


class _Assembly:
    """Builds one profile; collects problems on the way."""

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
        """All of it."""
        container = self._container
        self._read_modules()
        self._sessions = self._decode_sessions()
        launches = self._read_launches(range(len(container.results)))
        if container.unknown_entries:
            count, place = len(container.unknown_entries), container.unknown_entries[0]
            message = f"{count} entries of an unknown kind are skipped"
            self._note(message, ProblemSeverity.WARNING, place=f"offset {place.offset:#x}")
        return self._make_profile(launches)

    def begin(self, *, is_known_sound: bool) -> bool:
        """Read what launches share, and, where that is not known, find out which there are; whether all of that is as it should be."""
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
            self._note(message, ProblemSeverity.WARNING)

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
            self._note(f"session details: {message}", ProblemSeverity.WARNING)
        return sessions

    def _read_launches(self, numbers: Iterable[int]) -> tuple[Launch, ...]:
        """The launches in some entries; one that cannot be decoded has no index."""
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
                    message, ProblemSeverity.WARNING, place=f"offset {place.offset:#x}", kernel=launch.mangled_name
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
            self._note(message, ProblemSeverity.WARNING, place=f"offset {place.offset:#x}", kernel=kernel)
        return module_id

    def _decode(self, message_class: Any, place: EntryPlace, what: str) -> Any:
        data = read_entry(self._stream, place)
        if data:
            try:
                return message_class.FromString(data)
            except DecodeError:
                pass
        remedy = "the file is damaged there: copy it again or record it again"
        self._note(
            f"{what} cannot be decoded and is left out",
            ProblemSeverity.ERROR,
            place=f"offset {place.offset:#x}",
            remedy=remedy,
        )
        return None

    def _note(
        self,
        message: str,
        severity: ProblemSeverity,
        *,
        place: str | None = None,
        kernel: str | None = None,
        remedy: str | None = None,
    ) -> None:
        if len(self._problems) >= _MAX_PROBLEMS:
            self._unlisted_problems += 1
            return
        problem = Problem(
            severity=severity, message=message, path=self._path, place=place, kernel=kernel, remedy=remedy
        )
        self._problems.append(problem)

    def _list_problems(self) -> tuple[Problem, ...]:
        if not self._unlisted_problems:
            return tuple(self._problems)
        message = f"{self._unlisted_problems} more problems are not listed"
        unlisted = Problem(severity=ProblemSeverity.ERROR, message=message, path=self._path)
        return (*self._problems, unlisted)
