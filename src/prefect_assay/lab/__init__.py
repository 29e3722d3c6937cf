"""The local lab: a faithful stand-in of the service on one machine (docs/lab.md).

It never imports Prefect or the client. Of this package it shares only the vocabulary, the wire words, the base
models and the error tree, and it validates with its own strict schemas: one wrong shared model cannot pass on
both sides.
"""
