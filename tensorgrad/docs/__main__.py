"""`python -m tensorgrad.docs [--check] [folder]`"""
import sys

from .command import main

sys.exit(main(sys.argv[1:]))
