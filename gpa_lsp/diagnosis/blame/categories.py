"""Categories of attributed stalls: from the opcode of the cause, how the stalled instruction depends on it, and the reason."""

from functools import lru_cache

from gpa_lsp.code.binary.model import Flow
from gpa_lsp.code.binary.opcodes import Access, MemorySpace, Opcode
from gpa_lsp.diagnosis.blame.model import WAIT, BlameCategory, Dependency
from gpa_lsp.gpu.arch.hazards import ProducerGroup
from gpa_lsp.gpu.arch.lookup import load_opcode_classes
from gpa_lsp.gpu.arch.sections import ScoreboardKind

LONG_SCOREBOARD = "long_scoreboard"
SHORT_SCOREBOARD = "short_scoreboard"

# Reasons of scoreboards → instructions whose scoreboards a wait under the reason is for
SCOREBOARD_KINDS = {LONG_SCOREBOARD: ScoreboardKind.LONG, SHORT_SCOREBOARD: ScoreboardKind.SHORT}

DEPENDENCY_REASONS = (*SCOREBOARD_KINDS, WAIT)  # Reasons that depend on scoreboards and stall counts

# Reasons that name their cause themselves; scoreboards are not among them
_OF_REASON = {
    "barrier": BlameCategory.SYNCHRONISATION,
    "branch_resolving": BlameCategory.BRANCH,
    "dispatch_stall": BlameCategory.DISPATCH,
    "drain": BlameCategory.DRAIN,
    "gmma": BlameCategory.SYNCHRONISATION,
    "imc_miss": BlameCategory.CONSTANT_MISS,
    "lg_throttle": BlameCategory.MEMORY_THROTTLE,
    "math_pipe_throttle": BlameCategory.PIPE_THROTTLE,
    "membar": BlameCategory.SYNCHRONISATION,
    "mio_throttle": BlameCategory.MIO_THROTTLE,
    "misc": BlameCategory.MISC,
    "no_instructions": BlameCategory.INSTRUCTION_FETCH,
    "not_selected": BlameCategory.NOT_SELECTED,
    "selected": BlameCategory.ISSUED,
    "sleeping": BlameCategory.SLEEPING,
    "tex_throttle": BlameCategory.TEXTURE_THROTTLE,
    WAIT: BlameCategory.ISSUE,
    "warpgroup_arrive": BlameCategory.SYNCHRONISATION,
}

# Dependencies that decide the category, for any instruction
_OF_DEPENDENCY = {
    Dependency.WRITE_AFTER_READ: BlameCategory.WRITE_AFTER_READ,
    Dependency.ISSUE: BlameCategory.ISSUE,
    Dependency.SYNCHRONISATION: BlameCategory.SYNCHRONISATION,
    Dependency.CONTROL: BlameCategory.BRANCH,
}

# Dependencies whose category is that of the reason, where it has one
_BY_REASON = (Dependency.ITSELF, Dependency.SYNCHRONISATION, Dependency.CONTROL, Dependency.QUEUE)

_INDIRECT = (Flow.INDIRECT_BRANCH, Flow.INDIRECT_CALL)

# Producers of variable latency whose category does not follow from the memory they access
_OF_GROUP = {
    ProducerGroup.ASYNC_COPY_FENCE: BlameCategory.MEMORY_GLOBAL,
    ProducerGroup.BULK_COPY: BlameCategory.MEMORY_GLOBAL,
    ProducerGroup.MBARRIER: BlameCategory.SYNCHRONISATION,
    ProducerGroup.SPECIAL_REGISTER: BlameCategory.EXECUTION_SYSTEM,
    ProducerGroup.SPECIAL_FUNCTION: BlameCategory.EXECUTION_SPECIAL,
    ProducerGroup.CONVERSION: BlameCategory.EXECUTION_SPECIAL,
    ProducerGroup.BIT_COUNT: BlameCategory.EXECUTION_SPECIAL,
    ProducerGroup.DIVISION_CHECK: BlameCategory.EXECUTION_SPECIAL,
    ProducerGroup.REGISTER_TO_UNIFORM: BlameCategory.EXECUTION_SPECIAL,
    ProducerGroup.TENSOR_MEMORY: BlameCategory.EXECUTION_SPECIAL,
}

_OF_MEMORY = {
    MemorySpace.GLOBAL: BlameCategory.MEMORY_GLOBAL,
    MemorySpace.GENERIC: BlameCategory.MEMORY_GLOBAL,
    MemorySpace.LOCAL: BlameCategory.MEMORY_LOCAL,
    MemorySpace.SHARED: BlameCategory.EXECUTION_SHARED,
    MemorySpace.CONSTANT: BlameCategory.EXECUTION_CONSTANT,
    MemorySpace.TEXTURE: BlameCategory.MEMORY_TEXTURE,
    MemorySpace.SURFACE: BlameCategory.MEMORY_TEXTURE,
    MemorySpace.TENSOR: BlameCategory.EXECUTION_SPECIAL,
    MemorySpace.WARP: BlameCategory.EXECUTION_WARP,
    # Vertex attributes are kept in the same memory as shared variables.
    MemorySpace.ATTRIBUTE: BlameCategory.EXECUTION_SHARED,
}

# Accesses without a result: a wait for one ends when it has read what it stores; not so in tensor memory, where matrix units store too
_WITHOUT_RESULT = (Access.STORE, Access.REDUCTION)

# Opcodes that are not arithmetic, and whose category neither a memory nor a group of producers tells
_OF_OPCODE = {
    "CS2R": BlameCategory.EXECUTION_SYSTEM,
    "CS2UR": BlameCategory.EXECUTION_SYSTEM,
    "VOTE": BlameCategory.EXECUTION_WARP,
    "VOTEU": BlameCategory.EXECUTION_WARP,
    "ELECT": BlameCategory.EXECUTION_WARP,
    "MOVM": BlameCategory.EXECUTION_WARP,
}


@lru_cache(maxsize=8192)
def find_category(
    opcode: Opcode, dependency: Dependency, reason: str, *, waits_for_operands: bool = False
) -> BlameCategory:
    """The category of a blame.

    >>> from gpa_lsp.code.binary.opcodes import describe_mnemonic
    >>> find_category(describe_mnemonic("LDG.E"), Dependency.READ_AFTER_WRITE, "long_scoreboard").name
    'MEMORY_GLOBAL'
    >>> find_category(describe_mnemonic("DFMA"), Dependency.READ_AFTER_WRITE, "wait").name
    'EXECUTION_ARITHMETIC'
    >>> find_category(describe_mnemonic("STG.E"), Dependency.SCOREBOARD, "long_scoreboard").name
    'WRITE_AFTER_READ'
    >>> find_category(describe_mnemonic("BRX"), Dependency.CONTROL, "branch_resolving").name
    'INDIRECT'
    """
    category = _OF_DEPENDENCY.get(dependency)
    if dependency in _BY_REASON:
        category = _OF_REASON.get(reason, category or BlameCategory.MISC)
    if category == BlameCategory.BRANCH and opcode.flow in _INDIRECT:
        return BlameCategory.INDIRECT
    if category is not None:
        return category
    if waits_for_operands or (opcode.access in _WITHOUT_RESULT and opcode.memory != MemorySpace.TENSOR):
        return BlameCategory.WRITE_AFTER_READ
    return _find_result_category(opcode, reason)


def _find_result_category(opcode: Opcode, reason: str) -> BlameCategory:
    """Category of a dependency on a result, by the opcode that makes it."""
    group = load_opcode_classes().find_producer(opcode.name)
    by_group = None if group is None else _OF_GROUP.get(group)
    if by_group is not None:
        return by_group
    if opcode.synchronises is not None:
        return BlameCategory.SYNCHRONISATION
    if opcode.name in _OF_OPCODE:
        return _OF_OPCODE[opcode.name]
    if opcode.memory == MemorySpace.CONSTANT and reason == LONG_SCOREBOARD:
        return BlameCategory.MEMORY_CONSTANT
    if opcode.memory is not None:
        return _OF_MEMORY[opcode.memory]
    # The groups that remain are double precision and matrix units: behind a scoreboard on some architectures, of fixed latency on others.
    if group is not None and reason in SCOREBOARD_KINDS:
        return BlameCategory.EXECUTION_SPECIAL
    return BlameCategory.EXECUTION_ARITHMETIC


# Memories behind memory dependencies. Shared memory is an execution dependency, as Figure 5 has it.
_FAR_MEMORY = frozenset(
    {
        MemorySpace.GLOBAL,
        MemorySpace.GENERIC,
        MemorySpace.LOCAL,
        MemorySpace.CONSTANT,
        MemorySpace.TEXTURE,
        MemorySpace.SURFACE,
    }
)


def is_far_memory(opcode: Opcode) -> bool:
    """Whether an instruction accesses memory other than shared memory.

    >>> from gpa_lsp.code.binary.opcodes import describe_mnemonic
    >>> [is_far_memory(describe_mnemonic(name)) for name in ("LDG.E", "LDS", "SHFL.BFLY", "FFMA")]
    [True, False, False, False]
    """
    return opcode.memory in _FAR_MEMORY
