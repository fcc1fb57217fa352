"""What comes from outside, taken with care: files, addresses with secrets, names on their way to a terminal."""
