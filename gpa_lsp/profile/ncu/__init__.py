"""Nsight Compute report files, chapter by chapter: framing, schema, metrics, samples, launches, rules, host context, modules, session.

The layout was worked out from reports (Nsight Compute 2019 to 2026.2, compute capability 6.1 to 12.0) by decoding them, comparing versions and
checking numbers against text exports. Neither NVIDIA's schema files nor NVIDIA's reader were used.
"""

REPORT_MAGIC = b"NVR\0"

# What to try with a report that is compressed in a way that is not read
CONVERT_REMEDY = (
    "try to convert it with the Nsight Compute that wrote it: open it there and save it as .ncu-rep, "
    "or run `ncu --import REPORT.ncu-repz --export REPORT.ncu-rep`"
)

_MAGICS = (
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"\x1f\x8b\x08", "gzip"),
    (b"\xfd7zXZ\x00", "xz"),
    (b"BZh", "bzip2"),
    (b"PK\x03\x04", "zip"),
    (b"\x04\x22\x4d\x18", "lz4"),
)


def find_compression(head: bytes) -> str | None:
    """Compression whose magic a file (or a part of one) starts with; None for none.

    >>> find_compression(bytes.fromhex("28b52ffd00"))
    'zstd'
    >>> find_compression(b"NVR\\0") is None
    True
    """
    for magic, name in _MAGICS:
        if head.startswith(magic):
            return name
    is_zlib = len(head) >= 2 and head[0] == 0x78 and head[1] in (0x01, 0x5E, 0x9C, 0xDA)
    return "zlib" if is_zlib else None
