"""Recorded launches as descriptions beside the sources of their kernels, which editors and commands emulate: :func:`describe_beside`."""

import json
import re
import shutil
from collections import defaultdict
from pathlib import Path

from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.basis.whole_files import open_whole
from gpa_lsp.programs.model import ProgramRun, RecordedLaunch

_HEADING = "# Launches recorded while a program ran; recording again replaces this file.\n"
_SUFFIX = ".launch.toml"
_DATA_SUFFIX = ".launches"
_FILE = re.compile(r"\bfile = (\"[^\"]*\")")


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """What was written.

    Attributes:
        written: descriptions.
        left_alone: descriptions that somebody wrote, which stay as they are.
    """

    written: tuple[Path, ...]
    left_alone: tuple[Path, ...]


def describe_beside(run: ProgramRun, folder: Path) -> Described:
    """Write the recorded launches of a run beside the sources they are of, their data into a folder there.

    Args:
        run: with recorded launches that are still there.
        folder: only sources below it.

    Raises:
        OSError: something cannot be written.
    """
    sources: dict[Path, list[RecordedLaunch]] = defaultdict(list)
    for kernel in run.kernels:
        one = kernel.recorded
        source = None if one is None or one.source is None else (folder / one.source).resolve()
        if one is not None and source is not None and source.is_file() and source.is_relative_to(folder.resolve()):
            sources[source].append(one)
    written, left_alone = [], []
    for source, launches in sources.items():
        description = source.with_name(source.stem + _SUFFIX)
        if description.exists() and not _is_recorded(description):
            left_alone.append(description)
            continue
        _write(description, launches)
        written.append(description)
    return Described(written=tuple(written), left_alone=tuple(left_alone))


def _is_recorded(description: Path) -> bool:
    return description.read_text(encoding="utf-8", errors="replace").startswith(_HEADING)


def _write(description: Path, launches: list[RecordedLaunch]) -> None:
    data = description.with_name(description.name.removesuffix(_SUFFIX) + _DATA_SUFFIX)
    shutil.rmtree(data, ignore_errors=True)
    parts = [_HEADING]
    for one in launches:
        text = one.description.read_text(encoding="utf-8")
        for name in _FILE.findall(text):
            data.mkdir(exist_ok=True)
            file = json.loads(name)
            shutil.copyfile(one.description.with_name(file), data / file)
        parts.append(_FILE.sub(lambda match: f"file = {json.dumps(f'{data.name}/{json.loads(match[1])}')}", text))
    with open_whole(description) as stream:
        stream.write("\n".join(parts))
