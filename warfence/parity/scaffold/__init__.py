"""The start of a backend of one's own: a package in which every method is there and says what it must do."""
