"""Curation: findings about a data set before it is trained on, and a copy without what is wrong."""
