"""Compares the interface that the client was written for with a description of today's service."""
