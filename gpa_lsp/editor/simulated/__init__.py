"""Simulated launches of a source, as the profile that the server reads like any other."""
