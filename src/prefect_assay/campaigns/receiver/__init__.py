"""The receiver of the service's signed updates, which turns a delivery into a wake-up.

Nothing here knows why a run waits, and nothing imports Prefect before it is needed.
"""
