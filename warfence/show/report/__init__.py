"""The report of a run as one page for people: matrix, timelines, laws, catalogue, benchmarks, in a single HTML file."""
