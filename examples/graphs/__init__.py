"""Networks on graphs: they tell the groups of nodes by the edges between them."""
