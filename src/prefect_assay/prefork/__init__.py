"""Starts flow runs by forking a process that has imported everything; an opt-in of the worker."""
