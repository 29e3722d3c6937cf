"""What people see of a run: artifacts and amounts."""
