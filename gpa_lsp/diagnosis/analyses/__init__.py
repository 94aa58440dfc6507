"""QUANTIFY: a kernel → its place under the roofs, and the answers to the other questions it is asked."""
