"""The lab's parts, one request and its answer, body schemas, validation, lists and filters.

It must not know what any resource means.
"""
