"""Scenarios: small programs of lanes, events and tables as readable text, and every interleaving that they permit."""
