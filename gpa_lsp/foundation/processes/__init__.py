"""START other programs: nothing that lies in the folder somebody is in gets a say in what runs."""
