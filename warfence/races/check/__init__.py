"""The checker: an event log of lanes and host, and every access in it that no fence covers. Imports no framework."""
