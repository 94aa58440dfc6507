"""The core, which executes kernels: machine code that sends lanes from segment to segment and does what is in them.

Every lane has its registers in the *frame* of its warp, so lanes that part and meet again move nothing; those of a function lie behind those of its
caller. A kernel becomes *operations*, all of them typed Python. The core stops where one has something to report, and at ends of segments that are
services of the host: barriers that not all lanes come to, system functions, jumps by a table.
"""
