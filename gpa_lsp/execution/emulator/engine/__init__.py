"""The heart of the emulator: warps of many thread blocks run PTX together, as numpy arrays.

Words used throughout:

* *batch*: thread blocks that are executed at the same time; they see each other's writes to global memory.
* *warp set*: some whole warps of a batch, 32 lanes each; all arrays of lanes follow its order (block, warp, lane).
* *fragment*: lanes of a warp set that stand at the same instruction. A fragment holds a register file of dense arrays over *all* lanes of its
  warp set and a mask of those that are its own; what is computed for other lanes is never looked at. Arrays in registers are never written
  in place, so fragments share them freely.
* *segment*: a run of instructions that a fragment executes without stopping.

When lanes part, a fragment becomes two with complementary masks; one that keeps less than half of its warps is compacted to those. The segment
that comes first in the order of the function is run first, so lanes meet again where their ways join, and are merged there.
"""
