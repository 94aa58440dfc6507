"""SERVE the shell: one file per subcommand."""
