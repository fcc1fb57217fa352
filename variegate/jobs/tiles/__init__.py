"""One image on many devices: tiles of the result are tasks of an engine. ``executors/cpu/tiled`` makes them."""
