"""What is wrong with a data set, found before it is trained on, and a copy without it."""
