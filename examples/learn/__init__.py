"""Five short lessons on backpropagation, each a script and a notebook: `python -m examples.learn.lesson1_expression`,
and so on.
"""
