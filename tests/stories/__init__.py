"""A package, so that its installation ends with its last test."""
