"""The commands of `python -m tensorgrad.experiment`, each a parser of its words and a call of what does the work."""
