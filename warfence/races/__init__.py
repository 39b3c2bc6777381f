"""What judges any program: checker, scenarios, replay on real lanes, sweep, and the catalogue."""
