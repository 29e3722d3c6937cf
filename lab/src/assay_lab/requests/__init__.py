"""One request and its answer. It must not know what any resource means."""
