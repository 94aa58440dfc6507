"""The frame that every page shares: one self-contained file that opens from disk, asks no network, and reads on light and on dark ground."""
