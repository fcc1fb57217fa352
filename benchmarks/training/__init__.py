"""What the trainer costs beside a bare loop: its steps, its start, its checkpoints, and what ranks tell each other."""
