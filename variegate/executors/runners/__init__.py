"""Device-independent entry: accepted batches, available devices, and one runner per kind of device."""
