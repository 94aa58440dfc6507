"""One file per subcommand; each defines ``COMMAND``."""
