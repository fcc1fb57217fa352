"""What goes on around compiling kernels: one process at a time, kept on disk unharmed, and said to whoever waits.

Nothing in here reaches compiled code, so that a change of it compiles nothing again.
"""
