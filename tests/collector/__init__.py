"""The collector, against a driver and a CUPTI of our own: both are written in C here, and complain where they are used as they must not be."""
