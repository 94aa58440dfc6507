"""How far the model is off, which stands beside everything it says."""

MODEL_ERROR = 0.1
"""Mean error of simulated cycles against measured ones: 0.086 over 28 kernels of public reports, 0.098 over the 19 that nothing was
fitted on."""
