"""What shows a run: timelines and the report."""
