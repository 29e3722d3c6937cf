"""Turns a file of designs into checked sequences, the batches of single experiments and a default campaign id.

Knows neither the service nor Prefect.
"""
