"""Folders of images: ``source``, which lists (``walking``) and arranges (``listing``) what is in one."""
