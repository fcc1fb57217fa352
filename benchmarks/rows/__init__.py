"""W2o: a row per operation and per pipeline, beside what other libraries have of the same meaning."""
