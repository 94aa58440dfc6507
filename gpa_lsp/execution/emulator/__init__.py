"""EXECUTE: PTX, a launch and its arguments → what every lane did, exactly, with no GPU."""
