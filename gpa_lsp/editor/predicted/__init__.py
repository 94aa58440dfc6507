"""What emulating a source says of its lines, and the process that emulates it."""
