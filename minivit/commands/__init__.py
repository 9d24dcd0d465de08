"""The commands of the command line, one in a file.

A command is a dataclass whose fields are its options, and the comments beside them its help.
"""
