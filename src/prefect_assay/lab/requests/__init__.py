"""The lab's parts, one request and its answer, body schemas, lists, filters and validation."""
