"""Tests of the program room."""
