"""Parquet files in the layout of Hugging Face's data sets."""
