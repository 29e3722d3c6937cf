"""The local lab: a simulation of the service on one machine (lab/docs/lab.md).

Imports neither Prefect nor the client, and states the contract's words and schemas itself, so that one wrong statement
cannot pass on both sides.
"""
