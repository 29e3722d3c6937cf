"""The local lab: a simulation of the service on one machine (docs/lab.md).

It imports neither Prefect nor the client. Of this package it shares the vocabulary, the wire words, the base models and
the errors, and validates with its own strict schemas: one wrong shared model cannot pass on both sides.
"""
