"""What is written in C, and its compiler."""
