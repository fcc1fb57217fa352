"""W3 and W3r: augmentation of batches that are on a GPU already (``python -m benchmarks.run_gpu w3 w3r``)."""
