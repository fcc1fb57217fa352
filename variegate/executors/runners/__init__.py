"""One front door for devices: what a batch may be, which devices there are, and one runner for each kind."""
