"""An emulated launch: its memory, its functions cut into segments, and the ends of these that the core leaves to Python.

Words used throughout:

* *batch*: thread blocks that are executed at the same time; they see each other's writes to global memory.
* *warp set*: some whole warps of a batch, 32 lanes each; all arrays of lanes follow its order (block, warp, lane).
* *segment*: a run of instructions that lanes execute without stopping.
* *fragment*: lanes that stand at the same end of a segment in the same chain of calls, where the core leaves them to Python: barriers that not all
  come to, calls of system functions, jumps by a table. Registers are read as arrays over the lanes, which are never modified.
"""
