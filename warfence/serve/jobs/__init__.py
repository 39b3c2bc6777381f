"""Serving without a command line: what is to be served, a run of it, its report, and how two runs are compared."""
