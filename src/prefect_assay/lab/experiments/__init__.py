"""The life of an experiment: handlers, orders, payment, state machine, results, targets and lab time.

It must not know the web framework, the routes or the control surface.
"""
