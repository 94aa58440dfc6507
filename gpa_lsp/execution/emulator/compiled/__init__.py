"""The core, which executes kernels: machine code that sends lanes from segment to segment and does what is in them.

Every lane has its registers in the *frame* of its warp, so lanes that part and meet again move nothing; those of a function lie behind those of its
caller. A kernel becomes *operations*; where one is not known, or has something to report, the core stops, and steps of numpy are run on the very
lanes.
"""
