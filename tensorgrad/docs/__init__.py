"""Write the reference, its index DOCS.md, the pictures in docs/ and the type stubs from the code: `python -m
tensorgrad.docs`.
"""
