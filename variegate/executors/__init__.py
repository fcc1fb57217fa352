"""Programs + pixels -> pixels. Every executor runs the same programs; ``reference`` defines what they mean."""
