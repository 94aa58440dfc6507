"""DESCRIBE: a launch and its arguments, from a TOML beside the source, a measured launch or an editor → buffers and parameter bytes."""

DESCRIPTION_SUFFIX = ".launch.toml"  # What takes the place of a source's suffix
