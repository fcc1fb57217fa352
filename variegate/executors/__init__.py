"""Programs + pixels -> pixels. Every executor runs the same programs; ``tests/oracle`` defines what they mean."""
