"""Becomes another program, in the environment that the simulated device needs."""
import os
import sys

os.execv(sys.argv[1], sys.argv[1:])
