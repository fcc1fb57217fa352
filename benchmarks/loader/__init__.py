"""From files on disk to batches in a training loop, by each library's own loader on all cores."""
