"""Answers about a document: what is known of its lines, in the types of the protocol. Free of the server, which sends them."""
