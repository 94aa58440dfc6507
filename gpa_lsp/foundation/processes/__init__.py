"""START other programs: nothing that lies in the current folder gets a say in what runs."""
