"""STRUCTURE: instructions → basic blocks, edges, dominators, loops, and the device-call graph."""
