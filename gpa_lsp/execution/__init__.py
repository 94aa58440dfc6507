"""What a kernel would do: builds and launches, emulation, accesses, timing, prediction, and whole programs."""
