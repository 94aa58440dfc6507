"""An emulated launch: its memory, its functions cut into segments, and the steps that numpy does for the core.

Words used throughout:

* *batch*: thread blocks that are executed at the same time; they see each other's writes to global memory.
* *warp set*: some whole warps of a batch, 32 lanes each; all arrays of lanes follow its order (block, warp, lane).
* *segment*: a run of instructions that lanes execute without stopping.
* *fragment*: lanes that stand at the same place of the same chain of calls, where the core leaves them to a step of numpy. Registers are read
  as arrays over the lanes, which are never modified.
"""
