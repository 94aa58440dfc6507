"""Functions of a device image → their :class:`~gpa_lsp.code.binary.model.Instructions`, with as few runs of nvdisasm as possible.

Only the functions asked for are disassembled, and only those not in the cache. Their distinct instructions are disassembled in one run (or in a
few at once when there are many), because starting nvdisasm costs more than disassembling ten thousand instructions; then the addresses it
computed from the pc are brought to where the instruction stands in its function.

Source: the text of 376 functions of public binaries for sm_75 to sm_120 (551,608 instructions), disassembled in one run per architecture, is
the same as when each is disassembled alone; that of 365 functions of the corpus and the fixtures (160,840 instructions, 87,660 distinct) the same
when each distinct one is disassembled once. The opcodes with such addresses were found by decoding every opcode at two base addresses.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from gpa_lsp.code.binary.disassembly_cache import DisassemblyCache, make_key, open_cache
from gpa_lsp.code.binary.model import INSTRUCTION_BYTES, Cubin, Instructions
from gpa_lsp.code.binary.nvdisasm import decode_words
from gpa_lsp.code.binary.opcodes import describe_mnemonic, list_pc_target_opcodes
from gpa_lsp.code.binary.sass import decode_instructions
from gpa_lsp.code.binary.tool_location import require_tool
from gpa_lsp.foundation.errors import InputError

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
    """Put the text of functions into the cache, where those who ask for a few of them at a time find it.

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
        cache.trim()
    return texts


class _Decoded(NamedTuple):
    """The text of an encoding, and its address in the run that decoded it where the text says one computed from the pc."""

    text: str
    address: int | None


def _decode_distinct(codes: Iterable[bytes], decode: Callable[[bytes], list[str]]) -> dict[bytes, _Decoded]:
    """The text of each distinct encoding: kernels made from one template have many instructions in common."""
    distinct = list(dict.fromkeys(word for code in codes for word in _cut_words(code)))
    starts_with_target = list_pc_target_opcodes()
    decoded: dict[bytes, _Decoded] = {}
    for words, texts in _run_batches(decode, _make_batches(distinct)):
        for number, (word, text) in enumerate(zip(words, texts, strict=True)):
            has_target = text.startswith("@") or text.startswith(starts_with_target)
            decoded[word] = _Decoded(text, number * INSTRUCTION_BYTES if has_target else None)
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
