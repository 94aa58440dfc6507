"""Files that CUPTI's utility library for PC sampling writes (``libpcsamplingutil``), as NVIDIA's samples and tools built on them do.

A file begins with its version and the number of buffers, 32 bits each. A buffer has four numbers of 64 bits (records, stall reasons of the GPU, those
that were asked for, bytes that follow) and then a FlatBuffer with the identifier ``CUPS``. Its tables were found out from files that the library
wrote of known values, with the releases 12.1 to 13.4: :mod:`.tables` names their fields. The file has no cubins, and no launches.
"""

IDENTIFIER = b"CUPS"
FORMAT = "cupti-pc-sampling"
HEADER_BYTES = 8
BUFFER_HEADER_BYTES = 32
SUFFIX = "pcsampling.dat"  # How NVIDIA's sample names its files, behind the number of the context
