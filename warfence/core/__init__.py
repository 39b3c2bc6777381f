"""The heart: policy, fence, and the loop that overlaps. Imports nothing else of warfence; read it in an hour."""
