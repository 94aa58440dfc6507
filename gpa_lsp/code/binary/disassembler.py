"""Functions of a device image → their :class:`~gpa_lsp.code.binary.model.Instructions`, with as few runs of nvdisasm as possible.

Only the functions asked for are disassembled, and only those not in the cache. Their distinct instructions are disassembled in one run (or in a
few at once when there are many), because starting nvdisasm costs more than disassembling ten thousand instructions; then the addresses it
computed from the pc are brought to where the instruction stands in its function.

Source: the text of 376 functions of public binaries for sm_75 to sm_120 (551,608 instructions), disassembled in one run per architecture, is
the same as when each is disassembled alone; that of 365 functions of the corpus and the fixtures (160,840 instructions, 87,660 distinct) the same
when each distinct one is disassembled once. The opcodes with such addresses were found by decoding every opcode at two base addresses.
"""

import hashlib
import logging
import os
import re
import subprocess
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO

from gpa_lsp.code.binary.model import INSTRUCTION_BYTES, Cubin, Instructions
from gpa_lsp.code.binary.opcodes import UNDECODED, describe_mnemonic, list_pc_target_opcodes
from gpa_lsp.code.binary.sass import decode_instructions
from gpa_lsp.code.binary.tool_location import identify_tool, require_tool
from gpa_lsp.foundation.errors import InputError, ToolError, UnsupportedInputError
from gpa_lsp.foundation.kept_files import KeptFiles, find_cache_folder
from gpa_lsp.foundation.processes.watched_command import TimeLimits, run_limited

# nvdisasm takes 0.2 to 0.3 seconds to start, whatever the size of the code, so its text is kept: one compressed entry per function, named by a
# digest of everything the text depends on.

_LIMIT_BYTES = 256 << 20  # Above it, the entries used least recently are removed

_FORMAT = 2
_LONGEST_ROW_BYTES = 1024


class DisassemblyCache:
    """A folder of disassembled functions, created when something is stored."""

    def __init__(self, folder: Path) -> None:
        self.files = KeptFiles(folder, limit_bytes=_LIMIT_BYTES)

    def load(self, key: str, count: int) -> list[str] | None:
        """The ``count`` texts stored under a key; None when there is no sound entry."""
        packed = self.files.load(key)
        if packed is None:
            return None
        unpack = zlib.decompressobj()
        try:
            text = unpack.decompress(packed, count * _LONGEST_ROW_BYTES + 1).decode("utf-8")
        except (zlib.error, UnicodeDecodeError):
            return None
        texts = text.split("\n")
        return texts if unpack.eof and len(texts) == count else None

    def store(self, key: str, texts: Sequence[str]) -> None:
        """Keep the texts of a function."""
        self.files.store(key, zlib.compress("\n".join(texts).encode("utf-8"), 1))


def open_cache() -> DisassemblyCache:
    """The cache in the user's cache folder."""
    return DisassemblyCache(find_cache_folder() / "sass")


def make_key(code: bytes, sm: int, tool: Path) -> str:
    """The name of an entry: a digest of the code, the architecture, the tool and our own format."""
    digest = hashlib.sha256(f"{_FORMAT}:{sm}:{identify_tool(tool)}:{len(code)}:".encode())
    digest.update(code)
    return digest.hexdigest()


_WORTH_A_RUN = 20_000  # Instructions. Fewer do not repay starting another nvdisasm beside the first.
_LARGEST_RUN = 400_000  # The most in one run: nvdisasm needs 0.7 kB per instruction
_TARGET = re.compile(r"-?0x[0-9a-f]+\Z")


def disassemble(
    cubin: Cubin, names: Iterable[str], *, cache: DisassemblyCache | None = None
) -> Mapping[str, Instructions]:
    """Disassemble functions.

    Args:
        cubin: the image.
        names: mangled names of functions in it.
        cache: where text is kept between runs; the user's own by default.

    Returns:
        The instructions by name, in the order asked for.

    Raises:
        KeyError: there is no such function.
        MissingToolError: nvdisasm is not installed.
        UnsupportedInputError: nvdisasm does not know the architecture.
        ToolError: nvdisasm failed or did not end in time.
    """
    functions = {name: cubin.functions[name] for name in names}
    codes = {name: _cut_tail(function.code) for name, function in functions.items()}
    try:
        texts = _read_texts(set(codes.values()), cubin.sm, open_cache() if cache is None else cache)
    except InputError as error:
        if cubin.path is not None:
            raise error.at(cubin.path) from None
        raise
    return {
        name: decode_instructions(texts[codes[name]], codes[name], relocated=function.call_symbols)
        for name, function in functions.items()
    }


def read_ahead(cubin: Cubin, names: Iterable[str]) -> None:
    """Disassemble functions in one run and cache their text, for callers that later ask for a few at a time.

    Raises:
        MissingToolError, UnsupportedInputError, ToolError: as :func:`disassemble`.
    """
    _read_texts({_cut_tail(cubin.functions[name].code) for name in names}, cubin.sm, open_cache())


def _cut_tail(code: bytes) -> bytes:
    return code[: len(code) - len(code) % INSTRUCTION_BYTES]


def _read_texts(codes: Iterable[bytes], sm: int, cache: DisassemblyCache) -> dict[bytes, Sequence[str]]:
    """The text of each distinct section, from the cache or from nvdisasm."""
    texts: dict[bytes, Sequence[str]] = {b"": ()}
    wanted = [code for code in codes if code]
    if not wanted:
        return texts
    tool = require_tool("nvdisasm", needed_for="showing SASS")
    keys = {code: make_key(code, sm, tool) for code in wanted}
    for code, key in keys.items():
        found = cache.load(key, len(code) // INSTRUCTION_BYTES)
        if found is not None:
            texts[code] = found
    missing = [code for code in wanted if code not in texts]
    decoded = _decode_distinct(missing, lambda words: decode_words(tool, words, sm))
    for code in missing:
        texts[code] = _place(code, decoded)
        cache.store(keys[code], texts[code])
    if missing:
        cache.files.trim()
    return texts


# The text of an encoding, and its address in the run that decoded it where the text says one computed from the pc
_Decoded = tuple[str, int | None]


def _decode_distinct(codes: Iterable[bytes], decode: Callable[[bytes], list[str]]) -> dict[bytes, _Decoded]:
    """The text of each distinct encoding: kernels made from one template have many instructions in common."""
    distinct = list(dict.fromkeys(word for code in codes for word in _cut_words(code)))
    starts_with_target = list_pc_target_opcodes()
    decoded: dict[bytes, _Decoded] = {}
    for words, texts in _run_batches(decode, _make_batches(distinct)):
        for number, (word, text) in enumerate(zip(words, texts, strict=True)):
            has_target = text.startswith("@") or text.startswith(starts_with_target)
            decoded[word] = text, number * INSTRUCTION_BYTES if has_target else None
    return decoded


def _cut_words(code: bytes) -> Iterator[bytes]:
    return (code[start : start + INSTRUCTION_BYTES] for start in range(0, len(code), INSTRUCTION_BYTES))


def _place(code: bytes, decoded: Mapping[bytes, _Decoded]) -> list[str]:
    """The texts of a section, with addresses from its own start."""
    found = (decoded[word] for word in _cut_words(code))
    return [
        text if address is None else _rebase(text, address - number * INSTRUCTION_BYTES)
        for number, (text, address) in enumerate(found)
    ]


def _make_batches(words: Sequence[bytes]) -> list[Sequence[bytes]]:
    """Share instructions out so that the runs are about equally long and none is large."""
    useful = min(os.cpu_count() or 1, len(words) // _WORTH_A_RUN + 1)
    size = -(-len(words) // max(useful, -(-len(words) // _LARGEST_RUN)))
    return [words[start : start + size] for start in range(0, len(words), size or 1)]


def _run_batches(
    decode: Callable[[bytes], list[str]], batches: Sequence[Sequence[bytes]]
) -> Iterator[tuple[Sequence[bytes], list[str]]]:
    """Run the batches, as many at once as there are processors."""
    if len(batches) < 2:
        yield from ((batch, decode(b"".join(batch))) for batch in batches)
        return
    from concurrent.futures import ThreadPoolExecutor  # seldom needed, and it costs start-up time

    pool = ThreadPoolExecutor(max_workers=os.cpu_count() or 1)
    try:
        yield from zip(batches, pool.map(decode, map(b"".join, batches)), strict=True)
    finally:
        pool.shutdown(cancel_futures=True)


def _rebase(text: str, base: int) -> str:
    """Bring the address an instruction names back to the start of its section.

    >>> _rebase("@!P0 BRA P1, 0x1230", 0x1000), _rebase("MOV R2, 0x1230", 0x1000), _rebase("BSSY B0, 0x30", 0x40)
    ('@!P0 BRA P1, 0x230', 'MOV R2, 0x1230', 'BSSY B0, -0x10')
    """
    body = text.partition(" ")[2] if text.startswith("@") else text
    target = _TARGET.search(text)
    if target is None or not describe_mnemonic(body.partition(" ")[0]).has_pc_target:
        return text
    address = int(target[0], 16) - base
    return f"{text[: target.start()]}{'-' if address < 0 else ''}{abs(address):#x}"


# Raw mode (``-b``) is used for every image: it also works on those dumped after loading, which its ELF mode refuses, and it costs no dataflow
# analysis. Whatever nvdisasm makes of the bytes, there is exactly one text per instruction; what it refuses or leaves out gets a text that
# says so.

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
    """Disassemble instructions of 16 bytes each, one text for each, without semicolon; a ragged tail is left out. Targets computed from the pc are
    offsets from the start of ``code``.
    """
    code = _cut_tail(code)
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
            words = enumerate(_cut_words(code))
            texts = run.disassemble(b"".join(_NO_OPERATION if index in illegal else word for index, word in words))
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

    def find_illegal(self, code: bytes) -> set[int]:
        """The instructions the tool refuses.

        It names the address of most and only counts the others, in order. So a marker, whose address it does name, is put behind each
        instruction: what is counted between two markers is the instruction between them.
        """
        count = len(code) // INSTRUCTION_BYTES
        self._execute(b"".join(part for word in _cut_words(code) for part in (word, _MARKER)), [])
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
        return illegal

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
