"""Compares what the service is described to be with what it says of itself, and with what it answers.

`compare` names every difference between two descriptions and what it does to the client, without sending anything.
`compare_answers` names the fields of real answers that the client reads, does not read, or misses; `WitnessClient`
collects these answers and cannot spend. Knows nothing of campaigns.
"""
