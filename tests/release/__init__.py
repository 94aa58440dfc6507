"""Trial of a release, and tests of its preparation."""
