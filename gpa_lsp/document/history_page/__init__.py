"""A page about the past: what became of the time of every kernel that was measured."""
