"""Answers about a document: what is known of its lines, as records of our own. Free of the protocol, which turns them into messages."""
