"""What the compiler, the emulator and the simulator make of the edits that answer advice, before anybody makes them."""
