"""What SASS computes, in numpy: held against what machine code does."""
