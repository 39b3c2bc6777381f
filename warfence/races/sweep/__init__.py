"""Families of scenarios, each judged several ways: any two judges that disagree are a failure, with a shrunk program."""
