"""Background jobs: what is done about open sources beside the event loop, each kind in a process of its own."""
