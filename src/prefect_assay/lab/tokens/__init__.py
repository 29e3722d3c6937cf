"""Bearer tokens: their form, roles, restrictions and registry, and the portal sessions that some belong to.

Knows no route and no web framework.
"""
