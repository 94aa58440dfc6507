"""Numbers that a program reads from its command line, its input or a file: places where host code reads them, and values assumed for them."""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec import Struct, field

from gpa_lsp.code.sources.host_syntax import find_identifier
from gpa_lsp.code.sources.host_values import Number, Scope, read_name
from gpa_lsp.code.sources.trees import part, read_text

if TYPE_CHECKING:
    from tree_sitter import Node

# Functions that convert text to a number
CONVERSIONS = frozenset(
    {"atoi", "atol", "atoll", "atof", "stoi", "stol", "stoll", "stoul", "stoull", "stof", "stod", "strtol", "strtoll", "strtoul", "strtoull",
     "strtof", "strtod"}
)  # fmt: skip
SCANNING = frozenset({"scanf", "fscanf", "sscanf", "scanf_s", "fscanf_s", "sscanf_s"})
# Results of functions that look for options, where the program is given none
NO_OPTIONS = {"getopt": -1, "getopt_long": -1, "getopt_long_only": -1, "checkCmdLineFlag": 0, "getCmdLineArgumentString": 0}  # fmt: skip
_SIZE = re.compile(
    r"n|count|size|length|len|num|total|\w*(?:elem(?:ent)?s?|points|nodes|atoms|particles|pixels|cells|threads|items|rows)"
)
_EXTENT = re.compile(
    r"w|h|m|n[xyz]|width|height|depth|rows?|cols?|columns?|\w*dim(?:ension)?s?[xyz]?|\w*(?:size|length|count|width|height)|num_?\w+|n_\w+"
)
# Names of numbers that are no size of the whole problem
_OF_A_PART = re.compile(r"\w*(?:block|thread|tile|warp|radius|iter|repeat|step|pass|seed|stream|device|gpu|bin)\w*")
_PLACE = re.compile(r"[\w.\[\]()>-]+")  # as `argv[1]` and `rows.size()` are written
_MOST_CHARACTERS = 40  # Of an expression whose value is assumed
OTHER = 16  # Value assumed for a number that does not seem to be a size
_FLOATS = frozenset({"float", "double"})
_NUMBERS = re.compile(
    r"(?:unsigned |signed |long |short )*(?:int|long|short|unsigned|size_t|u?int\d+_t|uint|ulong)|float|double"
)


_OF_ANY_GPU = {
    "warpSize": 32, "maxThreadsPerBlock": 1024, "sharedMemPerBlock": 49152, "WarpSize": 32, "MaxThreadsPerBlock": 1024,
    "MaxSharedMemoryPerBlock": 49152,
}  # fmt: skip
# Of an A100, which the program is assumed to ask
_OF_A_GPU = {
    "multiProcessorCount": 108, "MultiProcessorCount": 108, "major": 8, "ComputeCapabilityMajor": 8, "minor": 0, "ComputeCapabilityMinor": 0,
    "cores": 64, "totalGlobalMem": 40 << 30, "maxThreadsPerMultiProcessor": 2048, "MaxThreadsPerMultiProcessor": 2048,
}  # fmt: skip


def find_property(name: str, inputs: "AssumedInputs | None") -> Number | None:
    """A property of the GPU as ``cudaDeviceProp`` or ``cudaDevAttr…`` name it: one that all GPUs share, or an A100's where inputs are assumed."""
    if name in _OF_ANY_GPU or inputs is None or inputs.knows_only_told or name not in _OF_A_GPU:
        return _OF_ANY_GPU.get(name)
    inputs.has_asked_gpu = True
    return _OF_A_GPU[name]


def names_a_size(name: str) -> bool:
    """Whether a name is that of a number of elements.

    >>> names_a_size("numNodes"), names_a_size("n"), names_a_size("repeat")
    (True, True, False)
    """
    return _SIZE.fullmatch(name.lower()) is not None


def _is_extent(name: str) -> bool:
    """Whether a name is that of a size among a program's inputs, where sizes have more names than in :func:`names_a_size`.

    >>> _is_extent("image_width"), _is_extent("blockSize"), _is_extent("numIterations")
    (True, False, False)
    """
    plain = name.lower()
    return names_a_size(name) or (_EXTENT.fullmatch(plain) is not None and _OF_A_PART.fullmatch(plain) is None)


class AssumedInputs(Struct):
    """Values assumed for a program's inputs."""

    size: int = OTHER  # value of inputs that are sizes
    sizes: frozenset[str] | None = None  # places these are read from; None while they are looked for
    # values of other inputs, by the place they are read from
    values: Mapping[str, int] = field(default_factory=dict)
    # variable that received an input, by the place it was read from
    names: dict[str, str] = field(default_factory=dict)
    given: dict[str, Number] = field(default_factory=dict)  # value of each input, by the place it was read from
    # values given by the user, by variable or by the expression that is read, such as ``argv[1]``
    told: Mapping[str, Number] = field(default_factory=dict)
    knows_only_told: bool = False  # all other inputs are unknown, not assumed
    has_asked_gpu: bool = False  # the program has asked for properties in which GPUs differ

    def read(self, source: str, name: str, *, is_float: bool) -> Number | None:
        """Value of an input; None where it is unknown. ``source`` is the place it is read from, such as ``argv[1]``."""
        told = self.told.get(source, self.told.get(name))
        if told is not None or self.knows_only_told:
            return told
        self.names.setdefault(source, name)
        usual = self.size if self.sizes is not None and source in self.sizes else OTHER
        value: Number = self.values.get(source, usual)
        return self.given.setdefault(source, 1.0 if is_float else value)

    def find_sizes(self) -> frozenset[str]:
        """Inputs that are sizes by their names; the first input where no name tells."""
        whole = [source for source, value in self.given.items() if isinstance(value, int)]
        telling = [source for source in whole if _is_extent(self.names[source])]
        return frozenset(telling or whole[:1])

    def describe(self) -> tuple[tuple[str, Number], ...]:
        """(place and variable, value) of each input, and the GPU's SMs where its properties were asked for."""
        asked = (("SMs of the GPU", _OF_A_GPU["multiProcessorCount"]),) if self.has_asked_gpu else ()
        return (*((self._name(source), value) for source, value in self.given.items()), *asked)

    def _name(self, source: str) -> str:
        name = self.names[source]
        if name in ("", source):
            return source
        return f"{source} ({name})" if _PLACE.fullmatch(source) else name  # a longer expression says less than the name

    def convert(self, node: "Node", name: str) -> Number | None:
        """Value of a call that converts text to a number."""
        arguments = part(node, "arguments")
        source = None if arguments is None or not arguments.named_children else read_name(arguments.named_children[0])
        is_float = name in ("atof", "stof", "stod", "strtof", "strtod")
        return self.read(source, _find_target(node), is_float=is_float) if source else None

    def take(self, parameter: "Node") -> Number | None:
        """Value assumed for a function's parameter; None where it is no number."""
        name = find_identifier(part(parameter, "declarator"))
        kind = read_text(part(parameter, "type"))
        is_plain = name and name == read_text(part(parameter, "declarator"))
        return self.read(name, name, is_float=kind in _FLOATS) if is_plain and _NUMBERS.fullmatch(kind) else None

    def find(self, name: str, kind: str, node: "Node | None") -> Number | None:
        """Value assumed for a variable that is a size by its name and whose own value is unknown; None for any other variable."""
        plain = " ".join(word for word in kind.split() if word not in ("const", "static", "auto"))
        if node is None or not _is_extent(name) or _NUMBERS.fullmatch(plain) is None or plain in _FLOATS:
            return None
        return self.read(read_name(node)[:_MOST_CHARACTERS], name, is_float=False)

    def scan(self, target: "Node | None", scope: Scope) -> Number | None:
        """Value of a variable that an input is read into; None where it is no number."""
        name = read_name(target)
        kind = scope.read_type(name) or ""
        if not name.isidentifier() or _NUMBERS.fullmatch(kind) is None:
            return None
        return self.read(name, name, is_float=kind in _FLOATS)


def is_stream(node: "Node | None", scope: Scope) -> bool:
    """Whether ``>>`` reads from a stream: its leftmost operand is one."""
    while node is not None and node.type == "binary_expression":
        node = part(node, "left")
    name = read_name(node)
    return name in ("cin", "std::cin") or (scope.read_type(name) or "").removesuffix("&").endswith("stream")


def _find_target(node: "Node") -> str:
    """The variable that an expression's value is assigned to; empty where there is none."""
    around = node.parent
    for _ in range(8):
        if around is None or around.type.endswith("statement"):
            return ""
        if around.type == "init_declarator":
            return find_identifier(part(around, "declarator"))
        if around.type == "assignment_expression":
            return read_text(part(around, "left")).rpartition(".")[2].rpartition("->")[2]
        around = around.parent
    return ""
