"""WebDataset shards: by index (``source`` <- ``listing`` <- ``index``), or one sample after another.

Both get samples (``samples``, ``labels``) of the archive's members (``members``), whose bytes come from ``readers``.
"""
