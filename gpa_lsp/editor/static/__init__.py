"""What the code of a source says where no profile does, and the process that compiles it."""
