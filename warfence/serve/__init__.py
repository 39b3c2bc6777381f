"""What turns the heart into a server: requests, planner, engine, models, speculative algorithms, jobs."""
