"""COMPILE: a source and the way it is built → PTX, cubin and the compiler's messages, with no GPU."""
