"""Input and output, handled with care: files, addresses with secrets, names on their way to a terminal."""
