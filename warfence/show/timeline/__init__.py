"""What ran when: lanes as tracks, stages as slices, tickets as arrows; as Trace Event JSON and as a picture."""
