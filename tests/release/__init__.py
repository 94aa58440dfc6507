"""What a release is tried with, and the tests of what prepares it."""
