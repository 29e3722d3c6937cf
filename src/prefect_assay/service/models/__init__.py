"""Frozen models of what the service sends and takes, one module per noun."""
