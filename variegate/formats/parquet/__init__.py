"""Parquet files: ``source`` opens each (``file``), finds the images and reads all labels (``columns``).

Images come by row group (``row_groups``), unpacked to a disk or held in memory (``group_cache``).
"""
