"""A small GPT that writes Shakespeare, letter by letter."""
