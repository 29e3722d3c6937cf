"""Tokens: form, restrictions, roles, the registry and portal sessions. Knows no requests."""
