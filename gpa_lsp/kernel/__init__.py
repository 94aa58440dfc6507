"""One kernel: its launches, code, samples and architecture joined once, with its lines, scopes, places and data flow."""
