"""DESCRIBE: a launch and its arguments, from a TOML beside the source, a measured launch or an editor → buffers and parameter bytes."""
