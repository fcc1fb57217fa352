"""Training classifiers: models, recipes, and the loop over epochs."""
