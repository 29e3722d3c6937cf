"""Fetch results and keep them."""
