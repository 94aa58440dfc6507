"""The clients of the server, in the real editors."""
