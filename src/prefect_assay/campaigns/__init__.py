"""Campaigns: playing one in a flow run, waking and restarting the run, stopping it, and what needs a person.

The log of a campaign (`orders.ledger.campaign_log`) is the truth. A run is disposable, and nothing here knows the flows.
"""
