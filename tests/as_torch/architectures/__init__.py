"""Programs in plain PyTorch, from the papers' descriptions: nothing in them knows of tensorgrad."""
