"""Data curation: findings about a data set before training, and a list of the images to exclude."""
