"""Curation: findings about a data set before it is trained on, and a list of the images to leave out."""
