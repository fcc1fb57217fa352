"""Is ``model.fit`` limited by its data? The same fit of Keras on TensorFlow, with one feed after another."""

from __future__ import annotations

from variegate.apps.train.keras_study.run import study

__all__ = ["study"]
