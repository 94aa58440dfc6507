"""INSTRUMENT: a kernel's PTX and its launch → PTX that writes down what it accesses and how it branches; what it wrote → a trace."""
