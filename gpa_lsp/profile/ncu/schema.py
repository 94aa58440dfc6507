"""Messages in a report, as far as they are understood, and the protobuf classes that decode them.

Only fields whose meaning is established are declared; everything else is an unknown field to the decoder and skipped. Text is declared as
``bytes``: reports hold whatever the host's file names and symbols hold, and one wrong byte must not cost the message. So are repeated messages
that are decoded one by one (metrics on access; sessions, rules, frames, files and functions in allowance.py).

The classes are built at import time from the tables below. They are dynamic, hence ``Any`` to the type checker.

Source: field numbers and types as observed in 284 reports (2019 to 2026.2).
"""

from typing import Any, Final

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_BYTES: Final = descriptor_pb2.FieldDescriptorProto.TYPE_BYTES
_FLOAT: Final = descriptor_pb2.FieldDescriptorProto.TYPE_FLOAT
_DOUBLE: Final = descriptor_pb2.FieldDescriptorProto.TYPE_DOUBLE
_UINT32: Final = descriptor_pb2.FieldDescriptorProto.TYPE_UINT32
_UINT64: Final = descriptor_pb2.FieldDescriptorProto.TYPE_UINT64
_PACKAGE: Final = "gpa_lsp.ncu"

# Number, name, type (a message by name, or one of the scalars above), and for other than optional fields the label
_Field = tuple[int, str, int | str] | tuple[int, str, int | str, str]

_MESSAGES: dict[str, tuple[_Field, ...]] = {
    "FileHeader": ((1, "container_version", _UINT64),),
    # ---- framing ----
    "BlockHeader": (
        (1, "source_count", _UINT64),
        (2, "result_count", _UINT64),
        (3, "sessions", _BYTES, "repeated"),
        (4, "string_table", "StringTable"),
        (5, "payload_bytes", _UINT64),
        (6, "process", "Process"),
    ),
    "StringTable": ((1, "strings", _BYTES, "repeated"),),
    "Process": ((1, "process_id", _UINT64),),
    "Session": ((6, "devices", "Device", "repeated"), (8, "providers", "Provider", "repeated")),
    "Device": ((1, "index", _UINT64), (2, "name", _BYTES), (3, "attributes", "Attribute", "repeated")),
    "Attribute": ((1, "name", _BYTES), (2, "value", "Value")),
    "Provider": ((1, "name", _BYTES), (2, "version", _BYTES)),
    # ---- values and metrics ----
    "Value": (
        (1, "text", _BYTES, "oneof"),
        (2, "float32", _FLOAT, "oneof"),
        (3, "float64", _DOUBLE, "oneof"),
        (4, "uint32", _UINT32, "oneof"),
        (5, "uint64", _UINT64, "oneof"),
    ),
    "Instance": ((1, "correlation_id", "Value"), (2, "value", "Value")),
    "Metric": (
        (1, "name_id", _UINT64),
        (2, "value", "Value"),
        (3, "instances", "Instance", "repeated"),
        (4, "correlation_kind", _UINT64),
    ),
    # The same bytes as Metric with the instances left encoded: they are decoded as columns (columns.py).
    "ColumnMetric": ((3, "instances", _BYTES, "repeated"), (4, "correlation_kind", _UINT64)),
    # ---- one launch ----
    "Result": (
        (1, "thread_id", _UINT64),
        (5, "mangled_name", _BYTES),
        (6, "plain_name", _BYTES),
        (7, "demangled_name", _BYTES),
        (10, "grid", "Dim3"),
        (11, "block", "Dim3"),
        (13, "metrics", _BYTES, "repeated"),
        (14, "created_unix_s", _UINT64),
        (15, "source", "SourceReference"),
        (19, "rules", _BYTES, "repeated"),
        (21, "nvtx", _BYTES),
        (22, "context_id", _UINT64),
        (23, "stream_id", _UINT64),
        (28, "call_stack", "CallStack"),
    ),
    "Dim3": ((1, "x", _UINT64), (2, "y", _UINT64), (3, "z", _UINT64)),
    "SourceReference": ((1, "source_id", _UINT64),),
    # ---- host context ----
    "NvtxState": ((1, "domains", "NvtxDomain", "repeated"), (2, "threads", "NvtxThread", "repeated")),
    "NvtxDomain": ((1, "domain_id", _UINT64), (2, "name", _BYTES)),
    "NvtxThread": ((1, "thread_id", _UINT64), (2, "stacks", "NvtxStack", "repeated")),
    "NvtxStack": ((1, "domain_id", _UINT64), (3, "ranges", "NvtxRange", "repeated")),
    "NvtxRange": ((1, "name", _BYTES),),
    "CallStack": ((1, "frames", _BYTES, "repeated"),),
    "Frame": (
        (1, "module", _BYTES),
        (2, "address", _UINT64),
        (3, "file", _BYTES),
        (4, "function", _BYTES),
        (5, "line", _UINT64),
    ),
    # ---- rules ----
    "Rule": (
        (1, "identifier", _BYTES),
        (2, "name", _BYTES),
        (3, "body", "RuleBody"),
        (4, "section", _BYTES),
        (5, "markers", _BYTES, "repeated"),
    ),
    "RuleBody": ((1, "items", _BYTES, "repeated"),),
    "RuleItem": ((1, "message", "RuleMessage"), (10, "speedup", "RuleSpeedup")),
    "RuleMessage": ((1, "text", _BYTES), (2, "kind", _UINT64), (4, "title", _BYTES)),
    "RuleSpeedup": ((1, "scope", _UINT64), (2, "percent", _DOUBLE)),
    "RuleMarker": (
        (1, "kind", _UINT64),
        (2, "line", _UINT64),
        (3, "address", _UINT64),
        (4, "text", _BYTES),
        (5, "message_kind", _UINT64),
        (6, "file", _BYTES),
    ),
    # ---- one loaded module ----
    "Source": (
        (1, "source_id", _UINT64),
        (4, "image", _BYTES),
        (5, "compute_capability_major", _UINT64),
        (6, "compute_capability_packed", _UINT64),
        (8, "files", "SourceFiles"),
        (9, "addresses", "Addresses"),
    ),
    "SourceFiles": ((1, "files", _BYTES, "repeated"),),
    "SourceFile": ((1, "path", _BYTES), (2, "content", _BYTES)),
    "Addresses": ((1, "functions", _BYTES, "repeated"),),
    "Symbol": ((1, "name", _BYTES), (2, "address", _UINT64), (3, "symbol_index", _UINT64)),
}


def _build_classes() -> dict[str, Any]:
    file = descriptor_pb2.FileDescriptorProto(name=f"{_PACKAGE}.proto", package=_PACKAGE, syntax="proto2")
    for message_name, fields in _MESSAGES.items():
        message = file.message_type.add(name=message_name)
        for number, name, kind, *label in fields:
            _add_field(message, number, name, kind, label[0] if label else "")
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{name}")) for name in _MESSAGES
    }


def _add_field(message: Any, number: int, name: str, kind: int | str, label: str) -> None:
    field = message.field.add(number=number, name=name)
    labels = descriptor_pb2.FieldDescriptorProto
    field.label = labels.LABEL_REPEATED if label == "repeated" else labels.LABEL_OPTIONAL
    if isinstance(kind, str):
        field.type = descriptor_pb2.FieldDescriptorProto.TYPE_MESSAGE
        field.type_name = f".{_PACKAGE}.{kind}"
    else:
        field.type = kind
    if label == "oneof":
        if not message.oneof_decl:
            message.oneof_decl.add(name="kind")
        field.oneof_index = 0


# Every message class by its name in the tables above; used through the names below, and by tests that write reports
MESSAGES: Final[dict[str, Any]] = _build_classes()

FileHeader: Final[Any] = MESSAGES["FileHeader"]
BlockHeader: Final[Any] = MESSAGES["BlockHeader"]
Session: Final[Any] = MESSAGES["Session"]
Metric: Final[Any] = MESSAGES["Metric"]
Instance: Final[Any] = MESSAGES["Instance"]
ColumnMetric: Final[Any] = MESSAGES["ColumnMetric"]
Result: Final[Any] = MESSAGES["Result"]
NvtxState: Final[Any] = MESSAGES["NvtxState"]
Frame: Final[Any] = MESSAGES["Frame"]
Rule: Final[Any] = MESSAGES["Rule"]
RuleItem: Final[Any] = MESSAGES["RuleItem"]
RuleMarker: Final[Any] = MESSAGES["RuleMarker"]
Source: Final[Any] = MESSAGES["Source"]
SourceFile: Final[Any] = MESSAGES["SourceFile"]
Symbol: Final[Any] = MESSAGES["Symbol"]


def read_text(raw: bytes) -> str:
    """Text of a report; bytes that are no UTF-8 become replacement characters.

    >>> read_text(b"daxpy")
    'daxpy'
    """
    return raw.decode("utf-8", errors="replace")
