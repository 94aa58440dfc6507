"""What each PTX instruction makes of the lanes of its operands: one meaning, in typed Python, which the core compiles."""
