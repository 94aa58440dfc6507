"""The oracle of SASS in numpy, which machine code is compared with."""
