"""The local lab: a simulation of the service on one machine (docs/lab.md).

Imports neither Prefect nor the client, and validates with its own strict schemas, so that one wrong shared model cannot
pass on both sides.
"""
