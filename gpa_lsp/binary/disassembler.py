"""Functions of a device image → their :class:`~gpa_lsp.binary.model.Instructions`, with as few runs of nvdisasm as possible.

Only the functions asked for are disassembled, and only those not in the cache. They are laid end to end and disassembled in one run (or in a
few at once when there is much), because starting nvdisasm costs more than disassembling ten thousand instructions; then the addresses it
computed from the pc are brought back to the function's own start.

Source: the text of 376 functions of public binaries for sm_75 to sm_120 (551,608 instructions), disassembled in one run per architecture, is
the same as when each is disassembled alone. The opcodes with such addresses were found by decoding every opcode at two base addresses.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from gpa_lsp.basis.errors import InputError
from gpa_lsp.binary.disassembly_cache import DisassemblyCache, make_key, open_cache
from gpa_lsp.binary.model import INSTRUCTION_BYTES, Cubin, Instructions
from gpa_lsp.binary.nvdisasm import decode_words
from gpa_lsp.binary.opcodes import describe_mnemonic, list_pc_target_opcodes
from gpa_lsp.binary.sass import decode_instructions
from gpa_lsp.binary.tool_location import require_tool

_WORTH_A_RUN_BYTES = 20_000 * INSTRUCTION_BYTES
"""Less than this does not repay starting another nvdisasm beside the first."""
_LARGEST_RUN_BYTES = 400_000 * INSTRUCTION_BYTES
"""About the most in one run: nvdisasm needs 0.7 kB per instruction."""
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

    def run(batch: Sequence[bytes]) -> list[list[str]]:
        return _split_batch(batch, decode_words(tool, b"".join(batch), sm))

    for batch, found_texts in _run_batches(run, _make_batches(missing)):
        for code, found in zip(batch, found_texts, strict=True):
            texts[code] = found
            cache.store(keys[code], found)
    if missing:
        cache.trim()
    return texts


def _make_batches(codes: Sequence[bytes]) -> list[list[bytes]]:
    """Share sections out so that the runs are about equally long and none is large."""
    total = sum(map(len, codes))
    if not total:
        return []
    useful = min(os.cpu_count() or 1, total // _WORTH_A_RUN_BYTES + 1)
    count = min(len(codes), max(useful, -(-total // _LARGEST_RUN_BYTES)))
    batches: list[list[bytes]] = [[] for _ in range(count)]
    filled = [0] * count
    for code in sorted(codes, key=len, reverse=True):
        lightest = filled.index(min(filled))
        batches[lightest].append(code)
        filled[lightest] += len(code)
    return batches


def _run_batches(
    run: Callable[[Sequence[bytes]], list[list[str]]], batches: Sequence[Sequence[bytes]]
) -> Iterator[tuple[Sequence[bytes], list[list[str]]]]:
    """Run the batches, as many at once as there are processors."""
    if len(batches) < 2:
        yield from ((batch, run(batch)) for batch in batches)
        return
    from concurrent.futures import ThreadPoolExecutor  # seldom needed, and it costs start-up time

    pool = ThreadPoolExecutor(max_workers=os.cpu_count() or 1)
    try:
        yield from zip(batches, pool.map(run, batches), strict=True)
    finally:
        pool.shutdown(cancel_futures=True)


def _split_batch(batch: Sequence[bytes], texts: Sequence[str]) -> list[list[str]]:
    """The texts of each section of a batch, with addresses from the section's own start."""
    starts_with_target = list_pc_target_opcodes()
    sections: list[list[str]] = []
    start = 0
    for code in batch:
        end = start + len(code) // INSTRUCTION_BYTES
        section = list(texts[start:end])
        if start:
            base = start * INSTRUCTION_BYTES
            section = [
                _rebase(text, base) if text.startswith("@") or text.startswith(starts_with_target) else text
                for text in section
            ]
        sections.append(section)
        start = end
    return sections


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
