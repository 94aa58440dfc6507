"""BLAME: a joined kernel → stalls moved from the instructions that suffer to the instructions that cause them."""
