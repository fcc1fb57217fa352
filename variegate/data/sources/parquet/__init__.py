"""Parquet files: ``source`` opens each (``file``), finds the images (``columns``) and reads all labels (``labels``).

Images come by row group (``row_groups``), held in memory (``group_cache``) or unpacked to a disk (``unpacked``).
"""
