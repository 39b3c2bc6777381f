"""Forces what exploration found on real lanes: gates in front of each access, opened in the order of a witness."""
