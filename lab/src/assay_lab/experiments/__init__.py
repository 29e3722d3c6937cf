"""The life of an experiment. It must not know the web framework, the routes or the control surface."""
