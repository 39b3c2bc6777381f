"""Racy programs and their fixed twins, run on a backend through the neutral interface: what the checker must say of each."""
