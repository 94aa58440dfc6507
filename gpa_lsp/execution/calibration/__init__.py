"""CALIBRATE: a GPU → its measured roofs, by benchmarks generated, compiled and run here."""
