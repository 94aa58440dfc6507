"""Fences ``blame``: one line per edge, and per row and reason without a cause, of the blamers the fence names::

    BLAMER  USE <- DEF|itself|nobody  REASON=ALL/LATENCY  CATEGORY  DEPENDENCY RESOURCE  N instructions, N cycles  [together]

The lines of a blamer are all it says about the kernel, but for samples that are no stalls (issued, not selected). ``[together]`` marks causes that
share a group; ``unknown distance`` stands where nobody looked for a path from cause to use. Rows are offsets with their opcode; those of other
functions than the first have its name in front (``helper+0x0010``).
"""

from collections import Counter

from gpa_lsp.code.binary.model import name_resource
from gpa_lsp.diagnosis.blame.blame import blame_kernel
from gpa_lsp.diagnosis.blame.model import (
    NO_STALLS,
    BlameCategory,
    BlameEdges,
    Dependency,
    KernelBlame,
    Unattributed,
    UnattributedCause,
)
from gpa_lsp.kernel.model import Kernel


def check_blame(kernel: Kernel, blame: KernelBlame, text: str) -> None:
    """Compare what the blamers named in a fence say about a kernel with the fence.

    Raises:
        AssertionError: anything differs; the message is the fence as it would be right.
    """
    expected = [" ".join(line.split()) for line in text.splitlines() if line.strip()]
    found: list[str] = []
    for name in dict.fromkeys(line.split()[0] for line in expected):
        found += describe_blame(kernel, blame if blame.blamer == name else blame_kernel(kernel, name))
    assert sorted(found) == sorted(expected), "\n".join(["this is what they say:", *found])


def describe_blame(kernel: Kernel, blame: KernelBlame) -> list[str]:
    """The lines of one blamer, by use, reason and def."""
    blamer = blame.blamer
    names = name_rows(kernel)
    edges, lost = blame.edges, blame.unattributed
    members = Counter(zip(edges.use_row.tolist(), edges.reason.tolist(), edges.group.tolist(), strict=True))
    lines = []
    for number in range(len(edges)):
        category = BlameCategory(edges.category[number])
        if category in NO_STALLS:
            continue
        use, definition, reason = int(edges.use_row[number]), int(edges.def_row[number]), int(edges.reason[number])
        samples = _count_samples(edges, number)
        words = [blamer, names[use], "<-"]
        dependency = Dependency(edges.dependency[number])
        if dependency is Dependency.ITSELF:
            words += ["itself", f"{kernel.reasons[reason]}={samples}", category.name]
        else:
            resource = int(edges.resource[number])
            words += [names[definition], f"{kernel.reasons[reason]}={samples}", category.name, dependency.name]
            words += [name_resource(resource)] if resource >= 0 else []
            words += _describe_distance(int(edges.distance_instructions[number]), int(edges.distance_cycles[number]))
        if members[use, reason, int(edges.group[number])] > 1:
            words.append("[together]")
        lines.append(" ".join(words))
    for number in range(len(lost)):
        samples = _count_samples(lost, number)
        cause = UnattributedCause(lost.cause[number]).name
        reason = kernel.reasons[lost.reason[number]]
        lines.append(f"{blamer} {names[int(lost.row[number])]} <- nobody {reason}={samples} {cause}")
    return lines


def _describe_distance(instructions: int, cycles: int) -> list[str]:
    if instructions < 0:
        return ["unknown", "distance"]
    return [_count(instructions, "instruction") + ",", _count(cycles, "cycle")]


def _count_samples(columns: BlameEdges | Unattributed, number: int) -> str:
    """All and those without issue; ``?`` where they are unknown."""
    latency = columns.latency_samples
    return f"{columns.all_samples[number]:g}/{'?' if latency is None else f'{latency[number]:g}'}"


def name_rows(kernel: Kernel) -> list[str]:
    """The name of each row of the kernel in a case."""
    names = []
    for function in kernel.functions:
        prefix = "" if function is kernel.functions[0] else f"{function.name}+"
        texts = (text.split() for text in function.instructions.texts)
        opcodes = (words[1] if words[0].startswith("@") else words[0] for words in texts)
        offsets = function.instructions.pc_offsets.tolist()
        names += [
            f"{prefix}{offset:#06x} {opcode.partition('.')[0]}" for offset, opcode in zip(offsets, opcodes, strict=True)
        ]
    return names


def _count(number: int, unit: str) -> str:
    return f"{number} {unit}" if number == 1 else f"{number} {unit}s"
