"""Prefect server, lab, webhook receiver and served flows as one stack of processes on this machine."""
