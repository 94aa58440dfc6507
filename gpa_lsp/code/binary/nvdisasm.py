"""One run of nvdisasm over bare instruction bytes.

Raw mode (``-b``) is used for every image: it also works on those dumped after loading, which its ELF mode refuses, and it costs no dataflow
analysis. Whatever nvdisasm makes of the bytes, there is exactly one text per instruction; what it refuses or leaves out gets a text that
says so.
"""

import logging
import os
import re
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from gpa_lsp.code.binary.model import INSTRUCTION_BYTES
from gpa_lsp.code.binary.opcodes import UNDECODED
from gpa_lsp.foundation.errors import ToolError, UnsupportedInputError
from gpa_lsp.foundation.processes.time_limits import TimeLimits, run_limited

_LOG = logging.getLogger(__name__)
_TOOL = "nvdisasm"
# Of the C library on Linux: the tool fills 35 MB with small tables before it looks at the code, and huge pages spare it a tenth of its time
_HUGE_PAGES = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1:glibc.malloc.top_pad=67108864"}
_OLDEST_NUMBER = 70
_VOLTA_STAND_IN = 75
_FIRST_WITH_VARIANTS = 90
_START_SECONDS = 30.0  # Of processor time, for any run
_SECONDS_PER_INSTRUCTION = 1 / 3_000  # Of processor time; a twentieth of the speed measured
_LONGEST_LINE_BYTES = 1 << 16
_TAIL_BYTES = 4096
_ROW_START = b"        /*"
_ANNOTATION = "(*"
_NO_OPERATION = (0x000FC00000000000_0000000000007918).to_bytes(INSTRUCTION_BYTES, "little")
_MARKER = b"\xff" * INSTRUCTION_BYTES  # An encoding no architecture decodes, which nvdisasm reports with its address
_UNKNOWN_ARCHITECTURE = "is not defined for option"
_ILLEGAL = "Illegal instruction"
_UNRECOGNIZED = "Unrecognized operation"  # It is followed by the line above, about the same instruction
_ADDRESS = re.compile(r"at address 0x([0-9a-fA-F]+)")


def decode_words(tool: Path, code: bytes, sm: int) -> list[str]:
    """Disassemble instructions.

    Args:
        code: encodings, 16 bytes each; a ragged tail is left out.

    Returns:
        One text per instruction, without semicolon; targets computed from the pc are offsets from the start of ``code``.

    Raises:
        UnsupportedInputError: this nvdisasm does not know the architecture.
        ToolError: it failed otherwise, or did not end in time.
    """
    code = code[: len(code) - len(code) % INSTRUCTION_BYTES]
    if not code:
        return []
    for variant in _name_variants(sm):
        try:
            return _decode(tool, code, variant)
        except UnsupportedInputError:
            _LOG.debug("nvdisasm does not know %s", variant)
    raise UnsupportedInputError(
        f"nvdisasm does not know sm_{sm}",
        remedy="install a newer nvidia-cuda-nvdisasm, or build for an architecture it knows",
    )


def _name_variants(sm: int) -> tuple[str, ...]:
    """The architectures to try, in nvdisasm's spelling, best first.

    From sm_90 on only the ``a`` variant knows all instructions, and it decodes the others alike. CUDA 13's nvdisasm has dropped sm_70, whose
    encodings sm_75 decodes alike.

    Source: 139,216 instructions of sm_70 gave the same text as with nvdisasm 12.8; all instructions of public sm_90 to sm_120 binaries the
    same with and without ``a``, but for those it alone knows.
    """
    if sm < _OLDEST_NUMBER:
        return ()
    if sm < _VOLTA_STAND_IN:
        return (f"SM{_VOLTA_STAND_IN}",)
    return (f"SM{sm}a", f"SM{sm}") if sm >= _FIRST_WITH_VARIANTS else (f"SM{sm}",)


def _decode(tool: Path, code: bytes, variant: str) -> list[str]:
    with tempfile.TemporaryDirectory(prefix="gpa-lsp-") as folder:
        run = _Run(tool, Path(folder), variant)
        texts = run.disassemble(code)
        if texts is None:
            illegal = run.find_illegal(code)
            patched = bytearray(code)
            for index in illegal:
                patched[index * INSTRUCTION_BYTES : (index + 1) * INSTRUCTION_BYTES] = _NO_OPERATION
            texts = run.disassemble(bytes(patched))
            if texts is None:
                raise ToolError(_TOOL, "it refuses instructions without saying which", output=run.read_error_tail())
            for index in illegal:
                texts[index] = None
    return [_describe_undecoded(code, index) if text is None else text for index, text in enumerate(texts)]


def _describe_undecoded(code: bytes, index: int) -> str:
    word = code[index * INSTRUCTION_BYTES : (index + 1) * INSTRUCTION_BYTES]
    low, high = int.from_bytes(word[:8], "little"), int.from_bytes(word[8:], "little")
    return f"{UNDECODED} 0x{low:016x}, 0x{high:016x}"


class _Run:
    """Runs of the tool in one temporary folder."""

    def __init__(self, tool: Path, folder: Path, variant: str) -> None:
        self._tool = tool
        self._image = folder / "code.bin"
        self._errors = folder / "errors.txt"
        self._variant = variant

    def disassemble(self, code: bytes) -> list[str | None] | None:
        """The text of each instruction, None for those left out; None in all when some are illegal."""
        texts: list[str | None] = [None] * (len(code) // INSTRUCTION_BYTES)
        status = self._execute(code, texts)
        if status == 0:
            return texts
        tail = self.read_error_tail()
        if _UNKNOWN_ARCHITECTURE in tail:
            raise UnsupportedInputError(f"nvdisasm does not know {self._variant}")
        if _ILLEGAL in tail or _ADDRESS.search(tail):
            return None
        raise ToolError(_TOOL, f"it ended with status {status}", output=tail)

    def find_illegal(self, code: bytes) -> list[int]:
        """The instructions the tool refuses, ascending.

        It names the address of most and only counts the others, in order. So a marker, whose address it does name, is put behind each
        instruction: what is counted between two markers is the instruction between them.
        """
        count = len(code) // INSTRUCTION_BYTES
        words = (code[start : start + INSTRUCTION_BYTES] for start in range(0, len(code), INSTRUCTION_BYTES))
        self._execute(b"".join(part for word in words for part in (word, _MARKER)), [])
        illegal: set[int] = set()
        is_pending = False
        for address in self._read_reports():
            if address is None:
                is_pending = True
                continue
            index, is_marker = divmod(address // INSTRUCTION_BYTES, 2)
            if index < count and (is_pending or not is_marker):
                illegal.add(index)
            is_pending = is_pending and not is_marker
        return sorted(illegal)

    def read_error_tail(self) -> str:
        """The end of what the last run printed to its error output."""
        with self._errors.open("rb") as stream:
            stream.seek(max(0, self._errors.stat().st_size - _TAIL_BYTES))
            return stream.read().decode("utf-8", "replace")

    def _read_reports(self) -> Iterator[int | None]:
        """One item per complaint of the last run: the address it names, or None where it names none."""
        is_told_twice = False
        with self._errors.open(encoding="utf-8", errors="replace") as stream:
            for line in stream:
                named = _ADDRESS.search(line)
                if named:
                    is_told_twice = is_told_twice or _UNRECOGNIZED in line
                    yield int(named[1], 16)
                elif _ILLEGAL in line:
                    if not is_told_twice:
                        yield None
                    is_told_twice = False

    def _execute(self, code: bytes, texts: list[str | None]) -> int:
        """Run the tool, put what it prints into ``texts``, and return its exit status."""
        self._image.write_bytes(code)
        limits = TimeLimits.for_work(_START_SECONDS + len(code) / INSTRUCTION_BYTES * _SECONDS_PER_INSTRUCTION)
        command = [str(self._tool), "-b", self._variant, str(self._image)]
        try:
            with (
                self._errors.open("wb") as errors,
                run_limited(
                    _TOOL,
                    command,
                    limits,
                    folder=self._image.parent,
                    output=subprocess.PIPE,
                    errors=errors,
                    environment=_HUGE_PAGES | os.environ,
                ) as process,
            ):
                if process.stdout is not None:
                    _read_rows(process.stdout, texts)
        except ToolError as error:
            error.output = self.read_error_tail()
            raise
        return process.returncode


def _read_rows(stream: IO[bytes], texts: list[str | None]) -> None:
    """Put the rows of a listing in their places; lines that are none are skipped."""
    count = len(texts)
    for line in iter(lambda: stream.readline(_LONGEST_LINE_BYTES), b""):
        end = line.find(b"*/")
        if end < 0 or not line.startswith(_ROW_START):
            continue
        try:
            index, misaligned = divmod(int(line[len(_ROW_START) : end], 16), INSTRUCTION_BYTES)
        except ValueError:
            continue
        if misaligned == 0 and index < count:
            texts[index] = _tidy(line[end + 2 :].decode("utf-8", "replace"))


def _tidy(text: str) -> str:
    """The text of a row without final semicolon, annotation and padding.

    >>> _tidy("    FSETP.GTU.AND P0, PT, |R0|, +INF , PT ;")
    'FSETP.GTU.AND P0, PT, |R0|, +INF, PT'
    """
    text = text.strip().rstrip(";").rstrip()
    if _ANNOTATION in text:
        text = text[: text.index(_ANNOTATION)].rstrip()
    if "  " in text or " ," in text:
        text = " ".join(text.split()).replace(" ,", ",")
    return text
