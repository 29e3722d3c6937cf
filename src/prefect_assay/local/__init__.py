"""Processes of one machine: Prefect's server with its database, the lab, the receiver and the flows.

It talks HTTP and must not import Prefect: a program that does, starts with `LocalStack.env`.
"""
