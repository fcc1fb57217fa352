"""What lies outside of Python, handled with care: files, addresses with secrets, names on their way to a terminal."""
