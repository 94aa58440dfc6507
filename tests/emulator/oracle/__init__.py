"""The oracle: the meanings of PTX instructions a second time, in numpy, which the core's results are compared with."""
