"""Few-shot learners, one a file: what is meta-learned, and how a task is learned.

All of them take the same inner steps from the same network. They differ in the map
from dual parameters to those of the network.
"""
