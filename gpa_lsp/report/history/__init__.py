"""REMEMBER: measurements of this user on this machine, one small database for all workspaces."""
