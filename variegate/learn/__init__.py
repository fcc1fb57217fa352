"""Training classifiers, comparing policies, and searching for them: Population Based Augmentation and races."""
